package prose

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
	mentionShare        = 0.3 // share of the summary's budget, for all identifiers including those of the last request
	lastWords           = 12  // words of the last request
)

// MustMention lists the names and requests that a summary must contain.
type MustMention struct {
	Request []string        // identifiers of the last request
	Others  []string        // the most important other identifiers, in the order in which they appeared
	folded  []string        // all identifiers, folded
	Last    *recall.Message // the last request; nil if there is none
}

// MustMentionOf selects identifiers that are likely needed again: those that the user named, and those that were named
// often or late. It leaves out identifiers that stand only in tool results, because a listing may have hundreds.
func MustMentionOf(messages []recall.Message, previous string, budget int) MustMention {
	var must MustMention
	n := names{by: map[string]*name{}}
	n.note(0.5, plain(previous))
	for i, m := range messages {
		if IsWarning(m) {
			continue
		}
		late := 0.5 + float64(i+1)/float64(len(messages)+1)
		for _, part := range m.Content {
			switch {
			case part.Type == recall.ToolCall:
				n.note(late, recall.ArgumentTexts(part.Input)...)
			case part.Type == recall.Text && m.Role == recall.User:
				n.note(3*late, Unmarked(part.Text))
			case part.Type == recall.Text:
				n.note(late, Unmarked(part.Text))
			}
		}
	}
	for i, m := range slices.Backward(messages) {
		if m.Role == recall.User && RequestText(m) != "" {
			must.Last = &messages[i]
			break
		}
	}
	used := 0
	if must.Last != nil {
		for _, id := range Identifiers(RequestText(*must.Last)) {
			cost := tokens.Estimate(id) + 1
			if len(must.Request) < maxRequestMentions && used+cost <= int(requestMentionShare*float64(budget)) {
				must.Request = append(must.Request, id)
				used += cost
			}
		}
	}
	must.Others = n.best(int(mentionShare*float64(budget))-used, must.Request)
	for _, id := range slices.Concat(must.Request, must.Others) {
		must.folded = append(must.folded, Folded(id))
	}
	return must
}

// names are identifiers, scored by how likely they are needed again.
type names struct {
	all []*name
	by  map[string]*name // lower-case identifier → its entry in all
}

type name struct {
	id    string
	first int // index in all
	score float64
}

// note scores the identifiers in texts. Each repetition of an identifier adds less.
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

// best returns the identifiers with the highest scores that fit room tokens, in the order in which they appeared. It
// leaves out but.
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

// added matches what Loci writes into an extracted summary: whole lines about calls, and the beginnings of other lines
// with the message's number and the tool.
var added = regexp.MustCompile(`(?m)^- \[\d+\] .* -> (?:an error|\d+ characters)$|^- \[\d+–\d+\] .*, \d+ times.*$|` +
	`^- \[\d+(?:–\d+)?\] (?:(?:last )?result of (?:a tool|\S+): |assistant: )?`)

// plain returns a summary without Loci's additions and without its lines about calls.
func plain(summary string) string {
	return Unmarked(added.ReplaceAllString(strings.TrimPrefix(summary, ExtractedBy), ""))
}

// RequestText returns the texts of a message, one per line.
func RequestText(m recall.Message) string {
	var texts []string
	for _, p := range m.Content {
		if p.Type == recall.Text {
			texts = append(texts, p.Text)
		}
	}
	return strings.TrimSpace(Unmarked(strings.Join(texts, "\n")))
}

// Missing returns the identifiers that a text does not mention. request reports whether the text lacks the last
// request.
func (must MustMention) Missing(text string) (ids []string, request bool) {
	lower := Folded(text)
	for _, id := range slices.Concat(must.Request, must.Others) {
		if !Mentions(lower, id) {
			ids = append(ids, id)
		}
	}
	return ids, must.Last != nil && !tells(lower, RequestText(*must.Last))
}

// tells reports whether a text mentions a request: two of its first words, or one if it has few. A summary in another
// language does not, so the request is added word for word.
func tells(lower, request string) bool {
	looked := Keywords(request, lastWords)
	hits := 0
	for _, word := range looked {
		if strings.Contains(lower, word) {
			hits++
		}
	}
	return hits >= min(2, (len(looked)+1)/2)
}

// CountIn returns how many of the identifiers a line contains.
func (must MustMention) CountIn(line string) (n int) {
	lower := Folded(line)
	for _, id := range must.folded {
		if has(lower, id) {
			n++
		}
	}
	return n
}
