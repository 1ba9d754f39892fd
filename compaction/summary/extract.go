package summary

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// extract finds what may matter later in messages: requests, what the user told, decisions, findings, open questions,
// errors, calls and the last state. It carries over the previous summary: extracted lines unchanged, and the sentences
// of a summary that a model wrote.
func extract(messages []recall.Message, previous string, must prose.MustMention) *extraction {
	return extractAs(layoutOf(nil), messages, previous, must)
}

// extractAs is extract with the headings of a layout. It also reads the previous summary by that layout.
func extractAs(l layout, messages []recall.Message, previous string, must prose.MustMention) *extraction {
	x := &extraction{said: prose.Frequency{Of: map[string]int{}}, layout: l, shapes: map[string]int{},
		same: map[string]map[int64]bool{}}
	x.carry(previous)
	messages = slices.DeleteFunc(slices.Clone(messages), prose.IsWarning)
	names := prose.CallNames(messages)
	x.outputLines = min(max(allOutputLines/max(results(messages), 1), leastOutputLines), outputLines)
	for _, m := range messages {
		for _, part := range m.Content {
			switch part.Type {
			case recall.Text:
				x.addMessage(m, prose.Unmarked(part.Text))
			case recall.ToolReturn:
				x.addResult(m, part, cmp.Or(names[part.CallID], "a tool"))
			default:
			}
		}
	}
	x.items[calls] = append(x.items[calls], callLines(messages)...)
	x.items[state] = lastState(messages, names)
	if l.next {
		x.items[next] = nextStep(messages)
	}
	if all := x.items[requests]; l.forms && len(x.items[told]) == 0 && len(all) > 0 { // what the user asked for
		i := all[len(all)-1]
		i.words, i.score = lineWords(i.text), strongScore
		x.items[told] = []item{i}
	}
	x.rate(must)
	return x
}

// results counts the tool results in messages.
func results(messages []recall.Message) (n int) {
	for _, m := range messages {
		for _, p := range m.Content {
			if p.Type == recall.ToolReturn {
				n++
			}
		}
	}
	return n
}

// saysNothing are lines of summaries without content.
var saysNothing = map[string]bool{"": true, prose.ExtractedBy: true, prose.LeftOut: true, prose.NothingSaid: true,
	prose.NoHistory: true,
	prose.SplitRule: true, prose.SplitTitle: true}

// carry adds the previous summary's lines to their sections, and sentences that a model wrote to Earlier. A request
// need not stay, because its sentences are also added to what the user told.
func (x *extraction) carry(previous string) {
	current, text := []section{earlier}, []string{}
	known := []layout{x.layout, layoutOf(nil), layoutOf(prose.SplitFormat)}
	for line := range strings.Lines(previous) {
		line = strings.TrimSpace(line)
		if group := sectionsUnder(known, line); group != nil {
			current = group
			continue
		}
		if strings.HasPrefix(line, "## ") {
			current = []section{earlier}
			continue
		}
		found := numbered.FindStringSubmatch(line)
		if saysNothing[line] || strings.HasPrefix(line, prose.AlsoNamed) {
			continue
		}
		if found == nil || found[1] == "" && slices.Contains(current, earlier) {
			text = append(text, prose.Unmarked(strings.TrimPrefix(line, "- ")))
			continue
		}
		if strings.HasSuffix(line, prose.ClipSuffix) { // a line that was cut
			continue
		}
		seq, _ := strconv.ParseInt(cmp.Or(found[2], found[1]), 10, 64)
		text := line[len(found[0]):]
		x.carryLine(sectionOfLine(current, text), seq, text, strings.TrimPrefix(line, "- "))
	}
	for _, s := range prose.Sentences(strings.Join(text, "\n")) {
		x.add(earlier, item{text: prose.OneLine(s, sentenceChars), carried: true}, prose.SentenceOf(s), 1)
	}
}

// sectionsUnder returns the sections under a heading in the first layout that has the heading; nil if none has it.
func sectionsUnder(known []layout, heading string) []section {
	for _, l := range known {
		if group := l.sectionsOf(heading); group != nil {
			return group
		}
	}
	return nil
}

func (x *extraction) carryLine(in section, seq int64, text, line string) {
	i := item{text: line, seq: seq, carried: true}
	switch in {
	case named, next: // names that matter are also in mustMention; the next step is another one now
	case state:
		if _, ok := ofResult(text); ok {
			x.add(findings, i, prose.SentenceOf(text), 1)
		}
		if answer, ok := strings.CutPrefix(text, "assistant: "); ok {
			for _, said := range prose.Sentences(strings.TrimSuffix(answer, " …")) {
				if strings.HasSuffix(said, "…") { // it was cut
					continue
				}
				s := prose.SentenceOf(said)
				x.add(sectionIn(s, findings), item{text: fmt.Sprintf("[%d] %s", seq, said), seq: seq, carried: true}, s, 1)
			}
		}
	case requests:
		text = markedRequest.ReplaceAllString(text, "")
		i.routine = isRoutine(text)
		x.items[requests] = append(x.items[requests], i)
		for _, text := range prose.Sentences(text) {
			s := prose.SentenceOf(text)
			x.add(sectionIn(s, told), item{text: fmt.Sprintf("[%d] %s", seq, text), seq: seq, carried: true}, s, 1)
		}
	case failures, calls:
		x.items[in] = append(x.items[in], i)
	default:
		x.add(in, i, prose.SentenceOf(text), 1)
	}
}

