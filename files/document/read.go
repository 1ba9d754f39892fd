package document

import (
	"context"
)

// Read returns the text of a document. *UnreadableError if it has no readable text.
func (r Readers) Read(_ context.Context, in Input) (Text, error) {
	ready, err := r.Prepare(in.MediaType)
	if err != nil {
		return Text{}, err
	}
	return ready.Read(in)
}

// Ready is a reader that is completely prepared: it will open no file and compile nothing.
type Ready struct{ engine *engine }

// Prepare prepares a reader for one document of a media type.
func (r Readers) Prepare(mediaType string) (Ready, error) {
	if mediaType != pdfType && !isMail[mediaType] { // a mail may have a PDF attached
		return Ready{}, nil
	}
	engine, err := r.pdfium()
	return Ready{engine}, err
}

// Read returns the text of the document. *UnreadableError if it has no readable text.
func (r Ready) Read(input Input) (Text, error) {
	if r.engine != nil {
		defer r.engine.close()
	}
	if err := refusalOf(input); err != nil {
		return Text{}, err
	}
	text, err := Text{}, error(nil)
	if isMail[input.MediaType] {
		text, err = readMail(input, r.read)
	} else {
		text, err = r.read(input)
	}
	if err == nil && text.Omitted == nil {
		text.Omitted = []Omission{}
	}
	return text, err
}

// read reads a document that is no mail.
func (r Ready) read(input Input) (Text, error) {
	if r.engine != nil && input.IsPDF() {
		return r.engine.read(input)
	}
	if read, ok := Office(input.MediaType); ok {
		body, err := input.seekable()
		if err != nil {
			return Text{}, err
		}
		if input.Scans {
			return read(pictured{body}, input.SizeBytes)
		}
		return read(body, input.SizeBytes)
	}
	return readText(input)
}

// MayHavePictures reports whether OCR may read pictures in the document.
func (in Input) MayHavePictures() bool {
	_, office := Office(in.MediaType)
	_, old := in.Old()
	return in.IsPDF() || in.IsHTML() || office && !old && in.MediaType != notebookType && refusalOf(in) == nil
}

// IsDocument reports whether reading the document may take long, by a child process or by programs of the operator.
func (in Input) IsDocument() bool { return in.IsComplex() || in.IsHTML() }

// IsComplex reports whether the document needs such a large reader that hostile bytes might attack it.
func (in Input) IsComplex() bool {
	_, office := Office(in.MediaType)
	return office || in.IsPDF() || isMail[in.MediaType] || in.PictureExtension() != ""
}
