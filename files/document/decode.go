package document

import (
	"bytes"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	utf16 "golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// Decode returns the text of a file and the name of its encoding. The encoding is found, in this order:
//   - by the byte order mark
//   - as UTF-8, if the bytes are valid
//   - as UTF-16, by the positions of NULs
//   - by hint, the name of a charset, if every byte is valid in it
//   - by statistics
//
// The text is valid UTF-8 without a byte order mark. CR LF, or CR if the whole file uses it, becomes LF. NUL and
// undecodable bytes become U+FFFD. Everything else stays, so that line n of the text is line n of the file.
// *UnreadableError if more than one character in twenty is a control character or undecodable, and for EBCDIC, because
// its code pages cannot be told apart.
func Decode(raw []byte, hint string) (text, charset string, err error) {
	if isEBCDIC(raw) {
		return "", "", unreadable("The file is in EBCDIC, the encoding of mainframes. Save it as UTF-8, and upload it again.")
	}
	text, charset, ok := decodeUnicode(raw)
	if !ok {
		text, charset = decodeLegacy(raw, hint)
	}
	if bad := badIn(raw, text, ok); bad > 0 && !tolerable(bad, text) {
		return "", "", unreadable("The file is not text: %d of its %d characters are control characters or cannot be "+
			"decoded. Save it as UTF-8, and upload it again.", bad, utf8.RuneCountInString(text))
	}
	return normalLines(strings.ReplaceAll(text, "\x00", "\ufffd")), charset, nil
}

// normalLines ends each line in LF. All CRs before an LF belong to the line's end.
func normalLines(text string) string {
	if !strings.Contains(text, "\r") {
		return text
	}
	if !strings.Contains(text, "\n") {
		return strings.ReplaceAll(text, "\r", "\n")
	}
	return carriageReturns.ReplaceAllString(text, "\n")
}

var carriageReturns = regexp.MustCompile(`\r+\n`)

// badIn counts the bad runes in the text of a whole file. It ignores ^Z at the end, which DOS wrote. In Unicode it also
// ignores NEL, which ends a line there, and U+FFFD that the file itself contains, because some other program could not
// decode a character.
func badIn(raw []byte, text string, isUnicode bool) int {
	bad := badRunes(strings.TrimRight(text, "\x1a\r\n"))
	if bad == 0 || !isUnicode {
		return bad
	}
	bad -= strings.Count(text, "\u0085")
	if isUTF8(raw) {
		bad -= bytes.Count(raw, []byte("\ufffd"))
	}
	return bad
}

// badRunes counts the characters that do not belong in a text: undecodable bytes, and most control characters. Tab,
// line ends, vertical tab, form feed, backspace, bell, escape and delete are accepted. So are characters that separate
// or frame fields (SOH as in FIX, STX, ETX, and the separators of files, groups, records and units), unless the text
// also has NUL.
func badRunes(text string) (bad int) {
	separators := 0
	for _, r := range text {
		switch {
		case r >= '\a' && r <= '\r', r == '\x1b':
		case r >= '\x1c' && r <= '\x1f', r >= '\x01' && r <= '\x03', r == '\x7f':
			separators++
		case r == utf8.RuneError || unicode.IsControl(r):
			bad++
		}
	}
	if strings.Contains(text, "\x00") {
		bad += separators
	}
	return bad
}

// tolerable reports whether at most one character in twenty is bad.
func tolerable(bad int, text string) bool {
	return bad*20 <= utf8.RuneCountInString(text)
}

type boundMark struct {
	mark     string
	charset  string
	encoding encoding.Encoding
}

// marks are the byte order marks. If one mark is the beginning of another, the longer one comes first.
var marks = []boundMark{
	{"\xef\xbb\xbf", "utf-8", encoding.Nop},
	{"\xff\xfe\x00\x00", "utf-32le", utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)},
	{"\x00\x00\xfe\xff", "utf-32be", utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)},
	{"\xff\xfe", "utf-16le", utf16.UTF16(utf16.LittleEndian, utf16.IgnoreBOM)},
	{"\xfe\xff", "utf-16be", utf16.UTF16(utf16.BigEndian, utf16.IgnoreBOM)},
}

