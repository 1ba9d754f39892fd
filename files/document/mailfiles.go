package document

import (
	"bytes"
	"regexp"
	"strings"
)

// uuencoded matches a file that stands in a text, as mail had them before MIME: begin 644 plan.txt, lines of
// characters from blank to `, and end.
var uuencoded = regexp.MustCompile("(?m)^begin [0-7]{3,4} (\\S.*)\r?\n((?:[ -`]{1,90}\r?\n)*?)" +
	"[ `]?\r?\n?end[ \\t]*\r?$")

// textWithFiles returns the text of a part, and the texts of the files that stand in it.
func (m *mailReader) textWithFiles(p mailPart) (text mailText, err error) {
	var files []mailPart
	if p.mediaType == "text/plain" && bytes.Contains(p.raw, []byte("begin ")) {
		body := uuencoded.ReplaceAllFunc(p.content(), func(block []byte) []byte {
			found := uuencoded.FindSubmatch(block)
			name := strings.TrimSpace(string(found[1]))
			files = append(files, mailPart{name: name, isAttached: true, mediaType: "application/octet-stream",
				raw: fromUuencode(found[2])})
			return []byte("[" + name + "]")
		})
		if len(files) > 0 {
			p = mailPart{mediaType: p.mediaType, params: p.params, raw: body}
		}
	}
	if text.shown, err = m.shownText(p); err != nil {
		return text, err
	}
	var attached []string
	for _, file := range files {
		one, err := m.attachment(file)
		if err != nil {
			return text, err
		}
		attached = append(attached, one)
	}
	text.attached = joinTexts(attached)
	return text, nil
}

// fromUuencode decodes lines of uuencode. A line begins with its number of bytes.
func fromUuencode(lines []byte) (decoded []byte) {
	for line := range bytes.Lines(lines) {
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			continue
		}
		sextet := func(i int) byte {
			if i >= len(line) {
				return 0
			}
			return (line[i] - ' ') & 0x3f
		}
		n, at := int(sextet(0)), 1
		for ; n > 0; at += 4 {
			a, b, c, d := sextet(at), sextet(at+1), sextet(at+2), sextet(at+3)
			three := []byte{a<<2 | b>>4, b<<4 | c>>2, c<<6 | d}
			decoded = append(decoded, three[:min(n, 3)]...)
			n -= 3
		}
	}
	return decoded
}
