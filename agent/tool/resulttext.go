package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
)

// Bounds on the texts that a model reads, in characters. Letta: 50,000 for a result, 1,000 for an error.
const (
	MaxChars      = agent.MaxResultChars
	maxErrorChars = 1_000
	maxEchoChars  = 200   // bytes of a caller's text that a result repeats
	maxLineChars  = 2_100 // bytes of a file's line with a match
)

var rule = strings.Repeat("=", 80)

// failure returns the text of an error that a model can act on.
func failure(err error) string { return clip(err.Error(), maxErrorChars) }

// whereFound adds a sentence to an ErrNotFound that tells the model where to find existing ids.
func whereFound(err error, where string) error {
	if errors.Is(err, db.ErrNotFound) {
		return db.NotFound("%v: %s.", err, where)
	}
	return err
}

// capped cuts a result with more than most characters. It cuts at the end of a line, if a line ends in the second half.
func capped(s string, most int) string {
	n := utf8.RuneCountInString(s)
	if n <= most {
		return s
	}
	note := fmt.Sprintf(frame.OutputTruncated, n, most)
	beginning := clip(s, most-len(note))
	if i := strings.LastIndexByte(beginning, '\n'); i >= len(beginning)/2 {
		beginning = beginning[:i+1]
	}
	return beginning + note
}

// most renders as many of the first n parts as fit into a result of so many characters, but at least one. A rendering
// of more parts must be longer.
func most(chars, n int, render func(n int) string) string { return mostWithin(chars, nil, n, render) }

// mostWithin is like most, for a result that must also stay within the bounds of a policy.
func mostWithin(chars int, bounds *policy.ReadBounds, n int, render func(n int) string) string {
	fits := func(s string) bool { return utf8.RuneCountInString(s) <= chars && bounds.Fits(s) }
	if all := render(n); fits(all) {
		return all
	}
	first := sort.Search(n, func(i int) bool { return !fits(render(i + 1)) }) // the first part that does not fit
	return render(max(first, 1))
}

// excerptChars are the lengths, in characters, that the texts of hits are cut to until all of them fit a result. With 0
// a hit is a line without its text.
var excerptChars = []int{MaxChars, 2_000, 1_000, 700, 500, 350, 250, 175, 120, 80, 50, 0}

// shownHits says how many hits a result shows, the first ones, and how many characters of the text of each.
type shownHits struct{ n, chars int }

// mostHits renders all of n hits, with the longest excerpts of their texts with which they fit into a result of so many
// characters. If they do not fit at all, it renders the first of them.
func mostHits(chars, n int, render func(shownHits) string) string {
	for _, excerpt := range excerptChars {
		if all := render(shownHits{n, excerpt}); utf8.RuneCountInString(all) <= min(chars, MaxChars) {
			return all
		}
	}
	return most(chars, n, func(n int) string { return render(shownHits{n: n}) })
}

// excerpt returns at most n characters of a text, around a word of a query.
func excerpt(text, query string, n int) string {
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	lower, at := strings.ToLower(text), -1
	isBetween := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	words := strings.FieldsFunc(strings.ToLower(query), isBetween)
	slices.SortStableFunc(words, func(a, b string) int { return len(b) - len(a) })
	for _, word := range words {
		if at = strings.Index(lower, word); at >= 0 {
			break
		}
	}
	from := 0
	if at > 0 {
		from = max(min(utf8.RuneCountInString(lower[:at])-n/4, len(runes)-n), 0)
	}
	short := string(runes[from : from+n])
	if from > 0 {
		short = "…" + short
	}
	if from+n < len(runes) {
		short += "…"
	}
	return short
}

