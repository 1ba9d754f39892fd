package document

import (
	"bytes"
	"strings"

	pdfiumerrors "github.com/klippa-app/go-pdfium/errors"
)

// PDFToTextArguments are the arguments with which poppler's program pdftotext reads a PDF on stdin.
func PDFToTextArguments() []string { return []string{"-enc", "UTF-8", "-eol", "unix", "-", "-"} }

// FromPDFToText returns the text of a PDF of which pdftotext wrote out and stderr. exited says that it failed.
func FromPDFToText(out *LimitedBuffer, stderr string, exited bool) (Text, error) {
	switch {
	case out.LeftBytes < 0:
		return Text{}, tooMuchText()
	case strings.Contains(stderr, "Incorrect password"):
		return Text{}, pdfRefusal(pdfiumerrors.ErrPassword)
	case exited:
		return Text{}, pdfRefusal(pdfiumerrors.ErrFile)
	}
	return joinPages(strings.Split(string(bytes.TrimSuffix(out.Held.Bytes(), []byte("\f"))), "\f"))
}
