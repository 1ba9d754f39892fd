package filter

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

// Indexed is a way to find rows by a table of the values in their metadata: conditions on its rows v, with the columns
// path, text, number and moment, as the function metadata_values gives them. Each row that passes the filter has a
// value that meets one of the conditions. Rows that do not pass may have such values, too.
type Indexed []Condition

// Condition is a condition in SQL on a value v.
type Condition struct {
	SQL string
	// Each is SQL for FROM: the values one.value that v has one of; empty if the condition is a range of values.
	Each string
	// Grams is SQL for the path and for a text of three characters or more that v.text has; none if an index of the
	// values themselves answers.
	Grams []string
}

// Limits of what an index of values is asked.
const (
	maxIndexed = 4              // ways to find rows
	maxJoined  = 50             // conditions of a way
	textChars  = 200            // of a text, that metadata_values keeps
	gram       = 3              // characters of the parts of texts that value_grams hashes
	offsets    = 16 * time.Hour // more than the offset of any timezone, which metadata_values takes to be 0
)

// Indexed returns ways to find the rows that pass, those first that mostly find fewer. It adds the arguments of the
// conditions to args: @value_0, @value_1 and so on. There is none if a row may pass without a value.
func (f Filter) Indexed(args pgx.StrictNamedArgs) (ways []Indexed) {
	if f.root == nil {
		return nil
	}
	x := indexer{args: pgx.StrictNamedArgs{}}
	for _, w := range x.ways(f.root) {
		if len(ways) == maxIndexed || len(w.conditions) > maxJoined {
			continue
		}
		ways = append(ways, w.conditions)
		for _, c := range w.conditions {
			for _, name := range argument.FindAllString(c.SQL+c.Each+strings.Join(c.Grams, ""), -1) {
				args[name[1:]] = x.args[name[1:]]
			}
		}
	}
	return ways
}

// argument matches the name of an argument of an Indexed.
var argument = regexp.MustCompile(`@value_\d+`)

type indexer struct {
	args pgx.StrictNamedArgs
	n    int
}

// way is an Indexed with a rank: the lower, the fewer rows it finds mostly.
type way struct {
	rank       int
	conditions Indexed
}

func (x *indexer) arg(value any) string {
	name := fmt.Sprintf("value_%d", x.n)
	x.n++
	x.args[name] = value
	return "@" + name
}

// ways returns all ways to find the rows that pass a part of a filter, the best first.
func (x *indexer) ways(n *node) (all []way) {
	switch n.of {
	case "":
		return x.spans([]Test{n.test})
	case "and":
		var tests []Test
		for _, part := range n.all {
			if part.of == "" {
				tests = append(tests, part.test)
			} else {
				all = append(all, x.ways(part)...)
			}
		}
		all = append(all, x.spans(tests)...)
		slices.SortStableFunc(all, func(a, b way) int { return a.rank - b.rank })
	case "or":
		var joined way
		for _, part := range n.all {
			found := x.ways(part)
			if len(found) == 0 {
				return nil
			}
			joined.rank = max(joined.rank, found[0].rank)
			joined.conditions = append(joined.conditions, found[0].conditions...)
		}
		return []way{joined}
	}
	return all
}

// spans returns a way for each test that an index can answer. The bounds of one value are asked together.
func (x *indexer) spans(tests []Test) (all []way) {
	together := map[string]int{} // place in all, by path and column
	for _, t := range tests {
		if t.Path == nil || slices.ContainsFunc(t.Path, isPlace) {
			continue
		}
		column, condition := x.bound(t)
		if column == "" {
			if w := x.values(t); w.conditions != nil {
				all = append(all, w)
			}
			continue
		}
		value := column + "\x00" + strings.Join(t.Path, "\x00")
		if i, ok := together[value]; ok {
			all[i].conditions[0].SQL += condition
			continue
		}
		together[value] = len(all)
		all = append(all, way{rank: 2, conditions: Indexed{{SQL: x.path(t) + condition}}})
	}
	return all
}

// isPlace reports whether a name may be that of an element of a list, which metadata_values does not know.
func isPlace(name string) bool {
	_, err := strconv.Atoi(strings.TrimSpace(name))
	return err == nil
}

func (x *indexer) path(t Test, more ...string) string {
	return `v.path = ` + x.hash(append(slices.Clone(t.Path), more...))
}

func (x *indexer) hash(names []string) string { return `metadata_path(` + x.arg(names) + `::text[])` }