// cutNote says that hits show excerpts, and by which argument to ask for fewer; empty if they show their texts.
func (s shownHits) cutNote(limit string) string {
	if s.chars == MaxChars {
		return ""
	}
	return "\nNote: The texts are cut so that all fit here. To see more of each, ask for fewer with " + limit + ".\n"
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

// indented returns a text with each line indented, so that no line can look like a head.
func indented(s string) string {
	var b strings.Builder
	for l := range strings.SplitSeq(strings.TrimRight(s, "\n"), "\n") {
		b.WriteString("  " + line(l) + "\n")
	}
	return b.String()
}

// searchedFor returns a note on the spelling that a search used; empty if the query itself has that spelling.
func searchedFor(spelling string) string {
	if spelling == "" {
		return ""
	}
	return fmt.Sprintf("\n\nNote: Nothing has a word of the query as it is spelled: searched for '%s'.", echo(spelling))
}

// remarks returns the notes on a page of search results: which spelling was searched, what the ranking lacks, and why
// the page ends. Each of them may be empty. byWords says that the search used no vectors.
func remarks(spelling, note, ended string, byWords bool) string {
	notes := searchedFor(spelling) + rankingNote(note, byWords)
	if ended != "" {
		notes += "\n\nNote: " + ended
	}
	return notes
}

// rankingNote returns a note on what a ranking lacks: note itself or, if byWords is true, that it used no vectors. It
// is empty if the ranking lacks nothing.
func rankingNote(note string, byWords bool) string {
	switch {
	case note != "":
		return "\n\nNote: " + line(note)
	case byWords:
		return "\n\nNote: Ranked by words (no embedding model is configured)."
	}
	return ""
}

// includeHint returns a hint on how to write the filter, if the model seems to mean a list of files; otherwise it is
// empty.
func includeHint(include string) string {
	if hint := files.IncludeHint(include); hint != "" {
		return ". " + echo(hint)
	}
	return ""
}

// nextPage returns a note on how to read the results after these n; empty if there are no more.
func nextPage(offset, n int, more bool) string {
	if !more {
		return ""
	}
	return fmt.Sprintf("\nTo see the next results, repeat the call with offset=%d.\n", offset+n)
}

// echo returns a caller's text as a result repeats it: on one line, and at most maxEchoChars characters long.
func echo(s string) string {
	if short := clip(s, maxEchoChars); short != s {
		s = short + "…"
	}
	return line(s)
}

// ending returns the end of a caller's text as a result repeats it.
func ending(s string) string {
	if from := len(s) - maxEchoChars; from > 0 {
		return line("…" + strings.ToValidUTF8(s[from:], ""))
	}
	return line(s)
}

// line returns a text as one line of a result. It marks other line ends in the text, so that a document cannot forge
// lines of a result. Tools accept arguments with and without the mark.
func line(s string) string { return frame.MarkLineEnds(strings.ReplaceAll(s, "\n", " ")) }

// shortLine returns a text as one line, cut at maxLineChars.
func shortLine(s string) string {
	short := clip(s, maxLineChars)
	if short == s {
		return line(s)
	}
	return line(short) + fmt.Sprintf(" "+frame.LineCut, utf8.RuneCountInString(s))
}

// cutLine returns a line, cut at so many characters.
func cutLine(s string, chars int) string {
	short := clip(s, max(chars, 0))
	if short == s {
		return s
	}
	return short + fmt.Sprintf(" "+frame.LineCut, utf8.RuneCountInString(s))
}

// fileName returns a file's name as a result shows it. A name with control characters is quoted.
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

// count returns a number with its noun, such as "1 file" or "2 files".
func count(n int, of string) string { return fmt.Sprintf("%d %s", n, noun(n, of)) }

func noun(n int, one string) string {
	if n == 1 {
		return one
	}
	return one + "s"
}

// argument is an argument of a call that a result suggests.
type argument struct {
	name         string
	value, usual any
}

// invocation returns a call that a model can repeat unchanged. It leaves out arguments that have their default value.
func invocation(tool string, args ...argument) string {
	var shown []string
	for _, a := range args {
		if a.value != a.usual {
			shown = append(shown, a.name+"="+literal(a.value))
		}
	}
	return tool + "(" + joined(shown) + ")"
}

// literal returns a value in JSON.
func literal(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // the values here are only strings, numbers and structs of them
	}
	return strings.TrimSuffix(b.String(), "\n")
}
