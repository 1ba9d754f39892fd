package document

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	utf16 "golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// Decode returns the text of a file and the name of the encoding it was in: by its byte order mark, as UTF-8 if it is that, by hint (a
// charset's name; empty for none) if every byte fits it, by the places of its NULs as UTF-16, else as statistics say. The text is valid
// UTF-8 without a byte order mark; lines end in LF where the file has CR LF, or CR alone throughout; NUL and what cannot be decoded are
// U+FFFD. Everything else is as in the file: line n of the text is line n of the file. *UnreadableError if more than one character in twenty
// is a control character or cannot be decoded: then it is not text.
func Decode(raw []byte, hint string) (text, charset string, err error) {
	text, charset, ok := decodeUnicode(raw)
	if !ok {
		text, charset = decodeLegacy(raw, hint)
	}
	if bad := badRunes(text); bad > 0 && !tolerable(bad, text) {
		return "", "", unreadable("The file is not text: %d of its %d characters are control characters or cannot be decoded. "+
			"Upload it as text.", bad, utf8.RuneCountInString(text))
	}
	return normalLines(strings.ReplaceAll(text, "\x00", "\ufffd")), charset, nil
}

// normalLines ends each line in LF. Any CRs before an LF belong to the line's end.
func normalLines(text string) string {
	if !strings.Contains(text, "\r") {
		return text
	}
	if !strings.Contains(text, "\n") {
		return strings.ReplaceAll(text, "\r", "\n")
	}
	var b strings.Builder
	b.Grow(len(text))
	for {
		at := strings.IndexByte(text, '\n')
		if at < 0 {
			break
		}
		b.WriteString(strings.TrimRight(text[:at], "\r"))
		b.WriteByte('\n')
		text = text[at+1:]
	}
	b.WriteString(text)
	return b.String()
}

// badRunes counts the characters that text does not have: controls but for tab, line ends, vertical tab, form feed, backspace, bell and
// escape, and bytes that could not be decoded.
func badRunes(text string) (bad int) {
	for _, r := range text {
		switch {
		case r >= '\a' && r <= '\r' || r == '\x1b':
		case r == utf8.RuneError || unicode.IsControl(r):
			bad++
		}
	}
	return bad
}

// tolerable tells whether a text may have so many bad characters: one in twenty.
func tolerable(bad int, text string) bool {
	return bad*20 <= utf8.RuneCountInString(text)
}

type boundMark struct {
	mark     string
	charset  string
	encoding encoding.Encoding
}

// marks are the byte order marks, the longer of two that begin alike first.
var marks = []boundMark{
	{"\xef\xbb\xbf", "utf-8", encoding.Nop},
	{"\xff\xfe\x00\x00", "utf-32le", utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)},
	{"\x00\x00\xfe\xff", "utf-32be", utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)},
	{"\xff\xfe", "utf-16le", utf16.UTF16(utf16.LittleEndian, utf16.IgnoreBOM)},
	{"\xfe\xff", "utf-16be", utf16.UTF16(utf16.BigEndian, utf16.IgnoreBOM)},
}

// decodeUnicode decodes what a mark or its form shows to be Unicode; ok is false for anything else.
func decodeUnicode(raw []byte) (text, charset string, ok bool) {
	for _, m := range marks {
		if rest, found := bytes.CutPrefix(raw, []byte(m.mark)); found {
			return decoded(rest, m.encoding), m.charset, true
		}
	}
	m := guessUTF16(raw)
	if isUTF8(raw) {
		if text = strings.ToValidUTF8(string(raw), "\ufffd"); m == nil || tolerable(badRunes(text), text) {
			return fromEscapes(text)
		}
	}
	if m == nil {
		return "", "", false
	}
	return decoded(raw, m.encoding), m.charset, true
}

// isUTF8 tells whether the bytes are UTF-8, but for a few broken ones: a log may be cut in a character, or mix encodings. Of the
// characters beyond ASCII, four in five must be whole.
func isUTF8(raw []byte) bool {
	trimmed := trimCutRune(raw)
	cut := len(trimmed) < len(raw)
	raw = trimmed
	whole, broken := 0, 0
	for i := 0; i < len(raw); {
		if raw[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(raw[i:])
		if r == utf8.RuneError && n == 1 {
			broken++
		} else {
			whole++
		}
		i += n
	}
	if cut && whole == 0 { // that end is all there is to tell by
		return false
	}
	return broken*4 <= whole
}

// trimCutRune drops the beginning of a character from the end of head, where reading stopped.
func trimCutRune(head []byte) []byte {
	for i := len(head) - 1; i >= 0 && i >= len(head)-utf8.UTFMax; i-- {
		if utf8.RuneStart(head[i]) {
			if !utf8.FullRune(head[i:]) {
				return head[:i]
			}
			break
		}
	}
	return head
}

// fromEscapes decodes ISO-2022-JP, which is ASCII by its bytes, where the sequences stand that switch to its kanji and back.
func fromEscapes(text string) (string, string, bool) {
	to := strings.Contains(text, "\x1b$B") || strings.Contains(text, "\x1b$@")
	if to && (strings.Contains(text, "\x1b(B") || strings.Contains(text, "\x1b(J")) {
		return decoded([]byte(text), japanese.ISO2022JP), "iso-2022-jp", true
	}
	return text, "utf-8", true
}

// guessUTF16 finds UTF-16 without a mark, nil if it is not that: the high bytes of its ASCII characters, at least those of blanks and
// line ends, are NULs at even places (big-endian) or odd ones (little-endian), and hardly ever at both.
func guessUTF16(raw []byte) *boundMark {
	sample := raw[:min(len(raw), 64<<10)&^1]
	var nuls [2]int
	for i, b := range sample {
		if b == 0 {
			nuls[i%2]++
		}
	}
	m := &marks[4]
	if nuls[1] > nuls[0] {
		m = &marks[3]
	}
	if high, low := max(nuls[0], nuls[1]), min(nuls[0], nuls[1]); high*100 < len(sample) || high == 0 || low*20 > high {
		return nil
	}
	if !isWritten(decoded(sample, m.encoding)) {
		return nil
	}
	return m
}

// isWritten tells whether nearly all characters are such as people write: assigned, and not private.
func isWritten(text string) bool {
	odd := 0
	for _, r := range text {
		if r == utf8.RuneError || !unicode.IsGraphic(r) && !unicode.IsSpace(r) && r != '\x1b' && !unicode.Is(unicode.Cf, r) {
			odd++
		}
	}
	return odd*50 <= utf8.RuneCountInString(text)
}

// decoded never fails: decoders put U+FFFD for what they do not know.
func decoded(raw []byte, e encoding.Encoding) string {
	out, err := e.NewDecoder().Bytes(raw)
	if err != nil {
		out = raw
	}
	return strings.ToValidUTF8(string(out), "\ufffd")
}
