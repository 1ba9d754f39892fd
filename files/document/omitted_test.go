package document_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/files/document"
)

func TestOmissionsAreMergedByKind(t *testing.T) {
	t.Parallel()
	o := &document.Omitted{}
	for _, page := range []int{3, 3, 4, 5, 9} {
		o.Add(1, "picture without text", "page", page, "")
	}
	o.Add(1, "embedded workbook", "sheet", 0, "Sales\n2026")
	o.Add(2, "table of contents", "", 0, "")
	o.Add(0, "hidden sheet", "sheet", 0, "Costs")
	want := []document.Omission{
		{Kind: "picture without text", Count: 5, Where: "pages 3–5, 9"},
		{Kind: "embedded workbook", Count: 1, Where: "sheet Sales 2026"},
		{Kind: "table of contents", Count: 2}}
	if got := o.List(); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := document.ListOmissions(o.List()), "5 pictures without text (pages 3–5, 9), "+
		"1 embedded workbook (sheet Sales 2026), 2 tables of contents"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := (&document.Omitted{}).List(); got == nil || len(got) > 0 {
		t.Errorf("a document without omissions has %#v, want an empty list", got)
	}
}

// However many things a document holds, what is said about them is short, and counts them all.
func TestOmissionsAreBounded(t *testing.T) {
	t.Parallel()
	o := &document.Omitted{}
	for i := range 300 {
		o.Add(1, fmt.Sprintf("thing %d", i%100), "sheet", 0, strings.Repeat("é", 200)+fmt.Sprint(i))
	}
	for i := range 40 {
		o.Add(1, "thing 0", "page", 2*i+1, "")
	}
	all, count := o.List(), 0
	for _, one := range all {
		if err := one.Check(); err != nil {
			t.Error(err)
		}
		count += one.Count
	}
	if len(all) != document.MaxOmissions || count != 340 {
		t.Errorf("%d kinds with %d things, want %d with 340", len(all), count, document.MaxOmissions)
	}
	if got := all[0].Where; !strings.HasSuffix(got, "pages 1, 3, 5, 7, 9, 11, 13, 15, 17 and 31 more") {
		t.Errorf("got %q", got)
	}
}

func TestAnOmissionOutsideTheLimitsIsRefused(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]document.Omission{
		"no kind": {Count: 1}, "none": {Kind: "picture"}, "a long kind": {Kind: strings.Repeat("x", 101), Count: 1},
		"a line end": {Kind: "picture", Count: 1, Where: "page 3\nx"}, "NUL": {Kind: "pic\x00ture", Count: 1},
		"not UTF-8":                 {Kind: "picture", Count: 1, Where: "\xff"},
		"a long place":              {Kind: "picture", Count: 1, Where: strings.Repeat("x", 1001)},
		"a remedy of several lines": {Kind: "picture", Count: 1, Remedy: "a\nb"},
	} {
		if o.Check() == nil {
			t.Errorf("%s: %+q is accepted", name, o)
		}
	}
}
