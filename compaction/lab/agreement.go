package lab

import (
	"regexp"
	"slices"
	"strings"

	"github.com/loci-memory/loci/compaction/prose"
)

// sameFrom is the agreement from which on two answers count as the same.
const sameFrom = 0.8

// agreement returns how much of what an answer says another one says, too: from 0 to 1. It is 1 if they are equal but
// for spaces and case, and 0 if one says yes and the other no. Otherwise it is the share of the facts in the first
// answer (paths, numbers, identifiers) that the other names, or without facts the share of its words.
func agreement(answer, other string) float64 {
	a, b := plain(answer), plain(other)
	switch {
	case a == b:
		return 1
	case a == "" || b == "", contradicts(a, b):
		return 0
	}
	facts := factsIn(answer)
	if len(facts) == 0 {
		words := prose.ContentWords(answer)
		if len(words) == 0 {
			return 0 // short, and not equal
		}
		return prose.ShareIn(words, prose.ContentWords(other))
	}
	folded, named := prose.Folded(other), 0
	for _, fact := range facts {
		if prose.Mentions(folded, fact) {
			named++
		}
	}
	return float64(named) / float64(len(facts))
}

// numbers matches numbers of at least two digits.
var numbers = regexp.MustCompile(`\d+(?:[.,:]\d+)+|\d{2,}`)

// factsIn returns a text's identifiers, and the numbers beside them.
func factsIn(text string) []string {
	facts := prose.Identifiers(text)
	for _, n := range numbers.FindAllString(text, -1) {
		if !slices.ContainsFunc(facts, func(fact string) bool { return strings.Contains(fact, n) }) {
			facts = append(facts, n)
		}
	}
	return facts
}

// plain returns a text in lower case, with one space between words, and without the point at its end.
func plain(text string) string {
	return strings.TrimRight(strings.Join(strings.Fields(strings.ToLower(text)), " "), ".!")
}

// contradicts reports whether of two plain texts one begins with yes and the other with no.
func contradicts(a, b string) bool {
	said := func(text string) string {
		word, _, _ := strings.Cut(strings.NewReplacer(",", " ", ".", " ", ":", " ", "!", " ").Replace(text), " ")
		switch word {
		case "yes", "no":
			return word
		}
		return ""
	}
	return said(a) != "" && said(b) != "" && said(a) != said(b)
}
