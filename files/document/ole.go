package document

import (
	"bytes"
	"errors"
	"io"
	"strings"
)

var (
	errProtected = unreadable("The document is protected by a password. " +
		"Remove the password in the program that made it, and upload it again.")
	errOLE = unreadable("It is a container of Microsoft's OLE that holds no document that is known, such as a cache of " +
		"pictures or an installer. If a program opens it, export it as PDF, and upload that.")
	oldWord  = unreadable("It is a document in Word's old binary format. Save it as .docx, and upload that.")
	oldExcel = unreadable("It is a workbook in Excel's old binary format. Save it as .xlsx, and upload that.")

	oldPowerPoint = unreadable("It is a presentation in PowerPoint's old binary format. " +
		"Save it as .pptx, and upload that.")
	outlookMessage = unreadable("It is a message of Outlook. Save it as .eml, or as text, and upload that.")
)

const exportPDF = "Export it as PDF, and upload that."

// startsAt reports whether a file begins with a mark.
func startsAt(body io.ReaderAt, mark string) bool {
	head := make([]byte, len(mark))
	_, err := body.ReadAt(head, 0)
	return (err == nil || errors.Is(err, io.EOF)) && string(head) == mark
}

// Names in the directory of an OLE container, which tell what it holds.
var oleKinds = []struct {
	name   string
	reason *UnreadableError
}{
	{"EncryptedPackage", errProtected},
	{"__properties_version1.0", outlookMessage},
	{"WordDocument", oldWord},
	{"Workbook", oldExcel},
	{"PowerPoint Document", oldPowerPoint},
	{"VisioDocument", unreadable("It is a drawing of Visio. " + exportPDF)},
	{"HwpSummaryInformation", unreadable("It is a document of Hancom. Save it as .docx or PDF, and upload that.")},
	{"Quill", unreadable("It is a publication of Publisher. " + exportPDF)},
	{"Props12", unreadable("It is a plan of Microsoft Project. Export it as Excel or PDF, and upload that.")},
	{"Book", oldExcel},
}

// refuseOLE returns *UnreadableError for an OLE container, because encrypted Office documents, old Office formats and
// messages of Outlook are such containers.
func refuseOLE(r io.ReaderAt, size int64) error {
	if !startsAt(r, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1") {
		return nil
	}
	// The container's directory may be anywhere in the file. It has names in UTF-16, of up to 32 characters, with NULs
	// behind.
	best := len(oleKinds)
	const overlap = 64
	block := make([]byte, 64<<10)
	for offset := int64(0); offset < size; offset += int64(len(block) - overlap) {
		n, err := r.ReadAt(block, offset)
		for i, kind := range oleKinds[:best] {
			if bytes.Contains(block[:n], utf16Name(kind.name)) {
				best = i
				break
			}
		}
		if err != nil || best == 0 {
			break
		}
	}
	if best < len(oleKinds) {
		return oleKinds[best].reason
	}
	return errOLE
}

// utf16Name returns a name as an OLE directory has it, but for its last NUL.
func utf16Name(name string) []byte {
	return []byte(strings.Join(strings.Split(name, ""), "\x00"))
}
