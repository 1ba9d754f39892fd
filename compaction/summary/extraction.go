package summary

import (
	"github.com/loci-memory/loci/compaction/prose"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// lineWords returns the content words of a line, or all of its words if it has hardly any content words.
func lineWords(text string) []string {
	all := prose.ContentWords(text)
	if len(all) >= leastWordsOfLine {
		return all
	}
	all = slices.DeleteFunc(prose.SpacedOf(text).Words, func(w string) bool {
		return !strings.ContainsFunc(w, unicode.IsLetter)
	})
	slices.Sort(all)
	return slices.Compact(all)
}

// item is a line of a section.
type item struct {
	text    string // with the number of its message
	seq     int64  // seq of its message; 0 if unknown
	words   []string
	score   float64
	carried bool // it comes from the previous summary
	failed  bool // it is of a result that failed
}

// extraction holds the lines found in messages, by section, in the order of the conversation.
type extraction struct {
	items  [sectionCount][]item
	said   prose.Frequency
	layout layout

	outputLines int // lines of each tool result that are read
}

// numbered matches the beginning of a line in an extracted summary.
var numbered = regexp.MustCompile(`^- (?:\[(\d+)(?:–(\d+))?\] )?`)

// add adds a sentence to a section with compared sentences.
func (x *extraction) add(in section, i item, s prose.Sentence, weight float64) {
	if strings.HasPrefix(s.Text, "result of ") {
		weight = outputTrust
		if value.MatchString(s.Text) {
			weight = valueTrust
		}
	}
	question := strings.HasSuffix(s.Text, "?") && !s.IsUnread()
	if len(prose.ContentWords(s.Text)) < leastWordsOfLine && (question || !saysMuchInFewWords(s, in, weight)) {
		return
	}
	if in == told && question && s.Opening&prose.Asking == 0 { // CueScore lowers the others
		weight /= 2
	}
	i.words = lineWords(s.Text)
	i.score = weight * trust[in] * s.CueScore()
	x.said.Note(i.words)
	x.items[in] = append(x.items[in], i)
}
