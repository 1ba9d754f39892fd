package main

import (
	"maps"
	"regexp"
	"slices"
)

// Arrow is the use by a file of names that another declares.
type Arrow struct {
	From, To string
	Names    []string
}

// Knots returns the sets of at least two files that all reach each other, the largest first.
func (p Package) Knots() [][]string {
	t := tarjan{of: p.Uses, index: map[string]int{}, low: map[string]int{}, open: map[string]bool{}}
	for _, file := range p.Files {
		if t.index[file] == 0 {
			t.visit(file)
		}
	}
	slices.SortStableFunc(t.knots, func(a, b []string) int { return len(b) - len(a) })
	return t.knots
}

// tarjan is Tarjan's algorithm for strongly connected components.
type tarjan struct {
	of         map[string]map[string][]string
	index, low map[string]int // from 1
	open       map[string]bool
	stack      []string
	knots      [][]string
}

func (t *tarjan) visit(file string) {
	at := len(t.index) + 1
	t.index[file], t.low[file], t.open[file] = at, at, true
	t.stack = append(t.stack, file)
	for _, used := range slices.Sorted(maps.Keys(t.of[file])) {
		switch {
		case t.index[used] == 0:
			t.visit(used)
			t.low[file] = min(t.low[file], t.low[used])
		case t.open[used]:
			t.low[file] = min(t.low[file], t.index[used])
		}
	}
	if t.low[file] < at {
		return
	}
	from := slices.Index(t.stack, file)
	knot := slices.Clone(t.stack[from:])
	for _, closed := range knot {
		t.open[closed] = false
	}
	if t.stack = t.stack[:from]; len(knot) > 1 {
		slices.Sort(knot)
		t.knots = append(t.knots, knot)
	}
}

// fileName matches the name of a source file in a comment.
var fileName = regexp.MustCompile(`\b[\w]+\.go\b`)

// Order returns the files in the order in which the package comment first names them, and those that it does not name.
// A package of one file needs no order.
func (p Package) Order() (order, unnamed []string) {
	for _, name := range fileName.FindAllString(p.Doc, -1) {
		if slices.Contains(p.Files, name) && !slices.Contains(order, name) {
			order = append(order, name)
		}
	}
	for _, file := range p.Files {
		if len(p.Files) > 1 && !slices.Contains(order, file) {
			unnamed = append(unnamed, file)
		}
	}
	return order, unnamed
}

// Up returns the arrows from a file to one that the package comment names later.
func (p Package) Up() []Arrow {
	order, _ := p.Order()
	var up []Arrow
	for at, from := range order {
		for _, to := range order[at+1:] {
			if names := p.Uses[from][to]; names != nil {
				up = append(up, Arrow{from, to, names})
			}
		}
	}
	return up
}
