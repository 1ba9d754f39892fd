package compaction

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// Probes of a summary: identifiers that it must name. Those of the last request come first and are few, the others many.
const (
	maxRequestProbes = 12
	maxProbes        = 40
	probeShare       = 0.3 // of the summary's budget that they may take together
	lastWords        = 12  // of the last request, that are looked for
)

// probes are what a summary is held to.
type probes struct {
	request []string // identifiers of the last request
	others  []string // the most important of the rest, in the order in which they came
	last    *recall.Message
}

// probesOf selects by what speaks for an identifier being needed again: that the user named it, that it was named often, and late. What only
// results of tools name is not asked for: a listing has hundreds.
func probesOf(messages []recall.Message, previous string, budget int) probes {
	var p probes
	n := names{by: map[string]*name{}}
	n.note(0.5, plain(previous))
	for i, m := range messages {
		late := 0.5 + float64(i+1)/float64(len(messages)+1)
		for _, part := range m.Content {
			switch {
			case part.Type == recall.ToolCall:
				n.note(late, argumentTexts(part.Input)...)
			case part.Type == recall.Text && m.Role == recall.User:
				n.note(3*late, part.Text)
			case part.Type == recall.Text:
				n.note(late, part.Text)
			}
		}
		if m.Role == recall.User && requestText(m) != "" {
			p.last = &messages[i]
		}
	}
	room := int(probeShare * float64(budget))
	if p.last != nil {
		for _, id := range identifiers(requestText(*p.last)) {
			if room -= tokens.Estimate(id) + 1; len(p.request) < maxRequestProbes && room >= 0 {
				p.request = append(p.request, id)
			}
		}
	}
	p.others = n.best(room, p.request)
	return p
}

// names are identifiers by how much they are likely to be needed.
type names struct {
	all []*name
	by  map[string]*name // in small letters
}

type name struct {
	id    string
	first int // place among all
	score float64
}

// note counts the identifiers of texts; one that is named again gains less each time.
func (n *names) note(weight float64, texts ...string) {
	for _, text := range texts {
		for _, id := range identifiers(text) {
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

// best are those of the highest score within so many tokens, in the order in which they came first.
func (n *names) best(room int, but []string) []string {
	slices.SortStableFunc(n.all, func(a, b *name) int { return cmp.Compare(b.score, a.score) })
	var chosen []*name
	for _, found := range n.all {
		if len(chosen) == maxProbes {
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

// places are the numbers of messages with which lines of an extracted summary begin.
var places = regexp.MustCompile(`(?m)^- \[\d+(?:–\d+)?\] |\[seq \d+–\d+\]`)

// plain is a summary without what is not its matter: the places of messages, and the calls of one that was extracted.
func plain(summary string) string {
	if before, rest, found := strings.Cut(summary, "\n"+titles[calls]+"\n"); found && strings.HasPrefix(summary, extractedBy) {
		_, after, _ := strings.Cut(rest, "\n"+titles[state]+"\n")
		summary = before + "\n" + after
	}
	return places.ReplaceAllString(strings.TrimPrefix(summary, extractedBy), "")
}

// requestText is what a user said in a message.
func requestText(m recall.Message) string {
	var texts []string
	for _, p := range m.Content {
		if p.Type == recall.Text {
			texts = append(texts, p.Text)
		}
	}
	return strings.TrimSpace(clean(strings.Join(texts, "\n")))
}

// missing are the probes that a text does not name, and whether it has lost the last request.
func (p probes) missing(text string) (ids []string, request bool) {
	lower := folded(text)
	for _, id := range slices.Concat(p.request, p.others) {
		if !mentions(lower, id) {
			ids = append(ids, id)
		}
	}
	return ids, p.last != nil && !tells(lower, requestText(*p.last))
}

// tells says whether a text speaks of a request: by two of its first words, or one where it has few. A summary in another language does
// not, and has it added word for word.
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
