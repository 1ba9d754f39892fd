package document

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"

	"golang.org/x/text/encoding/charmap"
)

// RTF reads Rich Text Format 1.9: headings by their outline level or style, lists by the text that stands for their marks, tables, links,
// notes, code by its style or font, in whatever charsets its fonts have. Deleted and hidden text, headers and footers are left out.
func RTF(r io.ReaderAt, size int64) (Text, error) {
	source := &source{r: r}
	b := newBudget()
	b.unpacked -= size
	if err := b.spent(); err != nil {
		return Text{}, err
	}
	in := bufio.NewReaderSize(io.NewSectionReader(source, 0, size), 64<<10)
	md := newMarkdown(b)
	if err := newRTF(in, b, md).read(); err != nil {
		return Text{}, explain(err, source.failed)
	}
	text, err := md.finish()
	if spent := b.spent(); spent != nil {
		return Text{}, spent
	}
	return text, err
}

var (
	errNotRTF = errors.New(`it does not begin with {\rtf`)
	errCutRTF = errors.New("its end is missing")
)

// rtfReader reads the groups, control words and texts of a file.
type rtfReader struct {
	*rtfText

	in    *bufio.Reader
	stack []rtfState
	bytes []byte // of text, in the charset of the font
	high  rune   // the first half of a character
	skip  int    // characters that stand for one given as Unicode, for readers without
	star  bool   // the next word begins a destination that is skipped where it is not known
}

func newRTF(in *bufio.Reader, b *budget, md *markdown) *rtfReader {
	return &rtfReader{in: in, rtfText: newRTFText(b, md)}
}

func (r *rtfReader) read() error {
	if head, err := r.in.Peek(5); string(head) != `{\rtf` {
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		return errNotRTF
	}
	for {
		c, err := r.in.ReadByte()
		if errors.Is(err, io.EOF) {
			return errCutRTF
		}
		if err != nil {
			return err
		}
		if err := r.token(c); err != nil {
			return err
		}
		if len(r.stack) == 0 {
			r.finish()
			return r.budget.spent()
		}
	}
}

func (r *rtfReader) token(c byte) error {
	switch c {
	case '{', '}', '\\':
		r.budget.tokens--
		if err := r.budget.spent(); err != nil {
			return err
		}
	}
	switch c {
	case '{':
		return r.open()
	case '}':
		r.flush()
		r.skip, r.star = 0, false
		r.close()
		r.state, r.stack = r.stack[len(r.stack)-1], r.stack[:len(r.stack)-1]
	case '\\':
		return r.control()
	case '\r', '\n':
	default:
		r.byte(c)
	}
	return nil
}

func (r *rtfReader) open() error {
	r.flush()
	r.skip = 0
	if len(r.stack) == maxXMLDepth {
		return unreadable("The document's groups are nested deeper than %d. Save it again, and upload that.", maxXMLDepth)
	}
	r.stack = append(r.stack, r.state)
	r.state.opens = rtfNothing
	return nil
}

// byte adds a byte of text.
func (r *rtfReader) byte(c byte) {
	if r.skip > 0 {
		r.skip--
		return
	}
	if r.state.dest != rtfSkipped {
		r.bytes = append(r.bytes, c)
		if len(r.bytes) > 64<<10 {
			r.flush()
		}
	}
}

// flush decodes the bytes so far.
func (r *rtfReader) flush() {
	if r.high != 0 {
		r.high = 0
		r.text("\ufffd")
	}
	if len(r.bytes) == 0 {
		return
	}
	r.text(r.decode(r.bytes))
	r.bytes = r.bytes[:0]
}

func (r *rtfText) decode(raw []byte) string {
	ascii := true
	for _, c := range raw {
		ascii = ascii && c < 0x80
	}
	name := r.fonts[r.state.font].charset
	switch {
	case ascii:
		return string(raw)
	case name == "symbol":
		return strings.Repeat("•", len(raw))
	case name == "":
		name = r.charset
	}
	e, _ := charsetNamed(name)
	if e == nil {
		e = charmap.Windows1252
	}
	return decoded(raw, e)
}

// control reads what follows a backslash.
func (r *rtfReader) control() error {
	c, err := r.in.ReadByte()
	if err != nil {
		return errCutRTF
	}
	if c|0x20 < 'a' || c|0x20 > 'z' {
		return r.symbol(c)
	}
	word := []byte{c}
	for {
		c, err = r.in.ReadByte()
		if err != nil {
			return errCutRTF
		}
		if c|0x20 < 'a' || c|0x20 > 'z' || len(word) == 32 {
			break
		}
		word = append(word, c)
	}
	digits := []byte{}
	for len(digits) < 11 && (c >= '0' && c <= '9' || c == '-' && len(digits) == 0) {
		digits = append(digits, c)
		if c, err = r.in.ReadByte(); err != nil {
			return errCutRTF
		}
	}
	if c != ' ' {
		if err := r.in.UnreadByte(); err != nil {
			return err
		}
	}
	n, err := strconv.Atoi(string(digits))
	return r.word(string(word), n, err == nil)
}

// symbol is a control that is not a word.
func (r *rtfReader) symbol(c byte) error {
	switch c {
	case '\'':
		code := make([]byte, 2)
		if _, err := io.ReadFull(r.in, code); err != nil {
			return errCutRTF
		}
		if n, err := strconv.ParseUint(string(code), 16, 8); err == nil {
			r.byte(byte(n))
		}
	case '*':
		r.star = true
	case '\\', '{', '}':
		r.byte(c)
	case '~':
		r.byte(' ')
	case '_':
		r.byte('-')
	case '\r', '\n':
		r.flush()
		r.endParagraph()
	}
	return nil
}

func (r *rtfReader) word(word string, n int, given bool) error {
	star := r.star
	r.star = false
	switch word {
	case "u":
		r.unicode(n)
		return nil
	case "uc": // it may stand between the halves of a character
		r.state.uc = min(max(n, 0), 100)
		return nil
	case "bin":
		r.flush()
		_, err := io.CopyN(io.Discard, r.in, int64(max(n, 0)))
		if errors.Is(err, io.EOF) {
			return errCutRTF
		}
		return err
	}
	r.flush()
	if star && !rtfStarred[word] {
		r.state.dest = rtfSkipped
		return nil
	}
	r.do(word, n, given)
	return nil
}

// unicode adds a character given as a signed number of 16 bits, of which two may make one character.
func (r *rtfReader) unicode(n int) {
	c := rune(uint16(n)) //nolint:gosec // negative ones are meant so
	switch {
	case len(r.bytes) > 0:
		r.flush()
	case r.high != 0 && utf16.IsSurrogate(c):
		whole := utf16.DecodeRune(r.high, c)
		r.high = 0
		r.text(string(whole))
		r.skip = r.state.uc
		return
	}
	if c >= 0xd800 && c < 0xdc00 {
		r.high = c
	} else {
		r.flush()
		r.text(string(c))
	}
	r.skip = r.state.uc
}
