package tool

import (
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/loci-memory/loci/chunker/frame"
)

// withOptionalMarks makes the marks in a regular expression optional: `[<]~/b`, in which the mark ~ stands behind a
// bracket, becomes an expression that also matches "</b". It reports whether the expression has any marks.
func withOptionalMarks(pattern string) (string, bool) {
	if !strings.Contains(pattern, "~") {
		return "", false
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", false
	}
	m := marksOf{}
	tree = m.optional(tree)
	return tree.String(), m.found
}

// marksOf makes the marks of an expression optional. found tells whether it has any.
type marksOf struct{ found bool }

// optional makes every mark behind a bracket optional.
func (m *marksOf) optional(re *syntax.Regexp) *syntax.Regexp {
	re = spelled(re)
	for i, sub := range re.Sub {
		re.Sub[i] = m.optional(sub)
		if re.Op == syntax.OpConcat && i > 0 && endsInBracket(re.Sub[i-1]) {
			re.Sub[i] = m.optionalFirst(re.Sub[i])
		}
	}
	return re
}

// spelled splits a literal of several characters into a sequence of one-character literals.
func spelled(re *syntax.Regexp) *syntax.Regexp {
	if re.Op != syntax.OpLiteral || len(re.Rune) < 2 {
		return re
	}
	all := &syntax.Regexp{Op: syntax.OpConcat, Flags: re.Flags}
	for _, r := range re.Rune {
		all.Sub = append(all.Sub, &syntax.Regexp{Op: syntax.OpLiteral, Flags: re.Flags, Rune: []rune{r}})
	}
	return all
}

// optionalFirst makes a mark at the beginning of an expression optional.
func (m *marksOf) optionalFirst(re *syntax.Regexp) *syntax.Regexp {
	switch {
	case isMark(re):
		m.found = true
		return &syntax.Regexp{Op: syntax.OpQuest, Flags: re.Flags, Sub: []*syntax.Regexp{re}}
	case re.Op == syntax.OpPlus && isMark(re.Sub[0]):
		m.found = true
		re.Op = syntax.OpStar
	case re.Op == syntax.OpRepeat && isMark(re.Sub[0]) && re.Min > 0:
		m.found = true
		re.Min--
	case re.Op == syntax.OpConcat || re.Op == syntax.OpCapture:
		re.Sub[0] = m.optionalFirst(re.Sub[0])
	case re.Op == syntax.OpAlternate:
		for i, sub := range re.Sub {
			re.Sub[i] = m.optionalFirst(sub)
		}
	}
	return re
}

// isMark reports whether an expression matches only the mark.
func isMark(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return slices.Equal(re.Rune, []rune{'~'})
	case syntax.OpCharClass:
		return slices.Equal(re.Rune, []rune{'~', '~'})
	}
	return false
}

// endsInBracket reports whether an expression can match a text that ends with a bracket, and names that bracket.
func endsInBracket(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return strings.ContainsRune(frame.Brackets, re.Rune[len(re.Rune)-1])
	case syntax.OpCharClass:
		for pair := range slices.Chunk(re.Rune, 2) {
			if pair[0] == pair[1] && strings.ContainsRune(frame.Brackets, pair[0]) {
				return true
			}
		}
	case syntax.OpConcat, syntax.OpCapture, syntax.OpPlus, syntax.OpRepeat:
		return endsInBracket(re.Sub[len(re.Sub)-1])
	case syntax.OpAlternate:
		return slices.ContainsFunc(re.Sub, endsInBracket)
	}
	return false
}
