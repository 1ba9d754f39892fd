package files

import (
	"archive/zip"
	"bytes"
	"compress/zlib"
	"encoding/hex"
	"io"
	"regexp"
	"unicode/utf16"
)

// maxPackedBytes is how many bytes of a packed part of a document are searched.
const maxPackedBytes = 64 << 20

// inPacked counts occurrences in bytes that are not text: in the bytes themselves; in the entries of a zip archive,
// such as office documents and e-books; and in the packed streams and UTF-16 strings of a PDF. In markup it also finds
// occurrences across tags. It cannot find text that a PDF draws by glyph numbers, or text in an image.
func inPacked(original []byte, erase func(string) (string, int)) (n int) {
	count := func(raw []byte) {
		_, plain := erase(string(raw))
		_, untagged := erase(string(tag.ReplaceAll(raw, nil)))
		n += max(plain, untagged)
	}
	count(original)
	if archive, err := zip.NewReader(bytes.NewReader(original), int64(len(original))); err == nil {
		for _, f := range archive.File {
			_, k := erase(f.Name)
			n += k
			if r, err := f.Open(); err == nil {
				content, _ := io.ReadAll(io.LimitReader(r, maxPackedBytes)) // a broken entry is read as far as it goes
				_ = r.Close()
				count(content)
			}
		}
	}
	if bytes.HasPrefix(bytes.TrimLeft(original, "\x00\t\r\n "), []byte("%PDF")) {
		for _, text := range pdfTexts(original) {
			count(text)
		}
	}
	return n
}

var (
	tag       = regexp.MustCompile(`<[^<>]*>`)
	pdfStream = regexp.MustCompile(`stream\r?\n`)
	pdfHex    = regexp.MustCompile(`<(?i:feff)[0-9A-Fa-f\s]*>`)
)

// pdfTexts returns the contents of a PDF's packed streams, and its UTF-16 strings, such as its title.
func pdfTexts(original []byte) (texts [][]byte) {
	for _, match := range pdfStream.FindAllIndex(original, -1) {
		r, err := zlib.NewReader(bytes.NewReader(original[match[1]:]))
		if err != nil {
			continue
		}
		content, _ := io.ReadAll(io.LimitReader(r, maxPackedBytes)) // a broken stream is read as far as it goes
		texts = append(texts, content)
	}
	for _, part := range append([][]byte{original}, texts...) {
		for _, raw := range pdfHex.FindAll(part, -1) {
			digits := bytes.Join(bytes.Fields(raw[1:len(raw)-1]), nil)
			body := make([]byte, len(digits)/2)
			_, _ = hex.Decode(body, digits[:len(body)*2])
			texts = append(texts, fromUTF16(body))
		}
		for rest := part; ; {
			_, after, found := bytes.Cut(rest, []byte("(\xfe\xff"))
			if !found {
				break
			}
			body := after
			if end := pdfStringEnd(after); end >= 0 {
				body = after[:end]
			}
			rest = after
			texts = append(texts, fromUTF16(pdfUnescaped(body)))
		}
	}
	return texts
}

// maxPDFString is how many bytes of a PDF string are read.
const maxPDFString = 64 << 10

// pdfStringEnd returns where a string in parentheses ends, or -1.
func pdfStringEnd(raw []byte) int {
	for i := 0; i < min(len(raw), maxPDFString); i++ {
		switch raw[i] {
		case '\\':
			i++
		case ')':
			return i
		}
	}
	return -1
}

// pdfUnescaped returns the bytes of a string without the escapes of parentheses and backslashes.
func pdfUnescaped(raw []byte) (unescaped []byte) {
	for i := 0; i < min(len(raw), maxPDFString); i++ {
		if raw[i] == '\\' && i+1 < len(raw) {
			i++
		}
		unescaped = append(unescaped, raw[i])
	}
	return unescaped
}

func fromUTF16(raw []byte) []byte {
	units := make([]uint16, len(raw)/2)
	for i := range units {
		units[i] = uint16(raw[2*i])<<8 | uint16(raw[2*i+1])
	}
	return []byte(string(utf16.Decode(units)))
}
