package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loci-memory/loci/recall"
)

// What a model reads is bounded. Letta: 50,000 characters of a result, 1,000 of an error.
const (
	MaxChars      = 50_000
	maxErrorChars = 1_000
	maxEchoChars  = 200   // of what a caller wrote, repeated to it
	maxLineChars  = 2_100 // of one line of a file among matches
)

var rule = strings.Repeat("=", 80)

// failure is the text of an error that a model can act on.
func failure(err error) string { return clip(err.Error(), maxErrorChars) }

// capped cuts a result that is too long, at the end of a line if there is one near.
func capped(s string) string {
	n := utf8.RuneCountInString(s)
	if n <= MaxChars {
		return s
	}
	note := fmt.Sprintf("... [NOTE: function output was truncated since it exceeded the character limit (%d > %d)]", n,
		MaxChars)
	kept := clip(s, MaxChars-len(note))
	if i := strings.LastIndexByte(kept, '\n'); i >= len(kept)/2 {
		kept = kept[:i+1]
	}
	return kept + note
}

// most renders as many of the first n parts as fit a result, at least one. The rendering must grow with its parts.
func most(n int, render func(n int) string) string {
	fits := func(s string) bool { return utf8.RuneCountInString(s) <= MaxChars }
	if all := render(n); fits(all) {
		return all
	}
	first := sort.Search(n, func(i int) bool { return !fits(render(i + 1)) }) // of the parts that do not fit
	return render(max(first, 1))
}

// clip returns the first n characters of s.
func clip(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}

// echo is what a caller wrote as a result repeats it: one line, not too long.
func echo(s string) string {
	if short := clip(s, maxEchoChars); short != s {
		s = short + "…"
	}
	return line(s)
}

// line is one line of a text as one line of a result: a stray line end in it is marked, or a document could forge lines
// of ours. Arguments are taken with and without the mark.
func line(s string) string { return recall.MarkLineEnds(strings.ReplaceAll(s, "\n", " ")) }

// shortLine is a line whose end is cut where it is too long to be one of many.
func shortLine(s string) string {
	short := clip(s, maxLineChars)
	if short == s {
		return line(s)
	}
	return fmt.Sprintf("%s ... [cut: the line has %d characters]", line(short), utf8.RuneCountInString(s))
}

// fileName is a file's name as a result shows it: as it is, or quoted where it could be mistaken for more than a name.
func fileName(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }) {
		return strconv.Quote(s)
	}
	return s
}

func fileNames(all []string) string {
	shown := make([]string, len(all))
	for i, name := range all {
		shown[i] = fileName(name)
	}
	return joined(shown)
}

func joined(words []string) string { return strings.Join(words, ", ") }

// count is "1 file", "2 files".
func count(n int, of string) string { return fmt.Sprintf("%d %s", n, noun(n, of)) }

func noun(n int, one string) string {
	if n == 1 {
		return one
	}
	return one + "s"
}

// argument is one of a call that a result proposes.
type argument struct {
	name         string
	value, usual any
}

// invocation is a call that a model can make as it stands; arguments at their usual value are left out.
func invocation(tool string, args ...argument) string {
	var shown []string
	for _, a := range args {
		if a.value != a.usual {
			shown = append(shown, a.name+"="+literal(a.value))
		}
	}
	return tool + "(" + joined(shown) + ")"
}

// literal is a value in JSON, quotes and line ends escaped.
func literal(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // values here are strings, numbers and structs of them
	}
	return strings.TrimSuffix(b.String(), "\n")
}
