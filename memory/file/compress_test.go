package file_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest/scale"
	memoryfile "github.com/loci-memory/loci/memory/file"
)

// grown returns an index as an agent writes it inline, with about 1,500 characters per project.
func grown(projects int) string {
	var b strings.Builder
	b.WriteString("# Memory of the agent\r\n\r\nWhat I know.\n\n## Users\n\n| Handle | Role | Notes |\n" +
		"| --- | --- | --- |\n| ada | owner | likes short answers |\n\n## Infrastructure\n\n- DNS: see infra/dns.md\n" +
		"- The staging host is s2.\n\n```sh\n# not a heading\nssh s2\n```\n\n" +
		"panic: runtime error: index out of range [3]\n\n## 团队\n\n- 王明负责部署。\n\n## TODO\n\n" +
		"- TODO: ask Ada for the key\n\n")
	for i := range projects {
		fmt.Fprintf(&b, "## Project %d\n\nThe project %[1]d is built with Go.\n\n### Status\n\n- Fixed in a1b2c3%02[1]d\n", i)
		for j := range 20 {
			fmt.Fprintf(&b, "- The decision %d of project %d is to keep the table of the seventh month.\n", j, i)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (f *fixture) proposed(topics ...memoryfile.Topic) memoryfile.Proposal {
	f.Helper()
	g, err := f.store.Grown(f.Context(), f.at, nil)
	if err != nil {
		f.Fatal(err)
	}
	p, err := f.store.Propose(f.Context(), g, topics)
	if err != nil {
		f.Fatal(err)
	}
	return p
}

func (f *fixture) apply(p memoryfile.Proposal) {
	f.Helper()
	var files []memoryfile.NewFile
	for _, file := range p.Files {
		files = append(files, file.NewFile)
	}
	if _, _, err := f.store.WriteAll(f.Context(), f.at, files); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) rules(r memoryfile.IndexRules) {
	f.Helper()
	if _, err := f.store.UpdateTree(f.Context(), f.org, f.at.Tree, memoryfile.TreeUpdate{Rules: &r}); err != nil {
		f.Fatal(err)
	}
}

// withGrown returns a tree with a grown index of a number of projects. Its index rules hold again.
func withGrown(t *testing.T, projects int) *fixture {
	f := newFixture(t)
	f.write("/memories/infra/dns.md", "The zone is example.net.\n")
	f.rules(memoryfile.IndexRules{Off: []string{"*"}})
	f.write(index, grown(projects))
	f.rules(memoryfile.IndexRules{})
	return f
}

// checkCompressed checks that every line of the grown index is in some file, and that the index obeys its rules.
func (f *fixture) checkCompressed(before string) {
	f.Helper()
	all := strings.Join(mapValues(f.files()), "\n")
	for line := range strings.Lines(strings.ReplaceAll(before, "\r\n", "\n")) {
		if text := strings.TrimSpace(line); text != "" && !strings.HasPrefix(text, "#") && !strings.Contains(all, text) {
			f.Errorf("no file has the line %q", text)
		}
	}
	l, err := f.store.Lint(f.Context(), f.org, f.at.Tree)
	if err != nil {
		f.Fatal(err)
	}
	if len(l.Violations)+len(l.Unreachable) > 0 || l.IndexChars > 5_000 {
		f.Errorf("got an index of %d characters that breaks %v and does not reach %v", l.IndexChars, l.Violations,
			l.Unreachable)
	}
}

func mapValues(m map[string]string) (all []string) {
	for _, v := range m {
		all = append(all, v)
	}
	return all
}

// A grown index becomes pointers and files, according to its headings. Every line is in some file. Nothing is written
// before the proposal is applied.
func TestAGrownIndexIsCompressedByItsHeadings(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	f := withGrown(t, 10)
	before := f.files()[index]
	if n := utf8.RuneCountInString(before); n < 15_000 {
		t.Fatalf("the index has %d characters", n)
	}
	p := f.proposed()
	if p.How != "headings" || len(p.Violations) > 0 || len(f.files()) != 2 {
		t.Fatalf("got %s, violations %v, %d files", p.How, p.Violations, len(f.files()))
	}
	f.apply(p)
	f.checkCompressed(before)
	t.Logf("%d characters became %d, and %d lines moved", p.CharsNow, p.CharsThen, p.LinesMoved)
	texts := f.files()
	for path, want := range map[string]string{
		"/memories/projects/project-7.md": "# Project 7\n\nThe project 7 is built with Go.\n\n### Status",
		"/memories/TODO.md":               "- TODO: ask Ada for the key", "/memories/topics/团队.md": "王明负责部署。",
		"/memories/infra/infrastructure.md": "```sh\n# not a heading\nssh s2\n```",
		index:                               "- DNS: see infra/dns.md",
	} {
		if !strings.Contains(texts[path], want) {
			t.Errorf("%s: got %.300q, want %q", path, texts[path], want)
		}
	}
	g, err := f.store.Grown(t.Context(), f.at, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = f.store.Propose(t.Context(), g, nil); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("a compressed index: got %v, want that there is nothing to move", err)
	}
}

// A model's topics say where lines go. Lines that it leaves out, repeats, or puts where agents may not write are sorted
// by their headings.
func TestAModelSortsTheLinesOfAnIndex(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	f := withGrown(t, 10)
	before := f.files()[index]
	p := f.proposed(memoryfile.Topic{Path: "/memories/infra/staging.md", Title: "Staging | host",
		Lines: [][2]int{{14, 20}, {-5, 0}}},
		memoryfile.Topic{Path: "/memories/people/ada.md", Title: "Ada", Lines: [][2]int{{9, 9}, {14, 15}}},
		memoryfile.Topic{Path: "/memories/../etc/passwd", Lines: [][2]int{{1, 900}}},
		memoryfile.Topic{Path: "/memories/memory.MD", Lines: [][2]int{{1, 900}}},
		memoryfile.Topic{Path: "/memories/MANIFEST.md", Lines: [][2]int{{1, 900}}},
		memoryfile.Topic{Path: "/memories/empty.md", Lines: [][2]int{{900_000, 900_001}}})
	f.apply(p)
	f.checkCompressed(before)
	texts := f.files()
	if !strings.HasPrefix(texts["/memories/infra/staging.md"], "# Staging host\n\n- The staging host is s2.") ||
		strings.Contains(texts["/memories/people/ada.md"], "staging") || texts["/memories/empty.md"] != "" {
		t.Errorf("got %q and %q", texts["/memories/infra/staging.md"], texts["/memories/people/ada.md"])
	}
}

// A proposal is refused if the tree has changed since, and changes nothing.
func TestAnOldProposalChangesNothing(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	f := withGrown(t, 10)
	p := f.proposed()
	f.write("/memories/projects/project-7.md", "Written meanwhile.\n")
	before := f.files()
	var files []memoryfile.NewFile
	for _, file := range p.Files {
		files = append(files, file.NewFile)
	}
	_, _, err := f.store.WriteAll(t.Context(), f.at, files)
	if !errors.Is(err, db.ErrConflict) || !strings.Contains(err.Error(), "project-7.md exists already") {
		t.Errorf("got %v, want a conflict", err)
	}
	if len(f.files()) != len(before) || f.files()[index] != before[index] {
		t.Error("a refused proposal wrote files")
	}
	again := f.proposed()
	f.apply(again)
	f.checkCompressed(before[index])
	if text := f.files()["/memories/projects/project-7.md"]; !strings.HasPrefix(text, "Written meanwhile.\n\n") {
		t.Errorf("a file that was there got %.100q", text)
	}
}

// A text that is in no tree can be compressed into a tree, even if the rules would refuse it as an index.
func TestATextIsCompressedIntoATree(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	f := newFixture(t)
	text := grown(10)
	g, err := f.store.Grown(t.Context(), f.at, &text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.store.Propose(t.Context(), g, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.apply(p)
	f.checkCompressed(strings.ReplaceAll(text, "- DNS: see infra/dns.md", ""))
	nowhere := memoryfile.At{Org: f.org, Tree: "tree-none"}
	if _, err := f.store.Grown(t.Context(), nowhere, &text); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("a tree that is not there: got %v", err)
	}
}

// Whatever an index contains, each of its lines is in some file after the proposal is applied.
func TestOddIndexesAreCompressed(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	for name, text := range map[string]string{
		"no heading":                 strings.Repeat("The staging host is s2, and it is large.\n", 400),
		"one long line":              strings.Repeat("word ", 10_000),
		"only items":                 strings.Repeat("- An item of a list without an end\n", 100),
		"an open fence":              "# A\n```\n# b\n## c\ncode",
		"headings of one name":       strings.Repeat("## Status\nIt is green.\n\n", 90),
		"levels that jump":           "###### deep\ntext of it\n# high\ntext\n### middle\nmore text",
		"right to left":              "## ذاكرة\n\nالخادم هو s2.\n\n## זיכרון\n\nהשרת הוא s2.\n",
		"a title of signs":           "## ///\nA text.\n\n## ...\nB text.\n",
		"look-alikes":                "## раypal\nA text.\n",
		"a long title":               "## " + strings.Repeat("long ", 60) + "\nA text.\n",
		"a hash as title":            "## deadbeef01\nA text.\n",
		"a title of an error":        "## Error: it failed\nA text.\n",
		"the manifest":               "## MANIFEST\nA text.\n",
		"pointers that lead nowhere": "- Ada: people/ada.md\n- Bob: people/bob.md\n",
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.rules(memoryfile.IndexRules{Off: []string{"*"}})
			f.write(index, text)
			f.rules(memoryfile.IndexRules{})
			f.apply(f.proposed())
			f.checkCompressed(text)
		})
	}
}
