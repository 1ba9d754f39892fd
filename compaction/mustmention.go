package compaction

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// Limits of what a summary must mention.
const (
	maxRequestMentions  = 12
	requestMentionShare = 0.5 // of the summary's budget
	maxMentions         = 40
	mentionShare        = 0.3 // of the summary's budget, with those of the last request
	lastWords           = 12  // of the last request
)

// mustMention is what a summary must mention.
type mustMention struct {
	request []string        // identifiers of the last request
	others  []string        // the most important other identifiers, in the order in which they came
	folded  []string        // all of these, folded
	last    *recall.Message // the last request; nil if there is none
}

// mustMentionOf selects identifiers that are likely needed again: those that the user named, or that were named often
// or late. It leaves out what only tool results name, because a listing may name hundreds.
func mustMentionOf(messages []recall.Message, previous string, budget int) mustMention {
	var must mustMention
	n := names{by: map[string]*name{}}
	n.note(0.5, plain(previous))
	for i, m := range messages {
		if isWarning(m) {
			continue
		}
		late := 0.5 + float64(i+1)/float64(len(messages)+1)
		for _, part := range m.Content {
			switch {
			case part.Type == recall.ToolCall:
				n.note(late, recall.ArgumentTexts(part.Input)...)
			case part.Type == recall.Text && m.Role == recall.User:
				n.note(3*late, unmarked(part.Text))
			case part.Type == recall.Text:
				n.note(late, unmarked(part.Text))
			}
		}
	}
	for i, m := range slices.Backward(messages) {
		if m.Role == recall.User && requestText(m) != "" {
			must.last = &messages[i]
			break
		}
	}
	used := 0
	if must.last != nil {
		for _, id := range Identifiers(requestText(*must.last)) {
			cost := tokens.Estimate(id) + 1
			if len(must.request) < maxRequestMentions && used+cost <= int(requestMentionShare*float64(budget)) {
				must.request = append(must.request, id)
				used += cost
			}
		}
	}
	must.others = n.best(int(mentionShare*float64(budget))-used, must.request)
	for _, id := range slices.Concat(must.request, must.others) {
		must.folded = append(must.folded, folded(id))
	}
	return must
}

// names are identifiers with a score of how likely they are needed again.
type names struct {
	all []*name
	by  map[string]*name // by the identifier in lower case
}

type name struct {
	id    string
	first int // place among all
	score float64
}

// note scores the identifiers of texts. One that is named again gains less each time.
func (n *names) note(weight float64, texts ...string) {
	for _, text := range texts {
		for _, id := range Identifiers(text) {
			lower := strings.ToLower(id)
			found := n.by[lower]
			if found == nil {
				found = &name{id: id, first: len(n.all)}
				n.by[lower], n.all = found, append(n.all, found)
			}
			found.score += weight / (1 + found.score)
		}
	}
}

// best returns the identifiers of the highest scores that take at most some tokens, in the order in which they came.
func (n *names) best(room int, but []string) []string {
	slices.SortStableFunc(n.all, func(a, b *name) int { return cmp.Compare(b.score, a.score) })
	var chosen []*name
	for _, found := range n.all {
		if len(chosen) == maxMentions {
			break
		}
		if slices.Contains(but, found.id) {
			continue
		}
		if room -= tokens.Estimate(found.id) + 1; room < 0 {
			break
		}
		chosen = append(chosen, found)
	}
	slices.SortFunc(chosen, func(a, b *name) int { return cmp.Compare(a.first, b.first) })
	ids := make([]string, len(chosen))
	for i, found := range chosen {
		ids[i] = found.id
	}
	return ids
}

// added matches what Loci writes into an extracted summary: whole lines about calls, and the beginnings of others with
// the number of the message and the tool.
var added = regexp.MustCompile(`(?m)^- \[\d+\] .* -> (?:an error|\d+ characters)$|^- \[\d+–\d+\] .*, \d+ times.*$|` +
	`^- \[\d+(?:–\d+)?\] (?:result of (?:a tool|\S+): |assistant: )?`)

// plain returns a summary without what Loci added to it, and without the calls that it lists.
func plain(summary string) string {
	return unmarked(added.ReplaceAllString(strings.TrimPrefix(summary, extractedBy), ""))
}

func requestText(m recall.Message) string {
	var texts []string
	for _, p := range m.Content {
		if p.Type == recall.Text {
			texts = append(texts, p.Text)
		}
	}
	return strings.TrimSpace(unmarked(strings.Join(texts, "\n")))
}

// missing returns the identifiers that a text does not mention, and reports whether it lacks the last request.
func (must mustMention) missing(text string) (ids []string, request bool) {
	lower := folded(text)
	for _, id := range slices.Concat(must.request, must.others) {
		if !mentions(lower, id) {
			ids = append(ids, id)
		}
	}
	return ids, must.last != nil && !tells(lower, requestText(*must.last))
}

// tells reports whether a text mentions a request: two of its first words, or one if it has few. A summary in another
// language does not, and gets the request added word for word.
func tells(lower, request string) bool {
	looked := keywords(request, lastWords)
	hits := 0
	for _, word := range looked {
		if strings.Contains(lower, word) {
			hits++
		}
	}
	return hits >= min(2, (len(looked)+1)/2)
}

func (must mustMention) countIn(line string) (n int) {
	lower := folded(line)
	for _, id := range must.folded {
		if has(lower, id) {
			n++
		}
	}
	return n
}
