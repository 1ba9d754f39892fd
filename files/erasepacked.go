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

// maxPackedBytes is the most of a packed part of a document that is searched.
const maxPackedBytes = 64 << 20

// inPacked returns how often what is to be erased stands in bytes that are no text: as they are, in the entries of a
// zip archive, which documents of offices and books are, and in the packed streams and the UTF-16 texts of a PDF. In
// markup it is also found across tags. What a PDF draws with numbers of glyphs, and what an image shows, is not found.
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

// pdfTexts returns the contents of the packed streams of a PDF, and its strings in UTF-16, such as its title.
func pdfTexts(original []byte) (texts [][]byte) {
	for _, at := range pdfStream.FindAllIndex(original, -1) {
		r, err := zlib.NewReader(bytes.NewReader(original[at[1]:]))
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

// maxPDFString is the most of a string of a PDF that is read.
const maxPDFString = 64 << 10

// pdfStringEnd returns where a string in parentheses ends; -1 if it does not.
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

// pdfUnescaped returns the bytes of a string without the escapes of parentheses and of itself.
func pdfUnescaped(raw []byte) (out []byte) {
	for i := 0; i < min(len(raw), maxPDFString); i++ {
		if raw[i] == '\\' && i+1 < len(raw) {
			i++
		}
		out = append(out, raw[i])
	}
	return out
}

func fromUTF16(raw []byte) []byte {
	units := make([]uint16, len(raw)/2)
	for i := range units {
		units[i] = uint16(raw[2*i])<<8 | uint16(raw[2*i+1])
	}
	return []byte(string(utf16.Decode(units)))
}
