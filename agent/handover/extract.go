package handover

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/recall"
)

// signs lists, for each section, the patterns of its sentences. A sentence belongs to the first section that has a
// matching pattern.
var signs = []struct {
	section string
	form    *regexp.Regexp
}{
	{SectionDecided, regexp.MustCompile(`(?i)\b(?:decided|agreed|we(?:'ll| will) (?:use|keep|go with)|let's use|` +
		`chose|instead of|from now on|always|never)\b`)},
	{SectionLearned, regexp.MustCompile(`(?i)\b(?:turns out|the cause|root cause|learned|lesson|found (?:out|that)|` +
		`because of|works only|does not work|it fails|fails (?:if|when|because))\b`)},
	{SectionNext, regexp.MustCompile(`(?i)\b(?:next(?: step\b|[,:])|to do:|(?:i(?:'ll| will) (?:now|then|continue)|` +
		`todo|remains to|still (?:need|have) to)\b)`)},
	{SectionOpen, regexp.MustCompile(`(?i)^\W*open (?:questions?|issues?|points?)\b|\b(?:remains?|still) open\b|` +
		`\b(?:is|are) (?:still )?(?:unclear|undecided)\b`)},
	{SectionDone, regexp.MustCompile(`(?i)\b(?:(?:i|we)(?:'ve| have)? (?:now )?` +
		`(?:wrote|built|made|sent|set|ran|split|put|\pL{3,}ed)\b|is done|are done|is fixed|now passes?|` +
		`all tests pass)\b`)},
}

// wished matches wishes and plans, which look like something that was done.
var wished = regexp.MustCompile(`(?i)\b(?:i|we)(?:'ve| have)? (?:now )?` +
	`(?:need|want|hop|lik|expect|suppos|assum|plann|ask)ed\b`)

// sentenceEnd matches the end of a sentence, or of a line.
var sentenceEnd = regexp.MustCompile(`[.!?](?:\s+|$)|\n+`)

const leastSentenceChars = 12

// extract finds the content of a hand-over by rules, without a model: sentences that say what was done, decided or
// learned, and the last question. If no sentence says what is next, the last request is the next step.
func extract(m material) (out session) {
	lists := map[string]*[]item{SectionDone: &out.Done, SectionDecided: &out.Decided, SectionLearned: &out.Learned,
		SectionNext: &out.Next, SectionOpen: &out.Open}
	var request, question *item
	for _, l := range m.Lines {
		if l.Role != recall.User && l.Role != recall.Assistant {
			continue
		}
		for _, text := range sentences(l.Text) {
			found := item{Text: text, Seqs: []int64{l.Seq}}
			section := sectionOf(text)
			switch {
			case section == SectionOpen:
				out.Open = newest(append(out.Open, found))
			case strings.HasSuffix(text, "?") && l.Role == recall.Assistant:
				question = &found
			case strings.HasSuffix(text, "?"):
				request = &found
			default:
				if list := lists[section]; list != nil {
					*list = newest(append(*list, found))
				}
			}
		}
		if l.Role == recall.User {
			question = nil // the question was answered
			if all := sentences(l.Text); len(all) > 0 {
				request = &item{Text: all[0], Seqs: []int64{l.Seq}}
			}
		}
	}
	if question != nil && !slices.ContainsFunc(out.Open, func(o item) bool { return o.Text == question.Text }) {
		out.Open = append(out.Open, *question)
	}
	if n := len(out.Next); n > 0 {
		out.Next = out.Next[n-1:]
	} else if request != nil {
		out.Next = []item{{Text: "Go on after the last request: " + request.Text, Seqs: request.Seqs}}
	}
	return out
}

func newest(items []item) []item { return items[max(0, len(items)-maxPerSection):] }

func sectionOf(sentence string) string {
	for _, s := range signs {
		if s.form.MatchString(sentence) && (s.section != SectionDone || !wished.MatchString(sentence)) {
			return s.section
		}
	}
	return ""
}

// sentences returns the sentences of a text, each on one line. It leaves out code and very short sentences.
func sentences(text string) (all []string) {
	fenced := false
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			continue
		}
		if fenced {
			continue
		}
		from := 0
		ends := append(sentenceEnd.FindAllStringIndex(line, -1), []int{len(line), len(line)})
		for _, end := range ends {
			one := strings.Join(strings.Fields(strings.TrimLeft(line[from:end[1]], " \t-*>#")), " ")
			from = end[1]
			if n := utf8.RuneCountInString(one); n >= leastSentenceChars && n <= maxTextChars-40 {
				all = append(all, one)
			}
		}
	}
	return all
}
