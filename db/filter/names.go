package filter

import (
	"maps"
	"slices"
	"strings"

	"github.com/loci-memory/loci/db"
)

// operators are the comparisons of a field with a value. JSON that is no object is compared with eq, and a list with
// in.
var operators = []string{"eq", "ne", "in", "nin", "gt", "gte", "lt", "lte", "exists", "contains", "prefix"}

// combined are the ways to combine conditions.
var combined = []string{"and", "or", "not"}

// fits says which operators fit a kind.
func (k Kind) fits(op string) bool {
	switch k {
	case Texts:
		return slices.Contains([]string{"eq", "ne", "in", "nin", "exists", "contains", "prefix"}, op)
	case Time, Number:
		return op != "contains" && op != "prefix"
	}
	return true
}

func isOperator(name string) bool { return slices.Contains(operators, name) }

// invalid returns a *db.FieldError about a part of a filter.
func invalid(at, rule string) error { return &db.FieldError{Field: at, Rule: rule} }

// unknown returns an error about a name, with the nearest known one, or all of them.
func unknown(at, what, name string, known []string) error {
	rule := "there is no " + what + " '" + db.Short(name) + "'; "
	if meant := db.Nearest(name, known); meant != "" {
		return invalid(at, rule+"did you mean "+meant+"?")
	}
	return invalid(at, rule+"there are "+strings.Join(known, ", "))
}

// names returns the names of the fields, sorted.
func (f Fields) names() []string { return slices.Sorted(maps.Keys(f)) }
