package grep

import (
	"iter"
	"slices"
	"strings"
)

// prefilter finds the places of several folded texts in a text. Every matching line contains one of them, so other
// lines need no regular expression. It reads two bytes at a time and skips positions where no text can begin (Wu and
// Manber, 1994).
type prefilter struct {
	texts []string
	least int // bytes of the shortest text, at most maxLeast
	skip  [1 << 16]uint8
	ends  map[uint16][]string // two folded bytes → the texts with these two at the end of their first least bytes
}

// maxLeast limits how many bytes of each text are looked at in one step.
const maxLeast = 64

// newPrefilter returns nil if a pattern requires nothing, or too many texts.
func newPrefilter(r *required) *prefilter {
	texts := oneOfTexts(r)
	if len(texts) == 0 || len(texts) > maxExpanded {
		return nil
	}
	p := &prefilter{texts: texts, least: maxLeast, ends: map[uint16][]string{}}
	for _, t := range texts {
		p.least = min(p.least, len(t))
	}
	for i := range p.skip {
		p.skip[i] = uint8(p.least - 1) //nolint:gosec // at most maxLeast
	}
	for _, t := range texts {
		for end := 2; end <= p.least; end++ {
			for _, pair := range pairs(t[end-2], t[end-1]) {
				p.skip[pair] = min(p.skip[pair], uint8(p.least-end)) //nolint:gosec // at most maxLeast
			}
		}
		last := uint16(t[p.least-2])<<8 | uint16(t[p.least-1])
		p.ends[last] = append(p.ends[last], t)
	}
	return p
}

// oneOfTexts returns texts; a matching line has at least one of them. If there are several requirements, it chooses
// the one with the longest texts. It returns none if nothing is certain.
func oneOfTexts(r *required) []string {
	switch {
	case r == nil:
		return nil
	case r.text != "":
		return []string{r.text}
	case len(r.all) > 0:
		var best []string
		for _, sub := range r.all {
			if texts := oneOfTexts(sub); len(texts) > 0 && (best == nil || shortest(texts) > shortest(best)) {
				best = texts
			}
		}
		return best
	}
	var all []string
	for _, sub := range r.any {
		texts := oneOfTexts(sub)
		if len(texts) == 0 {
			return nil
		}
		all = append(all, texts...)
	}
	return all
}

func shortest(texts []string) int {
	return len(slices.MinFunc(texts, func(a, b string) int { return len(a) - len(b) }))
}

// pairs returns two folded bytes in every combination of cases.
func pairs(a, b byte) []uint16 {
	var all []uint16
	for _, first := range cases(a) {
		for _, second := range cases(b) {
			all = append(all, uint16(first)<<8|uint16(second))
		}
	}
	return all
}

func cases(c byte) []byte {
	if 'a' <= c && c <= 'z' {
		return []byte{c, c - 'a' + 'A'}
	}
	return []byte{c}
}

// knows reports whether the prefilter finds every matching line of the text. It cannot handle characters of several
// bytes that fold to one byte.
func (p *prefilter) knows(text string) bool {
	return p != nil && !strings.Contains(text, "ſ") && !strings.Contains(text, "\u212A")
}

// places yields, in order, the places where one of the texts begins.
func (p *prefilter) places(text string) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := p.least - 1; i < len(text); {
			if skip := p.skip[uint16(text[i-1])<<8|uint16(text[i])]; skip > 0 {
				i += int(skip)
				continue
			}
			if place := i - p.least + 1; p.hasAt(text, place, i) && !yield(place) {
				return
			}
			i++
		}
	}
}

// hasAt reports whether one of the texts begins at place. end is where its first least bytes end.
func (p *prefilter) hasAt(text string, place, end int) bool {
	last := uint16(lower(text[end-1]))<<8 | uint16(lower(text[end]))
	return slices.ContainsFunc(p.ends[last], func(t string) bool {
		if len(t) > len(text)-place {
			return false
		}
		for i := range len(t) {
			if lower(text[place+i]) != t[i] {
				return false
			}
		}
		return true
	})
}

func lower(c byte) byte {
	if c-'A' < 26 {
		return c + 'a' - 'A'
	}
	return c
}
