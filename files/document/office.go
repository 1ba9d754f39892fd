package document

import (
	"cmp"
	"io"
)

// Reader reads the text of one format, as Markdown. It returns *UnreadableError for a document that is damaged,
// protected, beyond the limits or without text, and other errors only if r cannot be read.
type Reader = func(r io.ReaderAt, size int64) (Text, error)

// Office returns the reader of an office format by its media type; false if it is not one.
func Office(mediaType string) (Reader, bool) {
	reader, ok := offices[mediaType]
	return reader, ok
}

var offices = map[string]Reader{
	ooxml + "wordprocessingml.document":   DOCX,
	ooxml + "presentationml.presentation": PPTX,
	ooxml + "spreadsheetml.sheet":         XLSX,
	opendocument + "text":                 ODT, opendocument + "text-template": ODT,
	opendocument + "spreadsheet": ODS, opendocument + "spreadsheet-template": ODS,
	opendocument + "presentation": ODP, opendocument + "presentation-template": ODP,
	"application/epub+zip": EPUB,
	notebookType:           IPYNB,
	oleType:                refuseOldOffice, rtfType: refuseRTF, "application/rtf": refuseRTF,
}

// refuseOldOffice returns why an OLE container is not read: it is encrypted, or of an old format of Office.
func refuseOldOffice(r io.ReaderAt, size int64) (Text, error) {
	return Text{}, cmp.Or(refuseOLE(r, size), error(errOldOffice))
}

// refuseRTF returns why an RTF document is not read. Uploads of RTF are refused by Sniff; files stored by an earlier
// version that read RTF come here when they are parsed again.
func refuseRTF(io.ReaderAt, int64) (Text, error) { return Text{}, errRTF }
