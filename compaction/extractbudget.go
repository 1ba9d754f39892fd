package compaction

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/loci-memory/loci/recall/tokens"
)

// within returns the extraction in at most some tokens: first the identifiers of the last request and that request,
// then what the share of each section allows, then more of the first sections. Only items that still do not fit are
// shortened.
func (x *extraction) within(header string, budget int, must mustMention) string {
	f := &selection{x: x, left: budget}
	if header != "" {
		f.left -= tokens.Estimate(header + "\n")
	}
	for s := range x {
		f.taken[s] = map[int]string{}
		for i := range x[s] {
			f.ranked[s] = append(f.ranked[s], i)
		}
		slices.SortStableFunc(f.ranked[s], func(a, b int) int { return cmp.Compare(x[s][a].rank, x[s][b].rank) })
	}
	for room := f.left / 2; len(f.taken[named]) < len(must.request); {
		cost := f.take(named, room, false)
		if room -= cost; cost == 0 {
			break
		}
	}
	if must.last != nil {
		f.take(requests, f.left/2, true)
		f.take(requests, f.left/3, true)
	}
	for s := range sectionCount {
		for room := int(shares[s] * float64(budget)); ; {
			cost := f.take(s, room, len(f.taken[s]) == 0 && s != named)
			if room -= cost; cost == 0 {
				break
			}
		}
	}
	for s := range sectionCount {
		f.grow(s)
		for f.take(s, f.left, false) > 0 {
			continue
		}
	}
	for s := range sectionCount {
		if s != named {
			f.take(s, f.left, true)
		}
	}
	return render(header, f.taken)
}

// selection is the part of an extraction that fits a budget.
type selection struct {
	x      *extraction
	left   int                          // tokens
	ranked [sectionCount][]int          // indexes of the items that are not taken yet, by rank
	taken  [sectionCount]map[int]string // texts of the taken items, by index
}

// take takes the next item of a section if it is within the limit or may be shortened to it. It returns the tokens that
// the item took, 0 if it took none.
func (f *selection) take(s section, limit int, shorten bool) int {
	if len(f.ranked[s]) == 0 {
		return 0
	}
	i := f.ranked[s][0]
	text, title := f.x[s][i].text, 0
	if len(f.taken[s]) == 0 {
		title = tokens.Estimate(titles[s] + "\n- ")
	}
	if over := title + lineTokens(text) - min(limit, f.left); over > 0 {
		if !shorten || tokens.Estimate(text)-over < leastItem {
			return 0
		}
		text = tokens.Prefix(text, tokens.Estimate(text)-over-2) + "…"
	}
	f.ranked[s], f.taken[s][i] = f.ranked[s][1:], text
	cost := title + lineTokens(text)
	f.left -= cost
	return cost
}

// grow gives the shortened items of a section more of what is left.
func (f *selection) grow(s section) {
	for _, i := range slices.Sorted(maps.Keys(f.taken[s])) {
		text, whole := f.taken[s][i], f.x[s][i].text
		if text == whole || f.left <= 2 {
			continue
		}
		if over := lineTokens(whole) - lineTokens(text) - f.left; over > 0 {
			whole = tokens.Prefix(whole, tokens.Estimate(whole)-over-2) + "…"
		}
		if more := lineTokens(whole) - lineTokens(text); more > 0 {
			f.left -= more
			f.taken[s][i] = whole
		}
	}
}

func lineTokens(text string) int { return tokens.Estimate("- " + text + "\n") }

// leastItem is the fewest tokens that a line is shortened to.
const leastItem = 8

func render(header string, taken [sectionCount]map[int]string) string {
	var b strings.Builder
	if header != "" {
		b.WriteString(header + "\n")
	}
	for s, items := range taken {
		if len(items) == 0 {
			continue
		}
		b.WriteString(titles[s] + "\n")
		order := slices.Sorted(maps.Keys(items))
		lines := make([]string, len(order))
		for n, i := range order {
			lines[n] = items[i]
		}
		if section(s) == named {
			b.WriteString("- " + strings.Join(lines, ", ") + "\n")
			continue
		}
		b.WriteString("- " + strings.Join(lines, "\n- ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}
