package compaction

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// extractedBy begins a summary that no model wrote.
const extractedBy = "(Made without a model: quotes and lists of what was said and done; nothing is interpreted.)"

// section is a part of an extracted summary.
type section int

const (
	earlier section = iota // the previous summary, if a model wrote it
	requests
	decisions
	failures
	named
	calls
	state
	sectionCount
)

// titles are the first lines of the sections, and shares their shares of the budget. What a section leaves goes to the
// first that has more to say.
var (
	titles = [sectionCount]string{"Earlier:", "Requests, word for word:", "Decisions:", "Errors:", "Named:", "Tool calls:",
		"Last state:"}
	shares = [sectionCount]float64{0.22, 0.28, 0.08, 0.08, 0.14, 0.10, 0.10}
)

// Limits of an extraction.
const (
	sentenceChars = 240
	argumentChars = 100
	stateChars    = 600
	maxItems      = 400
	maxCallLines  = 40
)

// item is a line of a section. Items of a low rank are kept first; they are shown in the order in which they were
// added.
type item struct {
	text string
	rank int
}

// extraction is what was found in messages, by section.
type extraction [sectionCount][]item

// extract finds requests, decisions, errors, names, calls and the last state in messages. It continues the sections
// of a previous summary that was extracted; the text of another is kept as far as there is room, its end first.
func extract(messages []recall.Message, previous string, must mustMention) *extraction {
	x := &extraction{}
	x.carry(previous)
	messages = slices.DeleteFunc(slices.Clone(messages), isWarning)
	names := callNames(messages)
	for _, m := range messages {
		for _, part := range m.Content {
			switch part.Type {
			case recall.Text:
				x.said(m, part.Text)
			case recall.ToolReturn:
				x.failed(m, part, names)
			default:
			}
		}
	}
	x[calls] = append(x[calls], callLines(messages)...)
	x[state] = append(x[state], lastState(messages, names)...)
	x.name(messages, must)
	x.rank(must)
	return x
}

// carry adds a previous summary: section by section if it was extracted, else under Earlier.
func (x *extraction) carry(previous string) {
	in := earlier
	for line := range strings.Lines(strings.TrimPrefix(previous, extractedBy)) {
		line = strings.TrimSpace(line)
		if i := slices.Index(titles[:], line); i >= 0 && strings.HasPrefix(previous, extractedBy) {
			in = section(i)
			continue
		}
		switch {
		case line == "":
		case in == named:
			for name := range strings.SplitSeq(strings.TrimPrefix(line, "- "), ", ") {
				x[named] = append(x[named], item{text: name})
			}
		case in == state:
			x[earlier] = append(x[earlier], item{text: strings.TrimPrefix(line, "- ")})
		default:
			x[in] = append(x[in], item{text: strings.TrimPrefix(line, "- ")})
		}
	}
}

// lexicon is words and phrases by which a kind of sentence is recognized.
type lexicon struct {
	words map[string]bool
	parts []string
}

// deciding and failing recognize sentences with a decision or an error.
var (
	deciding = lexicon{
		words: setOf("decide decided decision agree agreed chose choose must always never prefer preferred prefers should " +
			"beschlossen entschieden immer niemals nie stattdessen décidé jamais toujours decidido nunca siempre deciso sempre"),
		parts: []string{"go with", "going with", "instead of", "from now on", "do not", "don't", "don’t", "let's use",
			"nicht mehr", "реши", "договори", "никогда",
			"всегда", "вместо", "нельзя", "决定", "必须", "不要", "始终", "決め", "必ず"},
	}
	failing = lexicon{
		words: setOf("error errors exception traceback fail failed fails failure fatal panic denied refused undefined " +
			"cannot conflict fehler erreur ошибка"),
		parts: []string{"not found", "timed out", "错误", "エラー"},
	}
)

// reports reports whether a line of output is about an error.
func reports(line string) bool {
	for _, sign := range []string{"ERROR", "FATAL", "FAIL", "Error:", "error:", "panic:", "Traceback", "Exception",
		"denied", "not found", "timed out", "refused"} {
		if strings.Contains(line, sign) {
			return true
		}
	}
	return false
}

// knows reports whether a text has one of the words or phrases.
func (l lexicon) knows(text string) bool {
	lower := strings.ToLower(text)
	from := -1
	for i, r := range lower {
		letter := r >= 'a' && r <= 'z' || r >= utf8.RuneSelf && unicode.IsLetter(r)
		if letter && from < 0 {
			from = i
		}
		if !letter && from >= 0 {
			if l.words[lower[from:i]] {
				return true
			}
			from = -1
		}
	}
	if from >= 0 && l.words[lower[from:]] {
		return true
	}
	return slices.ContainsFunc(l.parts, func(p string) bool { return strings.Contains(lower, p) })
}

// said adds the request, decisions and errors of a message.
func (x *extraction) said(m recall.Message, text string) {
	if m.Role == recall.User && strings.TrimSpace(text) != "" {
		x.add(requests, m.Seq, oneLine(text, requestChars))
	}
	if len(text) > 64<<10 { // a document, not something said
		text = tokens.PrefixChars(text, 16<<10)
	}
	failed := false
	for _, s := range sentences(clean(text)) {
		if deciding.knows(s) {
			x.add(decisions, m.Seq, oneLine(s, sentenceChars))
		} else if !failed && m.Role == recall.Assistant && failing.knows(s) {
			failed = true
			x.add(failures, m.Seq, oneLine(s, sentenceChars))
		}
	}
}