// addMessage adds a user's message as a request, and the sentences of any message.
func (x *extraction) addMessage(m recall.Message, text string) {
	in := findings
	if m.Role == recall.User {
		in = told
		if strings.TrimSpace(text) != "" {
			x.items[requests] = append(x.items[requests],
				item{seq: m.Seq, text: fmt.Sprintf("[%d] %s", m.Seq, prose.Quoted(text)), routine: isRoutine(text)})
		}
	}
	if len(text) > 64<<10 { // a document rather than an utterance
		text = tokens.PrefixChars(text, 16<<10)
	}
	for n, part := range strings.Split(text, "```") {
		code := n%2 == 1
		for _, text := range prose.Sentences(part) {
			if code && isSource(text) {
				continue
			}
			s := prose.SentenceOf(text)
			x.add(sectionIn(s, in), item{seq: m.Seq, text: fmt.Sprintf("[%d] %s", m.Seq, prose.OneLine(text, sentenceChars))},
				s, 1)
		}
	}
}

// isRoutine reports whether a request only names what is next to be looked at. Once it is answered, it matters no more.
func isRoutine(text string) bool {
	return len(text) < sentenceChars && !slices.ContainsFunc(prose.Sentences(text), func(s string) bool {
		return !prose.SentenceOf(s).IsBare()
	})
}

// Shares that lines gain: an old line for its age, and a line with identifiers that must be mentioned.
const (
	ageGain     = 0.6
	mentionGain = 0.3
)

// rate completes the scores of compared lines. It adds to them for rare words, for age, and for identifiers.
func (x *extraction) rate(must prose.MustMention) {
	first, last := int64(0), int64(0)
	for _, items := range x.items {
		for _, i := range items {
			if last = max(last, i.seq); i.seq > 0 && (first == 0 || i.seq < first) {
				first = i.seq
			}
		}
	}
	defer x.joinCorrections()
	defer x.correct()
	for s := range x.items {
		if trust[s] == 0 {
			continue
		}
		for n := range x.items[s] {
			i := &x.items[s][n]
			rare := x.said.Novelty(i.words)
			age := float64(last-i.seq) / float64(max(last-first, 1))
			if !i.carried {
				age = 0
			}
			i.score *= rare * rare * (1 + ageGain*min(age, 1))
			if n := x.shapes[i.shape]; i.shape != "" && n > i.shapes {
				i.score *= float64(i.shapes) / float64(n)
			}
			if n := len(x.same[i.same]); n > 1 && !i.rule && !i.corrects {
				i.score /= float64(n) // chatter
			}
			i.score *= 1 + mentionGain*float64(min(must.CountIn(i.text), 2))
		}
	}
}

// correct scores what the user told later about the same at least as high as what it corrects.
func (x *extraction) correct() {
	all := x.items[told][max(len(x.items[told])-maxCorrected, 0):]
	topics := make([][]string, len(all))
	for i := range all {
		topics[i] = prose.Topic(numbered.ReplaceAllString("- "+all[i].text, ""))
	}
	for later := range all {
		for earlier := range all[:later] {
			was, now := &all[earlier], &all[later]
			same := len(topics[earlier])
			if same == 0 || same < 2 && !now.corrects || prose.ShareIn(topics[earlier], topics[later]) < 1 {
				continue
			}
			now.score = max(now.score, correctedGain*was.score)
		}
	}
}

const (
	maxCorrected  = 150  // of the newest facts from the user that are compared
	correctedGain = 1.05 // how much higher a correction is scored
)

// focusOn raises the scores of compared lines that share words, names or numbers with a focus.
func (x *extraction) focusOn(focus string) {
	words := prose.ContentWords(focus)
	if len(words) == 0 {
		words = lineWords(focus)
	}
	var numbers []string // words with digits, which lineWords leaves out
	for _, w := range prose.SpacedOf(focus).Words {
		if strings.ContainsAny(w, "0123456789") {
			numbers = append(numbers, " "+w+" ")
		}
	}
	for s := range x.items {
		for n := range x.items[s] {
			i := &x.items[s][n]
			gain := prose.ShareIn(words, i.words)
			text := prose.SpacedOf(i.text).Text
			for _, number := range numbers {
				if strings.Contains(text, number) {
					gain += numberGain
				}
			}
			i.score *= 1 + focusGain*gain
			i.focused = gain >= focusedGain
		}
	}
}

const (
	focusedGain = 0.5 // from this gain on a line may repeat the words of others
	focusGain   = 5   // how much a line with all words of the focus gains
	numberGain  = 2   // how many times as much it gains for each word with digits
)

