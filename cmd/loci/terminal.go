package main

import (
	"io"
	"os"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// forTerminal returns a writer of text that shows what others wrote without obeying it: if w is a terminal, the
// characters that could steer it are replaced. Any other writer is returned as it is.
func forTerminal(w io.Writer) io.Writer {
	if !isTerminal(w) {
		return w
	}
	return &tameWriter{to: w}
}

// tameWriter replaces what could steer a terminal. It holds back the bytes of a character that is not complete.
type tameWriter struct {
	to io.Writer

	mu   sync.Mutex
	held []byte
}

// Write implements io.Writer.
func (t *tameWriter) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := append(t.held, p...)
	whole := len(text)
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if b := text[len(text)-n:]; utf8.RuneStart(b[0]) {
			if !utf8.FullRune(b) {
				whole -= n
			}
			break
		}
	}
	t.held = append([]byte(nil), text[whole:]...)
	if _, err := io.WriteString(t.to, tame(string(text[:whole]))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// tame returns a text in which what could steer a terminal is replaced: control characters other than tab and line
// feed, bytes that are no character, and characters that change the direction of a line, end it, or are Unicode's tags,
// which nobody sees.
func tame(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) ||
			unicode.In(r, unicode.Zl, unicode.Zp) || r >= 0xE0000 && r <= 0xE007F {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// rawTerminal returns the writer of a terminal itself, for what this program makes up to steer it.
func rawTerminal(w io.Writer) io.Writer {
	if t, ok := w.(*tameWriter); ok {
		return t.to
	}
	return w
}

func isTerminal(w io.Writer) bool {
	f, ok := rawTerminal(w).(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
