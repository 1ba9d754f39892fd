package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const manualPage = `<html><head><title>5.4. Constraints on Rows</title></head><body>
<div class="navheader"><h2>5.3. Before</h2></div>
<h2 class="title">5.4. Constraints on Rows</h2>
<div class="toc"><a href="#check">5.4.1. Check Constraints</a></div>
<p>Data types limit the kind of data.</p>
<h3>5.4.1.&nbsp;Check <code>Constraints</code><a class="headerlink" href="#check">¶</a></h3>
<p>A check constraint is the most generic one.</p>
<nav><p>Next: Foreign Keys</p></nav>
<h3>5.4.2. Keys</h3>
</body></html>`

func TestAPageOfAManualHasItsSections(t *testing.T) {
	t.Parallel()
	p, err := postgresManual().page("ddl.html", manualPage)
	if err != nil {
		t.Fatal(err)
	}
	type seen struct {
		Level  int
		Title  string
		Chars  int
		Lowest bool
	}
	var got []seen
	for _, s := range p.sections {
		got = append(got, seen{s.level, s.title, s.chars, s.lowest})
	}
	want := []seen{
		{2, "Constraints on Rows", len("Data types limit the kind of data."), false},
		{3, "Check Constraints", len("A check constraint is the most generic one."), true},
		{3, "Keys", 0, true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the sections (-want +got):\n%s", diff)
	}
}

func TestAPageLacksTheTitlesThatAreAskedFor(t *testing.T) {
	t.Parallel()
	p, err := postgresManual().page("ddl.html", manualPage)
	if err != nil {
		t.Fatal(err)
	}
	questions := untitled([]sectionOf{{p, p.sections[1]}, {p, p.sections[0]}})
	f, err := rendered("manual", []*page{p})
	if err != nil {
		t.Fatal(err)
	}
	want := []fileQuestion{{text: "Check Constraints", file: "0001.html", heading: "◇◇◇◇◇◇◇◇◇◇◇◇"},
		{text: "Constraints on Rows", file: "0001.html", heading: "◇◇◇◇◇◇◇◇◇◇◇◆"}}
	if diff := cmp.Diff(want, questions, cmp.AllowUnexported(fileQuestion{})); diff != "" {
		t.Errorf("the questions (-want +got):\n%s", diff)
	}
	text := f.files[0].text
	for _, title := range []string{"Constraints", "Check"} {
		if strings.Contains(text, title) {
			t.Errorf("the page still has %q:\n%s", title, text)
		}
	}
	if !strings.Contains(text, "5.4.2. Keys") {
		t.Errorf("the page lacks the title of another section:\n%s", text)
	}
}

func TestTitlesThatTellASectionApartAreAsked(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("words of a section ", 20)
	titled := func(titles ...string) *page {
		p := &page{}
		for _, title := range titles {
			p.sections = append(p.sections, &section{title: title, chars: len(text)})
		}
		return p
	}
	pages := []*page{titled("Check Constraints", "Notes", "See also this"),
		titled("See Also This", "Migration to Version 15.3", "Migration to Version 15.4")}
	var got []string
	for _, s := range askable(pages) {
		got = append(got, s.section.title)
	}
	if diff := cmp.Diff([]string{"Check Constraints"}, got); diff != "" {
		t.Errorf("the titles that are asked (-want +got):\n%s", diff)
	}
}

func TestTheLinesBelowAHeadingEndAtTheNext(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text, heading string
		first, last         int
		ok                  bool
	}{
		{"a section between two", "# A\n\none\n\n## ◇◆\n\ntwo\nthree\n\n## B\n\nfour\n", "◇◆", 6, 8, true},
		{"the last section", "# A\n\none\n\n## ◇◆\n\ntwo\n", "◇◆", 6, 7, true},
		{"a heading that is a link", "## [Why `x`?](#why)[¶](#id1 \"link\")\n\nso\n", "Why x?", 2, 3, true},
		{"a comment in a fence is no heading", "## ◇◆\n\n```\n# no\n```\n\nend\n", "◇◆", 2, 7, true},
		{"nor in the fence of a list", "## ◇◆\n- ```\n  # no\n  ```\n\nend\n\n## B", "◇◆", 2, 6, true},
		{"no text", "## ◇◆\n\n## B\n\ntext\n", "◇◆", 2, 0, false},
		{"no such heading", "## A\n\ntext\n", "◇◆", 0, 0, false},
	} {
		first, last, ok := sectionLines(tt.text, tt.heading)
		if first != tt.first || last != tt.last || ok != tt.ok {
			t.Errorf("%s: lines %d to %d, %v, want %d to %d, %v", tt.name, first, last, ok, tt.first, tt.last, tt.ok)
		}
	}
}

func TestAManualThatIsNotInstalledNamesItsPackage(t *testing.T) {
	t.Parallel()
	m := postgresManual()
	m.root = filepath.Join(t.TempDir(), "none")
	if _, err := m.pages(); !errors.Is(err, errNotInstalled) || !strings.Contains(err.Error(), m.pkg) {
		t.Errorf("the error is %v", err)
	}
	var set fileSet
	if err := set.titles("manual", m); err != nil || !strings.Contains(set.skipped, m.pkg) {
		t.Errorf("the set is skipped for %q, %v", set.skipped, err)
	}
	set.name, set.from = "pgdocs", 80
	if err := belowRange([]fileSet{set}, make([]filesFound, 1)); err != nil {
		t.Errorf("what is not measured is below its range: %v", err)
	}
	if table := filesTable([]fileSet{set}, make([]filesFound, 1)); !strings.Contains(table, "apt-get install "+m.pkg) {
		t.Errorf("the table does not name the package:\n%s", table)
	}
}