// toolCall is a call and its outcome.
type toolCall struct {
	seq             int64
	name, arguments string
	main            string // the first text in its arguments
	outcome         string
	failed          bool
}

// callLines returns a line for each call. If there are more than maxCallLines calls, it returns a line for each tool.
func callLines(messages []recall.Message) []item {
	var all []*toolCall
	open := map[string]*toolCall{}
	for _, m := range messages {
		for _, p := range m.Content {
			switch p.Type {
			case recall.ToolCall:
				c := &toolCall{seq: m.Seq, name: prose.OneLine(p.Name, sentenceChars), arguments: prose.OneLine(p.Input,
					argumentChars)}
				if texts := recall.ArgumentTexts(p.Input); len(texts) > 0 {
					c.main = prose.OneLine(texts[0], argumentChars/2)
				}
				all, open[p.CallID] = append(all, c), c
			case recall.ToolReturn:
				if c := open[p.CallID]; c != nil {
					c.outcome, c.failed = fmt.Sprintf(" -> %d characters", len([]rune(p.Text))), p.Failed()
					if c.failed {
						c.outcome = " -> an error"
					}
				}
			default:
			}
		}
	}
	if len(all) > maxCallLines {
		return collapsed(all)
	}
	items := make([]item, len(all))
	for i, c := range all {
		items[i] = item{seq: c.seq, text: fmt.Sprintf("[%d] %s(%s)%s", c.seq, c.name, c.arguments, c.outcome)}
	}
	return items
}

func collapsed(all []*toolCall) []item {
	var order []string
	by := map[string][]*toolCall{}
	for _, c := range all {
		if by[c.name] == nil {
			order = append(order, c.name)
		}
		by[c.name] = append(by[c.name], c)
	}
	var items []item
	for _, name := range order {
		group := by[name]
		failed := 0
		var on []string
		for _, c := range slices.Backward(group) {
			if c.failed {
				failed++
			}
			if c.main != "" && len(on) < 8 && !slices.Contains(on, c.main) {
				on = append(on, c.main)
			}
		}
		text := fmt.Sprintf("[%d–%d] %s, %d times", group[0].seq, group[len(group)-1].seq, name, len(group))
		if failed > 0 {
			text += fmt.Sprintf(", %d with an error", failed)
		}
		if len(on) > 0 {
			text += ", lately with: " + strings.Join(on, "; ")
		}
		items = append(items, item{seq: group[len(group)-1].seq, text: text})
	}
	return items
}

// lastState returns the assistant's last text, and the last result after it.
func lastState(messages []recall.Message, names map[string]string) []item {
	for n, m := range slices.Backward(messages) {
		if m.Role == recall.Assistant && prose.RequestText(m) != "" {
			i := item{seq: m.Seq, text: fmt.Sprintf("[%d] assistant: %s", m.Seq, prose.OneLine(prose.RequestText(m),
				stateChars))}
			return append([]item{i}, lastResult(messages[n+1:], names)...)
		}
	}
	return lastResult(messages, names)
}

// intends matches what says that an assistant goes on.
var intends = regexp.MustCompile(`(?i)\b(?:next|I will|I'll|let me|now I|going to|als nächstes|ich werde|je vais|` +
	`ensuite|voy a|a continuación)\b|接下来|下一步|次に`)

// nextStep quotes the last request and what the assistant said last that it would do; nil if it has answered since
// without saying so.
func nextStep(messages []recall.Message) []item {
	step, answered := "", false
	for _, m := range slices.Backward(messages) {
		text := prose.RequestText(m)
		switch {
		case text == "" || prose.IsWarning(m):
		case m.Role == recall.Assistant && !answered:
			all := prose.Sentences(text)
			if last := append([]string{""}, all...)[len(all)]; intends.MatchString(last) {
				step = " The assistant: " + prose.OneLine(last, sentenceChars)
			}
			answered = true
		case m.Role == recall.User && answered && step == "":
			return nil
		case m.Role == recall.User:
			return []item{{seq: m.Seq, text: fmt.Sprintf("[%d] %s%s", m.Seq, prose.Quoted(text), step)}}
		}
	}
	return nil
}

// lastResult returns the last result, or its end.
func lastResult(messages []recall.Message, names map[string]string) []item {
	for _, m := range slices.Backward(messages) {
		for _, p := range slices.Backward(m.Content) {
			text := strings.TrimSpace(prose.Unmarked(p.Text))
			if p.Type != recall.ToolReturn || text == "" {
				continue
			}
			what, end := "result", prose.OneLine(tokens.Suffix(text, 60), 240)
			if strings.ContainsRune(text, '\n') || end != text {
				what = "last result"
			}
			return []item{{seq: m.Seq, text: fmt.Sprintf("[%d] %s of %s: %s", m.Seq, what, cmp.Or(names[p.CallID], "a tool"),
				end)}}
		}
	}
	return nil
}
