package compaction

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// lineWords returns the content words of a line, or all of its words if it has hardly any.
func lineWords(text string) []string {
	all := contentWords(text)
	if len(all) >= leastWordsOfLine {
		return all
	}
	all = slices.DeleteFunc(spacedOf(text).words, func(w string) bool {
		return !strings.ContainsFunc(w, unicode.IsLetter)
	})
	slices.Sort(all)
	return slices.Compact(all)
}

// item is a line of a section.
type item struct {
	text    string // with the number of its message
	seq     int64  // of its message; 0 if it is unknown
	words   []string
	score   float64
	carried bool // from the previous summary
}

// extraction is what was found in messages, by section, in the order in which it was said.
type extraction struct {
	items  [sectionCount][]item
	said   frequency
	layout layout

	outputLines int // of a tool's result that are looked at
}

// numbered matches a line of an extracted summary.
var numbered = regexp.MustCompile(`^- (?:\[(\d+)(?:–(\d+))?\] )?`)

// add adds a sentence to a section whose sentences are compared.
func (x *extraction) add(in section, i item, s sentence, weight float64) {
	if strings.HasPrefix(s.text, "result of ") {
		weight = outputTrust
	}
	question := strings.HasSuffix(s.text, "?")
	if len(contentWords(s.text)) < leastWordsOfLine && (question || !s.saysMuchInFewWords(in, weight)) {
		return
	}
	if in == told && question && s.opening&asking == 0 { // cueScore lowers the others
		weight /= 2
	}
	i.words = lineWords(s.text)
	i.score = weight * trust[in] * s.cueScore()
	x.said.note(i.words)
	x.items[in] = append(x.items[in], i)
}