// decodeUnicode decodes Unicode, recognized by its byte order mark or its form. ok is false for anything else.
func decodeUnicode(raw []byte) (text, charset string, ok bool) {
	for _, m := range marks {
		if rest, found := bytes.CutPrefix(raw, []byte(m.mark)); found {
			return decoded(rest, m.encoding), m.charset, true
		}
	}
	m := guessUTF16(raw)
	if isUTF8(raw) {
		if text = strings.ToValidUTF8(string(raw), "\ufffd"); m == nil || tolerable(badIn(raw, text, true), text) {
			return fromEscapes(text)
		}
	}
	if m == nil {
		return "", "", false
	}
	return decoded(raw, m.encoding), m.charset, true
}

// isUTF8 reports whether the bytes are UTF-8. A few broken bytes are accepted, because a log may be cut within a
// character, or mix encodings. There must be at least as many valid characters beyond ASCII as broken bytes.
func isUTF8(raw []byte) bool {
	whole, broken := 0, 0
	trimmed := trimCutRune(raw)
	for rest := trimmed; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		switch rest = rest[n:]; {
		case r == utf8.RuneError && n == 1:
			broken++
		case n > 1:
			whole++
		}
	}
	onlyCut := len(trimmed) < len(raw) && whole == 0 // the cut character is the only one beyond ASCII
	return broken <= whole && !onlyCut
}

// trimCutRune drops an incomplete character at the end of head, where reading stopped.
func trimCutRune(head []byte) []byte {
	for i := max(0, len(head)-utf8.UTFMax+1); i < len(head); i++ {
		if utf8.RuneStart(head[i]) && !utf8.FullRune(head[i:]) {
			return head[:i]
		}
	}
	return head
}

// fromEscapes decodes ISO-2022-JP if the text has its sequences that switch to kanji and back. All its bytes are ASCII.
func fromEscapes(text string) (string, string, bool) {
	to := strings.Contains(text, "\x1b$B") || strings.Contains(text, "\x1b$@")
	if to && (strings.Contains(text, "\x1b(B") || strings.Contains(text, "\x1b(J")) {
		return decoded([]byte(text), japanese.ISO2022JP), "iso-2022-jp", true
	}
	return text, "utf-8", true
}

// guessUTF16 returns the byte order of UTF-16 without a mark, or nil if the bytes are not UTF-16. In UTF-16, ASCII
// characters (letters, blanks, line ends) have a high byte of NUL: at even offsets if big-endian, at odd ones if
// little-endian.
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
	high, low := max(nuls[0], nuls[1]), min(nuls[0], nuls[1])
	if high == 0 {
		return nil
	}
	if high*100 < len(sample) || low*20 > high {
		return guessHan(sample)
	}
	if !isWritten(decoded(sample, m.encoding)) {
		return nil
	}
	return m
}

// guessHan returns the byte order in which a text with NULs is Chinese, or nil. Even a third of random characters are
// Chinese. A Chinese text may have hardly any ASCII characters.
func guessHan(sample []byte) *boundMark {
	for i := range marks[3:5] {
		m, han := &marks[3+i], 0
		text := decoded(sample, m.encoding)
		for _, r := range text {
			if unicode.Is(unicode.Han, r) {
				han++
			}
		}
		if han*3 > utf8.RuneCountInString(text)*2 && isWritten(text) {
			return m
		}
	}
	return nil
}

// isWritten reports whether at least 98 in 100 characters are assigned in Unicode and not private.
func isWritten(text string) bool {
	odd := 0
	for _, r := range text {
		if r == utf8.RuneError || !unicode.IsGraphic(r) && !unicode.IsSpace(r) && r != '\x1b' && !unicode.Is(unicode.Cf, r) {
			odd++
		}
	}
	return odd*50 <= utf8.RuneCountInString(text)
}

// decoded returns valid UTF-8. Bytes that are invalid in the encoding become U+FFFD.
func decoded(raw []byte, e encoding.Encoding) string {
	out, err := e.NewDecoder().Bytes(raw)
	if err != nil {
		out = raw
	}
	return strings.ToValidUTF8(string(out), "\ufffd")
}

func readText(input Input) (Text, error) {
	raw, err := input.bytes()
	if err != nil {
		return Text{}, err
	}
	text, charset, err := Decode(raw, DeclaredCharset(input.MediaType, "", raw))
	if err != nil {
		return Text{}, err
	}
	if input.IsHTML() {
		text, err = HTML(text)
	}
	return Text{Text: text, Charset: charset}, err
}
