// Package pattern compiles regular expressions that callers wrote. Where RE2 cannot compile one, it writes a line with
// it to the program's standard error: such expressions are refused before RE2 sees them.
package pattern

import (
	"fmt"
	"regexp/syntax"

	"github.com/wasilibs/go-re2"
)

// MaxStates bounds the size of an expression, and with it the time that a search takes for each byte of a text.
const MaxStates = 1500

// Compile compiles an expression. Searches with it take time linear in the text. The error says what is wrong with the
// expression.
func Compile(expression string) (*re2.Regexp, error) {
	tree, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if n := States(tree); n > MaxStates {
		return nil, fmt.Errorf("it has %d states, and may have at most %d: use smaller repeat counts", n, MaxStates)
	}
	return re2.Compile(tree.String()) // which spells out the classes that only one of the two libraries has names of
}

// States estimates how many states a parsed expression has: one for each character, more for a large class, times the
// repeats around them.
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
