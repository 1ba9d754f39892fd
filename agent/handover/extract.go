package handover

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/recall"
)

// sentenceEnd matches the end of a sentence, or of a line. Scripts without spaces have signs of their own.
var sentenceEnd = regexp.MustCompile(`[.!?؟](?:\s+|$)|[。！？]|\n+`)

// leastSentenceWidth is the width of the shortest sentence that says something: in scripts without spaces, a character
// counts as three.
const leastSentenceWidth = 12

// extract finds the content of a hand-over by rules, without a model: the first request, sentences that say what was
// done, decided or learned, what users tell of themselves, new states of projects, what holds the work up, and the last
// question. If no sentence says what is next, the last request is, unless it was answered.
func extract(m material) (out session) {
	x := extraction{lists: map[string]*[]item{SectionDone: &out.Done, SectionDecided: &out.Decided,
		SectionLearned: &out.Learned, SectionNext: &out.Next, SectionOpen: &out.Open, SectionBlocked: &out.Blocked}}
	for _, l := range m.Lines {
		switch l.Role {
		case recall.User:
			x.user(l)
		case recall.Assistant:
			x.request = nil // it was answered
			x.read(l)
		}
	}
	if x.question != nil && !slices.ContainsFunc(out.Open, func(o item) bool { return o.Text == x.question.Text }) {
		out.Open = append(out.Open, *x.question)
	}
	if n := len(out.Next); n > 0 {
		out.Next = out.Next[n-1:]
	} else if x.request != nil {
		out.Next = []item{{Text: "Go on after the last request: " + x.request.Text, Seqs: x.request.Seqs}}
	}
	if m.Opening != nil {
		if asked := new(extraction).read(*m.Opening); len(asked) > 0 {
			out.Task = asked[:1]
		}
	}
	out.Entities = newest(x.entities)
	return out
}

// extraction is the state of an extract.
type extraction struct {
	lists    map[string]*[]item // section → its items
	entities []item
	request  *item // the last request, if nobody answered it
	question *item // the last question to the user, if it was not answered
}

// user reads what a user said.
func (x *extraction) user(l line) {
	x.question, x.request = nil, nil
	asked := x.read(l)
	if len(asked) == 0 {
		return
	}
	x.request = &asked[0]
	for i := range asked {
		if strings.HasSuffix(asked[i].Text, "?") {
			x.request = &asked[i]
		}
	}
}

// read puts the sentences of a message into their sections. It returns all but facts, new states and partings, because
// any of the others may ask for something.
func (x *extraction) read(l line) (asked []item) {
	for _, text := range sentences(l.Text) {
		found := item{Text: text, Seqs: []int64{l.Seq}}
		section, isQuestion := sectionOf(text), strings.ContainsAny(text[len(text)-1:], "?") ||
			strings.HasSuffix(text, "？") || strings.HasSuffix(text, "؟")
		name := stateOf(text)
		switch {
		case l.Role == recall.User && !isQuestion && isUserFact(text):
			x.tell(found)
			continue
		case !isQuestion && name != "":
			found.Name, found.Kind = name, "project"
			x.entities = append(x.entities, found)
			continue
		case section == SectionOpen:
			x.add(section, found)
		case isQuestion && l.Role == recall.Assistant:
			x.question = &found
		case !isQuestion:
			x.add(section, found)
		}
		if !parting.MatchString(text) {
			asked = append(asked, found)
		}
	}
	return asked
}

func (x *extraction) add(section string, found item) {
	if list := x.lists[section]; list != nil {
		*list = newest(append(*list, found))
	}
}

// userName is the name of the entity that stands for the agent's user.
const userName = "user"

// tell adds what a user told of themselves. It takes the place of what they told of the same before.
func (x *extraction) tell(found item) {
	found.Name, found.Kind = userName, "person"
	if attribute := attributeOf(found.Text); attribute != "" {
		x.entities = slices.DeleteFunc(x.entities, func(o item) bool {
			return o.Name == userName && attributeOf(o.Text) == attribute
		})
	}
	x.entities = append(x.entities, found)
}

func newest(items []item) []item { return items[max(0, len(items)-maxPerSection):] }

func sectionOf(sentence string) string {
	if undecided.MatchString(sentence) {
		return SectionOpen
	}
	for _, s := range signs {
		looksDone := s.section == SectionDone && (wished.MatchString(sentence) || undone.MatchString(sentence))
		if s.form.MatchString(sentence) && !looksDone {
			return s.section
		}
	}
	return ""
}

// sentences returns the sentences of a text, each on one line. It leaves out code and very short sentences, and cuts
// very long ones.
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
			if end[0] < len(line) && line[end[0]] == '.' && !prose.EndsAt(line[from:end[0]], line[end[0]+1:]) &&
				end[1] < len(line) { // of an abbreviation or a date
				continue
			}
			one := strings.Join(strings.Fields(strings.TrimLeft(line[from:end[1]], " \t-*>#")), " ")
			from = end[1]
			if width(one) >= leastSentenceWidth {
				all = append(all, shortened(one))
			}
		}
	}
	return all
}

// shortened returns a sentence, or the words at its beginning that an item has room for. A question stays one.
func shortened(sentence string) string {
	const most = maxTextChars - 40
	if utf8.RuneCountInString(sentence) <= most {
		return sentence
	}
	shown := string([]rune(sentence)[:most-2])
	if i := strings.LastIndexByte(shown, ' '); i > 0 {
		shown = shown[:i]
	}
	if shown += " …"; strings.HasSuffix(sentence, "?") {
		shown += "?"
	}
	return shown
}

// dense matches a character of a script that writes words without spaces.
var dense = regexp.MustCompile(`[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}]`)

// width returns the number of characters in a text. A character of a dense script counts as three.
func width(text string) int {
	return utf8.RuneCountInString(text) + 2*len(dense.FindAllStringIndex(text, -1))
}
