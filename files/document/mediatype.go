package document

import "strings"

// Media types of documents.
const (
	pdfType      = "application/pdf"
	notebookType = "application/x-ipynb+json"
	oleType      = "application/x-ole-storage"
	rtfType      = "text/rtf"

	ooxml        = "application/vnd.openxmlformats-officedocument."
	opendocument = "application/vnd.oasis.opendocument."
)

// sniffBytes is how many bytes at the beginning of a file Sniff reads.
const sniffBytes = 4096

// setOf returns the words of a list as a set.
func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}

// Media types of mail.
const (
	messageType = "message/rfc822"
	mboxType    = "application/mbox"
	webPageType = "multipart/related" // a web page that a browser saved with its pictures (.mht)
)

// IsMail reports whether a media type is one of mail. Its parts mostly say their encoding, but not always.
func IsMail(mediaType string) bool { return isMail[mediaType] }

// isMail are the media types that the mail reader reads.
var isMail = setOf(messageType + " " + mboxType + " " + webPageType)
