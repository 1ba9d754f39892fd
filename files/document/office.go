package document

import (
	"cmp"
	"io"
)

// Reader reads the text of one format as Markdown. *UnreadableError if the document is damaged, protected, beyond the
// limits or without text. Any other error means that r cannot be read.
type Reader = func(r io.ReaderAt, size int64) (Text, error)

// Office returns the reader for the media type of an office format. It returns false for other media types.
func Office(mediaType string) (Reader, bool) {
	reader, ok := offices[mediaType]
	return reader, ok
}

var offices = map[string]Reader{
	ooxml + "wordprocessingml.document":   DOCX,
	ooxml + "presentationml.presentation": PPTX,
	ooxml + "spreadsheetml.sheet":         XLSX,
	opendocument + "text":                 ODT, opendocument + "text-template": ODT, opendocument + "text-web": ODT,
	opendocument + "spreadsheet": ODS, opendocument + "spreadsheet-template": ODS,
	opendocument + "presentation": ODP, opendocument + "presentation-template": ODP,
	"application/epub+zip": EPUB,
	notebookType:           IPYNB,
	oleType:                refuseOldOffice, rtfType: refuseRTF, "application/rtf": refuseRTF,
	"application/msword": refuseOldOffice, "application/vnd.ms-excel": refuseOldOffice,
	"application/vnd.ms-powerpoint": refuseOldOffice, "application/vnd.ms-outlook": refuseOldOffice,
}

// refuseOldOffice returns why an OLE container is not read: it is encrypted, or in an old Office format.
func refuseOldOffice(r io.ReaderAt, size int64) (Text, error) {
	return Text{}, cmp.Or(refuseOLE(r, size), error(errOLE))
}

// refuseRTF returns errRTF. Sniff refuses uploads of RTF, but files that an earlier version of Loci accepted come here
// when they are parsed again.
func refuseRTF(io.ReaderAt, int64) (Text, error) { return Text{}, errRTF }
