package document

import (
	"bytes"
	"strings"

	pdfiumerrors "github.com/klippa-app/go-pdfium/errors"
)

// PDFToTextArguments returns the arguments with which poppler's pdftotext reads a PDF from stdin.
func PDFToTextArguments() []string { return []string{"-enc", "UTF-8", "-eol", "unix", "-", "-"} }

// FromPDFToText returns the text of a PDF from pdftotext's output and stderr. exited says that pdftotext failed.
func FromPDFToText(output *LimitedBuffer, stderr string, exited bool) (Text, error) {
	switch {
	case output.LeftBytes < 0:
		return Text{}, tooMuchText()
	case strings.Contains(stderr, "Incorrect password"):
		return Text{}, pdfRefusal(pdfiumerrors.ErrPassword)
	case exited:
		return Text{}, pdfRefusal(pdfiumerrors.ErrFile)
	}
	return joinPages(strings.Split(string(bytes.TrimSuffix(output.Held.Bytes(), []byte("\f"))), "\f"))
}
