package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFunctionsLoseTheirCommentsAndKeepTheirLines(t *testing.T) {
	t.Parallel()
	const source = `// Package x says so.
package x

// Len returns the number of things. It counts them.
//
//go:noinline
func Len() int {
	// inside
	n := 0
	return n
}

// Short is short.
func Short() {}

func (t *T) Bare() {
	a()
	b()
}
`
	text, functions, err := uncommented(source)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "number of things") || strings.Contains(text, "Short is") ||
		!strings.Contains(text, "// inside") || !strings.Contains(text, "// Package x says so.") {
		t.Errorf("the text without comments of functions is\n%s", text)
	}
	want := []goFunction{{"returns the number of things.", 4, 8}, {"", 12, 15}}
	if diff := cmp.Diff(want, functions, cmp.AllowUnexported(goFunction{})); diff != "" {
		t.Errorf("the functions (-want +got):\n%s", diff)
	}
	lines := strings.Split(text, "\n")
	for _, f := range functions {
		if !strings.HasPrefix(lines[f.first-1], "func ") || lines[f.last-1] != "}" {
			t.Errorf("lines %d to %d are no function:\n%s", f.first, f.last, text)
		}
	}
}

func TestHitsAreReadFromTheToolsText(t *testing.T) {
	t.Parallel()
	hits := hitsIn("Found 2 passages\n====\n\n=== docs/a (1).html (lines 3-9) ===\nSection: A\n" +
		"  === docs/b.html (lines 1-2) ===\n\n=== docs/c.pdf (page 2, lines 10-12) ===\n  text\n")
	if diff := cmp.Diff([]fileHit{{"a (1).html", 3, 9}, {"c.pdf", 10, 12}}, hits,
		cmp.AllowUnexported(fileHit{})); diff != "" {
		t.Errorf("the hits (-want +got):\n%s", diff)
	}
	for _, tt := range []struct {
		q    fileQuestion
		want bool
	}{
		{fileQuestion{file: "c.pdf", first: 12, last: 20}, true},
		{fileQuestion{file: "c.pdf", first: 1, last: 10}, true},
		{fileQuestion{file: "c.pdf", first: 13, last: 20}, false},
		{fileQuestion{file: "d.pdf", first: 10, last: 12}, false},
	} {
		if got := tt.q.isAnsweredBy(hits[1]); got != tt.want {
			t.Errorf("%+v is answered: %v, want %v", tt.q, got, tt.want)
		}
	}
}

func TestASetBelowItsRangeIsAnError(t *testing.T) {
	t.Parallel()
	sets := []fileSet{{name: "high", from: 50, to: 60}, {name: "low", from: 70, to: 80}}
	found := []filesFound{{ranks: []int{1, 9, 0}}, {ranks: []int{2, 0}}}
	err := belowRange(sets, found)
	if err == nil || !strings.Contains(err.Error(), "low: 50.0 %") || strings.Contains(err.Error(), "high") {
		t.Errorf("the error is %v", err)
	}
	want := "| high | 3 | 33.3 | 33.3 | 66.7 | 50 to 60: raise it |\n| low | 2 | 0.0 | 50.0 | 50.0 | 70 to 80 |\n"
	if table := filesTable(sets, found); !strings.HasSuffix(table, want) {
		t.Errorf("the table is\n%swant at its end\n%s", table, want)
	}
}
