package document

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/japanese"
)

// Decode returns the text of a file and the name of its encoding. The encoding is found, in this order:
//   - by the byte order mark
//   - as UTF-8, if the bytes are valid
//   - as UTF-16, by the positions of NULs
//   - by hint, the name of a charset, if every byte is valid in it
//   - by the letters of the languages that are written in each encoding
//
// The text is valid UTF-8 without a byte order mark. CR LF becomes LF, and so does CR or NEL if the whole file uses it;
// elsewhere these become ␍ and ␤. A run of NULs becomes one ␀, an undecodable byte \xNN. Colours and other commands for
// a terminal are dropped. Everything else stays, so that line n of the text is line n of the file. *UnreadableError if
// more than one character in twenty is a control character or undecodable, and for EBCDIC, because its code pages
// cannot be told apart.
func Decode(raw []byte, hint string) (text, charset string, err error) {
	p, err := decodePlain(raw, hint, "")
	return p.text, p.charset, err
}

// plainText is a decoded text.
type plainText struct {
	text    string
	charset string
	sure    float64 // probability, from 0 to 1, that the charset is right
	omitted omissions
}

// decodePlain is Decode. If chosen is not empty, it decides the encoding.
func decodePlain(raw []byte, hint, chosen string) (plainText, error) {
	if chosen != "" {
		return decodeAs(raw, chosen)
	}
	if isEBCDIC(raw) {
		return plainText{}, unreadable("%s", hostAdvice)
	}
	text, charset, isUnicode := decodeUnicode(raw)
	p := plainText{text: text, charset: charset, sure: 1}
	if !isUnicode {
		p.text, p.charset, p.sure = decodeLegacy(raw, hint)
	}
	if bad := badIn(raw, p.text, isUnicode); bad > 0 && !tolerable(bad, p.text) {
		return plainText{}, unreadable("The file is not text: %d of its %d characters are control characters or cannot be "+
			"decoded. Save it as UTF-8, or name its encoding with encoding=, and upload it again.", bad,
			utf8.RuneCountInString(p.text))
	}
	p.finish(raw)
	return p, nil
}

// decodeAs decodes a text in the encoding that its uploader names.
func decodeAs(raw []byte, chosen string) (plainText, error) {
	e, name := chosenCharset(chosen)
	if e == nil {
		return plainText{}, unreadable("The encoding '%s' is not known.", chosen)
	}
	for _, m := range marks {
		if name == m.charset {
			raw = bytes.TrimPrefix(raw, []byte(m.mark))
		}
	}
	p := plainText{text: decoded(raw, e), charset: name, sure: 1}
	p.finish(raw)
	return p, nil
}

// finish shows the bytes that are no characters, ends each line in LF, and drops what is for terminals alone.
func (p *plainText) finish(raw []byte) {
	if strings.Contains(p.text, "\ufffd") {
		p.showBytes(raw)
	}
	line := 1
	p.text = shownControls.ReplaceAllStringFunc(normalLines(p.text), func(run string) string {
		switch run {
		case "\n":
			line++
			return run
		case "\r":
			p.omitted.addAt("carriage return in a line", numbered("line", line), 1)
			return "␍"
		case nextLine:
			p.omitted.addAt("NEL in a line", numbered("line", line), 1)
			return "␤"
		}
		p.omitted.addAt("NUL byte", numbered("line", line), len(run))
		return "␀"
	})
	p.text = withoutCommands(p.text)
}

var shownControls = regexp.MustCompile(`\x00+|[\r\n\x{85}]`)

const nextLine = "\u0085" // NEL, which ends a line on mainframes

// showBytes writes each byte that cannot be decoded as \xNN, and notes its line.
func (p *plainText) showBytes(raw []byte) {
	next := nextRune(p.charset)
	if next == nil {
		return
	}
	var b strings.Builder
	line := 1
	raw = bytes.TrimPrefix(raw, []byte(marks[0].mark))
	for len(raw) > 0 {
		r, n := next(raw)
		switch r {
		case "":
			fmt.Fprintf(&b, `\x%02x`, raw[0])
			p.omitted.addAt("undecodable byte", numbered("line", line), 1)
		case "\n":
			line++
			fallthrough
		default:
			b.WriteString(r)
		}
		raw = raw[n:]
	}
	p.text = b.String()
}

// nextRune returns a function that decodes the first character of a text, and says how many bytes it has. It returns ""
// for a byte that is no character. nextRune returns nil for encodings whose bytes are not told apart.
func nextRune(charset string) func(raw []byte) (string, int) {
	if charset == "utf-8" {
		return func(raw []byte) (string, int) {
			r, n := utf8.DecodeRune(raw)
			if r == utf8.RuneError && n <= 1 {
				return "", 1
			}
			return string(raw[:n]), n
		}
	}
	e, _ := chosenCharset(charset)
	if e == nil || strings.HasPrefix(charset, "utf-") || strings.HasPrefix(charset, "iso-2022") || isHost(charset) {
		return nil
	}
	return func(raw []byte) (string, int) {
		if raw[0] < utf8.RuneSelf {
			return string(raw[:1]), 1
		}
		for n := 1; n <= min(4, len(raw)); n++ {
			if text := decoded(raw[:n], e); text != "" && !strings.Contains(text, "\ufffd") {
				return text, n
			}
		}
		return "", 1
	}
}

