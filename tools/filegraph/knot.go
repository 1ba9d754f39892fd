package main

import (
	"maps"
	"regexp"
	"slices"
)

// Arrow says that the file From uses names that the file To declares.
type Arrow struct {
	From, To string
	Names    []string
}

// Knots returns the sets of two or more files that all reach each other, the largest first.
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
	number := len(t.index) + 1
	t.index[file], t.low[file], t.open[file] = number, number, true
	t.stack = append(t.stack, file)
	for _, target := range slices.Sorted(maps.Keys(t.of[file])) {
		switch {
		case t.index[target] == 0:
			t.visit(target)
			t.low[file] = min(t.low[file], t.low[target])
		case t.open[target]:
			t.low[file] = min(t.low[file], t.index[target])
		}
	}
	if t.low[file] < number {
		return
	}
	start := slices.Index(t.stack, file)
	knot := slices.Clone(t.stack[start:])
	for _, closed := range knot {
		t.open[closed] = false
	}
	if t.stack = t.stack[:start]; len(knot) > 1 {
		slices.Sort(knot)
		t.knots = append(t.knots, knot)
	}
}

// fileName matches the name of a Go file in a comment.
var fileName = regexp.MustCompile(`\b[\w]+\.go\b`)

// Order returns the files in the order in which the package comment first names them, and the files that it does not
// name. A package with one file needs no order.
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

// Up returns the arrows from a file to a file that the package comment names later.
func (p Package) Up() []Arrow {
	order, _ := p.Order()
	var up []Arrow
	for index, user := range order {
		for _, used := range order[index+1:] {
			if names := p.Uses[user][used]; names != nil {
				up = append(up, Arrow{user, used, names})
			}
		}
	}
	return up
}