// sentences splits a text at full stops and line ends.
func sentences(text string) []string {
	var all []string
	from := 0
	for i, r := range text {
		end := r == '\n' || strings.ContainsRune("。！？", r) ||
			strings.ContainsRune(".!?", r) && i+1 < len(text) && (text[i+1] == ' ' || text[i+1] == '\n')
		if end {
			all = append(all, strings.TrimSpace(text[from:i+len(string(r))]))
			from = i + len(string(r))
		}
	}
	all = append(all, strings.TrimSpace(text[from:]))
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// failed adds the error of a tool: the first line of a failed result, or the first line about an error.
func (x *extraction) failed(m recall.Message, p recall.Part, names map[string]string) {
	text := clean(strings.Join(slices.Concat(p.Stderr, []string{p.Text}), "\n"))
	for line := range strings.Lines(tokens.PrefixChars(text, clampChars)) {
		if line = strings.TrimSpace(line); line != "" && (p.IsError || reports(line)) {
			x.add(failures, m.Seq, cmp.Or(names[p.CallID], "a tool")+": "+oneLine(line, sentenceChars))
			return
		}
	}
}

// add adds a line that begins with the number of its message.
func (x *extraction) add(s section, seq int64, text string) {
	x[s] = append(x[s], item{text: fmt.Sprintf("[%d] %s", seq, text)})
}

// toolCall is a call and its outcome.
type toolCall struct {
	seq             int64
	name, arguments string
	main            string // the first of its arguments' texts
	outcome         string
	failed          bool
}

// callLines returns a line for each call, or for each tool if there are more than maxCallLines calls.
func callLines(messages []recall.Message) []item {
	var all []*toolCall
	open := map[string]*toolCall{}
	for _, m := range messages {
		for _, p := range m.Content {
			switch p.Type {
			case recall.ToolCall:
				c := &toolCall{seq: m.Seq, name: oneLine(p.Name, sentenceChars), arguments: oneLine(p.Input, argumentChars)}
				if texts := argumentTexts(p.Input); len(texts) > 0 {
					c.main = oneLine(texts[0], argumentChars/2)
				}
				all, open[p.CallID] = append(all, c), c
			case recall.ToolReturn:
				if c := open[p.CallID]; c != nil {
					c.outcome, c.failed = fmt.Sprintf(" -> %d characters", len([]rune(p.Text))), p.IsError
					if p.IsError {
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
		items[i].text = fmt.Sprintf("[%d] %s(%s)%s", c.seq, c.name, c.arguments, c.outcome)
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
		items = append(items, item{text: text})
	}
	return items
}

// lastState returns what the assistant said last, and the last result after it.
func lastState(messages []recall.Message, names map[string]string) []item {
	for i, m := range slices.Backward(messages) {
		if m.Role == recall.Assistant && requestText(m) != "" {
			items := []item{{text: fmt.Sprintf("[%d] assistant: %s", m.Seq, oneLine(requestText(m), stateChars))}}
			return append(items, lastResult(messages[i+1:], names)...)
		}
	}
	return lastResult(messages, names)
}

func lastResult(messages []recall.Message, names map[string]string) []item {
	for _, m := range slices.Backward(messages) {
		for _, p := range slices.Backward(m.Content) {
			if text := strings.TrimSpace(p.Text); p.Type == recall.ToolReturn && text != "" {
				return []item{{text: fmt.Sprintf("[%d] result of %s: %s", m.Seq, cmp.Or(names[p.CallID], "a tool"),
					oneLine(tokens.Suffix(text, sentenceChars/4), sentenceChars))}}
			}
		}
	}
	return nil
}

// name adds identifiers: those that a summary must mention, those of the previous summary, and the newest of the rest.
func (x *extraction) name(messages []recall.Message, must mustMention) {
	before := x[named]
	x[named] = nil
	seen := map[string]bool{}
	note := func(names ...string) {
		for _, n := range names {
			if n = strings.TrimSpace(n); n != "" && !seen[n] && len(x[named]) < maxItems {
				seen[n] = true
				x[named] = append(x[named], item{text: n, rank: len(x[named])})
			}
		}
	}
	note(must.request...)
	note(must.others...)
	for _, i := range before {
		note(i.text)
	}
	for _, m := range slices.Backward(messages) {
		for _, part := range slices.Backward(m.Content) {
			if len(x[named]) == maxItems {
				return
			}
			if part.Type == recall.Text || part.Type == recall.ToolReturn {
				note(identifiers(tokens.PrefixChars(part.Text, clampChars))...)
			}
		}
	}
}

// rank prefers the newest items of every section. The first request comes second, because it mostly says what the
// conversation is about.
func (x *extraction) rank(must mustMention) {
	for s := range x {
		if section(s) == named {
			continue
		}
		for i := range x[s] {
			x[s][i].rank = len(x[s]) - i
		}
	}
	if len(x[requests]) > 1 {
		x[requests][0].rank = 1
		x[requests][len(x[requests])-1].rank = 0
	}
	if must.last == nil && len(x[requests]) > 0 { // all requests are of the previous summary
		x[requests][len(x[requests])-1].rank = 1
	}
}
