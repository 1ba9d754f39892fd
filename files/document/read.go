package document

import (
	"context"
)

// Read returns the text of a document, *UnreadableError if it has none that can be read.
func (r Readers) Read(_ context.Context, in Input) (Text, error) {
	ready, err := r.Prepare(in.MediaType)
	if err != nil {
		return Text{}, err
	}
	return ready.Read(in)
}

// Ready is a reader that has all that it needs of the system: it opens no file and compiles nothing any more.
type Ready struct{ engine *engine }

// Prepare readies the reader of one document of a media type.
func (r Readers) Prepare(mediaType string) (Ready, error) {
	if mediaType != pdfType {
		return Ready{}, nil
	}
	engine, err := r.pdfium()
	return Ready{engine}, err
}

// Read returns the text of the document, *UnreadableError if it has none that can be read.
func (r Ready) Read(in Input) (Text, error) {
	if r.engine != nil {
		defer r.engine.close()
		return r.engine.read(in)
	}
	if read, ok := Office(in.MediaType); ok {
		body, err := in.seekable()
		if err != nil {
			return Text{}, err
		}
		return read(body, in.SizeBytes)
	}
	return readText(in)
}

// IsComplex reports whether the document needs a reader so large that hostile bytes may harm it.
func (in Input) IsComplex() bool {
	_, office := Office(in.MediaType)
	return office || in.IsPDF()
}
