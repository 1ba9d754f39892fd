package main

import (
	"io"
	"os"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// forTerminal returns a writer for text that others may have written. If w is a terminal, characters that could control
// the terminal are replaced. Otherwise it returns w.
func forTerminal(w io.Writer) io.Writer {
	if !isTerminal(w) {
		return w
	}
	return &tameWriter{to: w}
}

// tameWriter replaces characters that could control a terminal. It holds incomplete characters back.
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
	complete := len(text)
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if b := text[len(text)-n:]; utf8.RuneStart(b[0]) {
			if !utf8.FullRune(b) {
				complete -= n
			}
			break
		}
	}
	t.held = append([]byte(nil), text[complete:]...)
	if _, err := io.WriteString(t.to, tame(string(text[:complete]))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// tame replaces the characters in a text that could control a terminal: control characters except tab and line feed,
// bytes that are no character, and Unicode characters that change the direction of a line, end it, or are invisible
// tags.
func tame(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) ||
			unicode.In(r, unicode.Zl, unicode.Zp) || r >= 0xE0000 && r <= 0xE007F {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// rawTerminal returns the writer of a terminal itself, for this program's own control sequences.
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