// Names that metadata_values adds to the path of a list, for its elements, and of a text that was cut.
const (
	element = "\x1d"
	long    = "\x1e"
)

// bound returns the column that a bound is on, and the condition, beginning with AND. Bounds are inclusive, because a
// value may be cut or rounded.
func (x *indexer) bound(t Test) (column, condition string) {
	v, sign := t.values0(), ""
	switch t.Op {
	case "gt", "gte":
		sign = ` >= `
	case "lt", "lte":
		sign = ` <= `
	case "prefix":
		begin := cut(v.text)
		return "text", ` AND v.text >= ` + x.arg(begin) + `::text AND v.text <= ` + x.arg(begin+"\U0010FFFF") + `::text`
	default:
		return "", ""
	}
	switch {
	case v.kind == "number":
		return "number", ` AND v.number` + sign + x.arg(v.double()) + `::double precision`
	case v.isTime && sign == ` >= `:
		return "moment", ` AND v.moment >= ` + x.arg(v.first.Add(-offsets)) + `::timestamptz`
	case v.isTime:
		return "moment", ` AND v.moment <= ` + x.arg(v.last.Add(offsets)) + `::timestamptz`
	}
	return "text", ` AND v.text` + sign + x.arg(cut(v.text)) + `::text`
}

// values returns the way for a test that is no bound; none if a row may pass it without a value.
func (x *indexer) values(t Test) way {
	switch v := t.values0(); t.Op {
	case "eq", "in":
		return x.in(t)
	case "exists":
		if v.json == "true" {
			return way{4, Indexed{{SQL: x.path(t) + ` AND v.text IS NOT NULL`},
				{SQL: x.path(t) + ` AND v.number IS NOT NULL`}}}
		}
	case "contains":
		w := x.in(t, element)
		if v.kind == "string" {
			w.rank = 3
			w.conditions = append(w.conditions, Condition{SQL: x.path(t, long) + ` AND v.text = ''`}, x.inside(t))
		}
		return w
	}
	return way{}
}

// inside returns the condition that a text has the test's text in it.
func (x *indexer) inside(t Test) Condition {
	if t.values[0].text == "" { // in each text
		return Condition{SQL: x.path(t) + ` AND v.text IS NOT NULL`}
	}
	text := x.arg(t.values[0].text) + `::text`
	if utf8.RuneCountInString(t.values[0].text) < gram {
		return Condition{SQL: x.path(t) + ` AND v.text > '' AND strpos(v.text, ` + text + `) > 0`}
	}
	path := x.hash(t.Path)
	return Condition{SQL: `v.path + 0 = ` + path + ` AND length(v.text) > 2 AND strpos(v.text, ` + text + `) > 0`,
		Grams: []string{path, text}}
}

// in returns the way for a value that is one of others. A date may be written in several ways. more are names behind
// the test's path.
func (x *indexer) in(t Test, more ...string) way {
	var texts []string
	var numbers []float64
	w := way{rank: 1}
	for _, v := range t.values {
		switch v.kind {
		case "number":
			numbers = append(numbers, v.double())
		case "boolean":
			texts = append(texts, v.json)
		case "string":
			texts = append(texts, cut(v.text))
		default:
			return way{}
		}
		if v.isTime {
			w.conditions = append(w.conditions, Condition{SQL: x.path(t, more...) + ` AND v.moment >= ` +
				x.arg(v.first.Add(-offsets)) + `::timestamptz AND v.moment <= ` + x.arg(v.last.Add(offsets)) + `::timestamptz`})
		}
	}
	if texts != nil {
		w.conditions = append(w.conditions, Condition{SQL: x.path(t, more...) + ` AND v.text = one.value`,
			Each: `unnest(` + x.arg(texts) + `::text[])`})
	}
	if numbers != nil {
		w.conditions = append(w.conditions,
			Condition{SQL: x.path(t, more...) + ` AND v.number = one.value`,
				Each: `unnest(` + x.arg(numbers) + `::double precision[])`})
	}
	return w
}

// double returns the number as metadata_values gives it.
func (v value) double() float64 {
	f, _ := strconv.ParseFloat(v.json, 64) // scalar has refused others
	switch {
	case math.Abs(f) > 1e300:
		return math.Copysign(math.Inf(1), f)
	case math.Abs(f) < 1e-300:
		return 0
	}
	return f
}

// cut returns as much of a text as metadata_values keeps.
func cut(text string) string {
	if runes := []rune(text); len(runes) > textChars {
		return string(runes[:textChars])
	}
	return text
}
