package document

import (
	"errors"
	"io"
	"slices"
)

const (
	readPictures = "Pictures are not read. Run OCR on it, or describe it, and upload the text."
	orSetOCR     = " Or ask the operator to set " + OCRSetting + ", which has them read."
	orSetConvert = " Or ask the operator to set " + ConvertSetting + ", which has such files converted."
)

// Accepted says which formats are read by programs of the operator.
type Accepted struct{ Pictures, OldFormats bool }

// Pages returns the place of pages as text: "pages 3–5, 9".
func Pages(numbers []int) string {
	places := make([]place, len(numbers))
	for i, n := range numbers {
		places[i] = numbered("page", n)
	}
	return where(places)
}

// extensionOf maps the media types of pictures that programs read to the extensions of their files.
var extensionOf = map[string]string{"image/png": "png", "image/jpeg": "jpg", "image/tiff": "tif", "image/webp": "webp",
	"image/gif": "gif", "image/bmp": "bmp"}

// Old is a format that programs convert.
type Old struct {
	mediaType string
	From, To  string // extensions
	reason    *UnreadableError
}

var oldFormats = []Old{
	{"application/msword", "doc", "docx", oldWord}, {"application/vnd.ms-excel", "xls", "xlsx", oldExcel},
	{"application/vnd.ms-powerpoint", "ppt", "pptx", oldPowerPoint}, {rtfType, "rtf", "docx", errRTF},
	{"application/vnd.ms-outlook", "msg", "eml", outlookMessage},
}

// PictureExtension returns the extension of the document's file if it is a picture; else "".
func (in Input) PictureExtension() string { return extensionOf[in.MediaType] }

// Old returns the document's format if it is one that programs convert.
func (in Input) Old() (Old, bool) {
	i := slices.IndexFunc(oldFormats, func(o Old) bool { return o.mediaType == in.MediaType })
	if i < 0 {
		return Old{}, false
	}
	return oldFormats[i], true
}

// oldType returns the media type of a file in an old format that programs convert; "" if it is none.
func oldType(r io.ReaderAt, size int64) string {
	refused := refuseOLE(r, size)
	for _, old := range oldFormats {
		if errors.Is(refused, old.reason) {
			return old.mediaType
		}
	}
	return ""
}

// refusalOf returns why a document that only programs read has no text: no program is set. nil for other documents.
func refusalOf(in Input) error {
	if in.PictureExtension() != "" {
		return unreadable("%s", readPictures+orSetOCR)
	}
	if old, ok := in.Old(); ok {
		return unreadable("%s", old.reason.Reason+orSetConvert)
	}
	return nil
}
