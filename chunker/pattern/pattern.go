// Package pattern compiles regular expressions that callers wrote. RE2 prints an expression that it cannot compile to
// the program's standard error, so such expressions are refused before RE2 sees them.
package pattern

import (
	"fmt"
	"regexp/syntax"

	"github.com/wasilibs/go-re2"
)

// MaxStates limits the size of an expression, and so the time that a search takes per byte of text.
const MaxStates = 1500

// Compile compiles an expression. A search with it takes time linear in the text. The error says what is wrong with the
// expression.
func Compile(expression string) (*re2.Regexp, error) {
	tree, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if n := States(tree); n > MaxStates {
		return nil, fmt.Errorf("it has %d states, and may have at most %d: use smaller repeat counts", n, MaxStates)
	}
	// String spells out character classes that have a name in only one of the two libraries.
	return re2.Compile(tree.String())
}

// States estimates the number of states of a parsed expression: one per character, more for a large class, multiplied
// by the repeat counts around them.
func States(re *syntax.Regexp) int {
	n := 0
	for _, sub := range re.Sub {
		n += States(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		n = len(re.Rune)
	case syntax.OpCharClass:
		n = len(re.Rune) / 40
	}
	n = max(n, 1)
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return n
}