// normalLines ends each line in LF. All CRs before an LF belong to the line's end. CR, or NEL, ends a line where
// nothing else does.
func normalLines(text string) string {
	switch {
	case strings.Contains(text, "\n"):
	case strings.Contains(text, "\r"):
		return strings.ReplaceAll(text, "\r", "\n")
	default:
		return strings.ReplaceAll(text, nextLine, "\n")
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

// badRunes counts the characters that do not belong in a text: undecodable bytes, and most control characters. NULs in
// a row count once, because a file that was being written when the power failed may have many of them. Tab,
// line ends, vertical tab, form feed, backspace, bell, escape and delete are accepted. So are characters that separate
// or frame fields (SOH as in FIX, STX, ETX, and the separators of files, groups, records and units), unless the text
// also has NUL.
func badRunes(text string) (bad int) {
	separators, before := 0, rune(-1)
	for _, r := range text {
		switch {
		case r == 0 && before == 0:
		case r >= '\a' && r <= '\r', r == '\x1b':
		case r >= '\x1c' && r <= '\x1f', r >= '\x01' && r <= '\x03', r == '\x7f':
			separators++
		case r == utf8.RuneError || unicode.IsControl(r):
			bad++
		}
		before = r
	}
	if strings.Contains(text, "\x00") {
		bad += separators
	}
	return bad
}

// tolerable reports whether at most one character in twenty is bad. NULs do not make a text longer.
func tolerable(bad int, text string) bool {
	return bad*20 <= utf8.RuneCountInString(text)-strings.Count(text, "\x00")
}

// decodeUnicode decodes Unicode, recognized by its byte order mark or its form. ok is false for anything else.
func decodeUnicode(raw []byte) (text, charset string, ok bool) {
	for _, m := range marks {
		if rest, found := bytes.CutPrefix(raw, []byte(m.mark)); found {
			return decoded(rest, m.encoding), m.charset, true
		}
	}
	m := cmp.Or(guessUTF32(raw), guessUTF16(raw))
	if isUTF8(raw) {
		text = strings.ToValidUTF8(string(raw), "\ufffd")
		if m == nil && isASCII(text) || tolerable(badIn(raw, text, true), text) {
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
	if strings.Contains(text, beginsISO2022KR) && strings.Contains(text, "\x0e") {
		return decodeISO2022KR([]byte(text)), "iso-2022-kr", true
	}
	to := strings.Contains(text, "\x1b$B") || strings.Contains(text, "\x1b$@")
	if to && (strings.Contains(text, "\x1b(B") || strings.Contains(text, "\x1b(J")) {
		return decoded([]byte(text), japanese.ISO2022JP), "iso-2022-jp", true
	}
	return text, "utf-8", true
}

// guessUTF32 returns the byte order of UTF-32 without a mark, or nil if the bytes are not UTF-32.
func guessUTF32(raw []byte) *boundMark {
	sample := raw[:min(len(raw), 64<<10)&^3]
	if len(sample) < 8 || len(raw)%4 != 0 {
		return nil
	}
	for i := range marks[1:3] {
		m := &marks[1+i]
		text, rare := decoded(sample, m.encoding), 0
		for _, r := range text {
			if r > 0xffff {
				rare++
			}
		}
		if !strings.ContainsAny(text, "\ufffd\x00") && isWritten(text) && rare*20 <= len(sample)/4 {
			return m
		}
	}
	return nil
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
	if high == 0 || high+low < len(sample)/3 && isASCIIWithNULs(sample) {
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

// isASCIIWithNULs reports whether all bytes are ASCII characters that are shown, white space and NULs. So are the
// variables of an environment, or names of files with a NUL behind each; as UTF-16 they would be rare Chinese.
func isASCIIWithNULs(sample []byte) bool {
	for _, b := range sample {
		if b != 0 && (b < ' ' && b != '\t' && b != '\n' && b != '\r' || b > '~') {
			return false
		}
	}
	return true
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

// decodeLegacy decodes text that is not Unicode, and says how sure the charset is. It uses the charset of hint if every
// byte is valid in it, otherwise the likeliest one.
func decodeLegacy(raw []byte, hint string) (text, name string, sure float64) {
	if e, name := hintedCharset(hint); e != nil {
		if text := decoded(raw, e); badRunes(text) == 0 {
			return text, name, 1
		}
	}
	guess := guessCharset(legacySample(raw))
	return decoded(raw, guess.encoding), guess.charset, guess.sure
}

func readText(input Input) (Text, error) {
	raw, err := input.bytes()
	if err != nil {
		return Text{}, err
	}
	p, err := decodePlain(raw, DeclaredCharset(input.MediaType, "", raw), input.Charset)
	if err != nil {
		return Text{}, err
	}
	p.omitted.withPictures = input.Scans
	if input.IsHTML() {
		p.text, err = readHTML(p.text, &p.omitted)
	}
	return Text{Text: p.text, Charset: p.charset, Sure: p.sure, Omitted: p.omitted.list(),
		Pictures: p.omitted.listPictures()}, err
}
