package grep

import (
	"regexp/syntax"
	"slices"
	"unicode"
)

// Limits of looking for words with a hyphen in them.
const (
	leastBroken = 5  // letters of a word that may be broken
	leastHalf   = 2  // letters on each side of its hyphen
	maxBroken   = 64 // places of a hyphen in a pattern
)

// withHyphens lets a pattern that is a text also match it with a hyphen within one of its words. The text of a PDF
// keeps the hyphen of a word that was broken at the end of a line and is not known, such as zorbifi-cation. It returns
// nil for other patterns.
func withHyphens(re *syntax.Regexp) *syntax.Regexp {
	if re.Op != syntax.OpLiteral {
		return nil
	}
	places := placesOfHyphens(re.Rune)
	if len(places) == 0 || len(places) > maxBroken {
		return nil
	}
	all := &syntax.Regexp{Op: syntax.OpAlternate, Flags: re.Flags, Sub: []*syntax.Regexp{re}}
	for _, at := range places {
		all.Sub = append(all.Sub, &syntax.Regexp{Op: syntax.OpLiteral, Flags: re.Flags,
			Rune: slices.Insert(slices.Clone(re.Rune), at, '-')})
	}
	return all
}

// placesOfHyphens returns where a hyphen may stand in the words of a text.
func placesOfHyphens(text []rune) (places []int) {
	begin := 0
	for i := 0; i <= len(text); i++ {
		if i < len(text) && (unicode.IsLetter(text[i]) || unicode.IsMark(text[i])) {
			continue
		}
		for at := begin + leastHalf; i-begin >= leastBroken && at <= i-leastHalf; at++ {
			places = append(places, at)
		}
		begin = i + 1
	}
	return places
}
