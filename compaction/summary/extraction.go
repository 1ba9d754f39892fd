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
	text     string // with the number of its message
	seq      int64  // seq of its message; 0 if unknown
	words    []string
	score    float64
	carried  bool   // it comes from the previous summary
	failed   bool   // it is of a result that failed
	routine  bool   // it is a request that only names what is next to be looked at
	rule     bool   // it asks to be remembered, or holds from now on
	focused  bool   // it has most words of the focus
	corrects bool   // its words say that it corrects something
	contrast bool   // they only say that something with a number is not so
	output   bool   // it is a line of a result
	shape    string // of such a line
	shapes   int    // how many lines of that shape count fully
	same     string // of other lines: their words without names and numbers
}

// extraction holds the lines found in messages, by section, in the order of the conversation.
type extraction struct {
	items  [sectionCount][]item
	said   prose.Frequency
	layout layout

	outputLines int            // lines of each tool result that are read
	shapes      map[string]int // of lines of results: how many have it

	same map[string]map[int64]bool // of other lines: their words without names and numbers → the messages that say so
}

// numbered matches the beginning of a line in an extracted summary.
var numbered = regexp.MustCompile(`^- (?:\[(\d+)(?:–(\d+))?\] )?`)

// add adds a sentence to a section with compared sentences.
func (x *extraction) add(in section, i item, s prose.Sentence, weight float64) {
	if line, ok := ofResult(s.Text); ok { // carried over
		s, weight, i.output = prose.SentenceOf(line), trustOfLine(line, true, true), true
	}
	if i.output {
		i.shape, i.shapes = shapeOf(s.Text), sameShapes
		if givesValues(s.Text) {
			i.shapes = valueShapes
		}
		x.shapes[i.shape]++
	}
	question := s.Asks() && !s.IsUnread()
	if len(prose.ContentWords(s.Text)) < leastWordsOfLine && (question || !saysMuchInFewWords(s, in, weight)) {
		return
	}
	bare := in == told && s.IsBare()
	if bare {
		weight *= bareTrust
	}
	if in == told && question && s.Opening&prose.Asking == 0 { // CueScore lowers the others
		weight /= 2
	}
	i.words, i.rule = lineWords(s.Text), s.Is(prose.Noting|prose.Standing)
	i.corrects, i.contrast = s.Is(prose.Correcting), s.Is(prose.Contrasting)
	cue := s.CueScore()
	if in == findings { // what an assistant or a program says may be long and say nothing
		cue -= prose.Detail(s.Text)
	}
	switch {
	case in == told && !question && !bare && s.Opening&prose.Asking == 0 && len(i.words) >= leastStatement:
		cue += statementCue
	case weight == valueTrust:
		cue += valueCue
	case in == findings && s.Opening&prose.Introducing != 0: // it says what the assistant did
		cue -= 1
	case in == findings && s.Is(prose.Obliging) && !s.Is(prose.Standing): // it says how something works
		cue -= describingCue
	}
	i.score = weight * trust[in] * cue
	if !i.output {
		if i.same = pattern(s.Text); x.same[i.same] == nil {
			x.same[i.same] = map[int64]bool{}
		}
		x.same[i.same][i.seq] = true
	}
	x.said.Note(i.words)
	x.items[in] = append(x.items[in], i)
}

// pattern returns the words of a sentence without names and numbers. Sentences of chatter have the same.
func pattern(text string) string {
	for _, id := range prose.Identifiers(text) {
		text = strings.ReplaceAll(text, id, "0")
	}
	words := prose.SpacedOf(text).Words
	for n, w := range words {
		if strings.ContainsFunc(w, unicode.IsDigit) {
			words[n] = "0"
		}
	}
	return strings.Join(words, " ")
}

// shapeOf returns a line with one letter for each word and one digit for each number. Lines of a log or a list have the
// same shape.
func shapeOf(line string) string {
	var b strings.Builder
	last := rune(0)
	for _, r := range line {
		switch {
		case unicode.IsLetter(r) || unicode.IsMark(r):
			r = 'a'
		case unicode.IsDigit(r):
			r = '0'
		case unicode.IsSpace(r):
			r = ' '
		}
		if r != last {
			b.WriteRune(r)
		}
		last = r
	}
	return b.String()
}

// resultLine matches a line of a result in an extracted summary, and lastResultLine the end of a longer last result.
var (
	resultLine     = regexp.MustCompile(`^result of (?:a tool|\S+): `)
	lastResultLine = regexp.MustCompile(`^\[\d+\] last result of `)
)

// ofResult returns a line of a result without the name of its tool.
func ofResult(text string) (line string, ok bool) {
	head := resultLine.FindString(text)
	return text[len(head):], head != ""
}
