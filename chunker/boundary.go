package chunker

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/sentences"
	"github.com/clipperhouse/uax29/v2/words"
)

// How many bytes are searched for the start of a sentence or a word.
const (
	sentenceReach = 1024 // before the limit
	wordReach     = 256  // before the limit
	lookahead     = 64   // after the limit, to see whether a sentence or a word ends there
)

// lastSentence returns the last start of a sentence in (from, limit], or 0. A line end alone does not end a sentence,
// because prose is often wrapped.
func lastSentence(text string, from, limit int) int {
	from = runeStart(text, max(from, limit-sentenceReach))
	to := runeStart(text, min(limit+lookahead, len(text)))
	from += afterLongRun(text[from:to])
	window := unwrap.Replace(text[from:to])
	last := 0
	for it := sentences.FromString(window); it.Next(); {
		end := from + it.End()
		if end > limit || it.End() == len(window) {
			break
		}
		last = end
	}
	return last
}

// unwrap joins lines. Every byte keeps its position.
var unwrap = strings.NewReplacer("\n", " ", "\r", " ")

// afterLongRun returns the position after the window's last run of lookahead or more ASCII bytes that are neither
// letters nor digits. The search for sentences starts there, because its time is quadratic on such a run after a
// period.
func afterLongRun(window string) int {
	start, run := 0, 0
	for i := range len(window) {
		if c := window[i]; c >= utf8.RuneSelf || isWord(c) {
			run = 0
			continue
		}
		if run++; run >= lookahead {
			start = i + 1
		}
	}
	return start
}

// lastWord returns the last start of a word in (from, limit], or 0. It prefers a start after white space to other word
// boundaries of UAX #29.
func lastWord(text string, from, limit int) int {
	from = runeStart(text, max(from, limit-wordReach))
	window := text[from:runeStart(text, min(limit+lookahead, len(text)))]
	spaced, last := 0, 0
	for it := words.FromString(window); it.Next() && it.End() < len(window) && from+it.End() <= limit; {
		last = from + it.End()
		if isSpace(text[last-1]) && !isSpace(text[last]) {
			spaced = last
		}
	}
	return cmp.Or(spaced, last)
}

// lastLine returns the last start of a line in (from, limit], or 0.
func lastLine(text string, from, limit int) int {
	if i := strings.LastIndexByte(text[from:limit], '\n'); i >= 0 {
		return from + i + 1
	}
	return 0
}

// firstLine returns the first start of a line in [from, limit], or -1.
func firstLine(text string, from, limit int) int {
	if atLineStart(text, from) {
		return from
	}
	if i := strings.IndexByte(text[from:limit], '\n'); i >= 0 {
		return from + i + 1
	}
	return -1
}

// firstWord returns the first start of a word after white space in [from, limit], or -1.
func firstWord(text string, from, limit int) int {
	for i := max(from, 1); i <= limit && i < len(text); i++ {
		if isSpace(text[i-1]) && !isSpace(text[i]) {
			return i
		}
	}
	return -1
}

func atLineStart(text string, i int) bool { return i == 0 || text[i-1] == '\n' }

// runeStart returns the start of the rune that contains byte i. An invalid byte of UTF-8 counts as a rune. At the end
// of the text it returns i.
func runeStart(text string, i int) int {
	for j := i; i < len(text) && j >= 0 && j > i-utf8.UTFMax; j-- {
		if utf8.RuneStart(text[j]) {
			if _, size := utf8.DecodeRuneInString(text[j:]); j+size > i {
				return j
			}
			break
		}
	}
	return i
}

// runeEnd returns i if a rune starts there, else the end of the rune that contains i.
func runeEnd(text string, i int) int {
	if start := runeStart(text, i); start < i {
		_, size := utf8.DecodeRuneInString(text[start:])
		return start + size
	}
	return min(i, len(text))
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'
}

func isWord(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
}
