package file_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	memoryfile "github.com/loci-memory/loci/memory/file"
)

// refusal returns the error text if writing the index is refused, or "" if it is stored.
func (f *fixture) refusal(content string) string {
	if _, err := f.store.Write(f.Context(), f.at, index, content, ""); err != nil {
		return err.Error()
	}
	return ""
}

func TestClaim227TheIndexHasPointersNotContent(t *testing.T) {
	t.Parallel()
	f := withTopics(t)
	if got := f.refusal(good + "\n- More: see projects/claw.md\n"); got != "" {
		t.Errorf("a pointer: got %s", got)
	}
	if got := f.refusal(good + "\n## More\n\nThe staging host is s2 and has four cores.\n"); !strings.Contains(got,
		"[content]") {
		t.Errorf("content: got %q", got)
	}
}

func TestClaim233RecentActivityKeepsTheLastFive(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	text := "# Memory\n\n## Recent\n\n"
	for i := range 9 {
		text += fmt.Sprintf("- Day %d\n", i+1)
		text = f.write(index, text).Content
		if n := strings.Count(text, "- Day "); n != min(i+1, 5) {
			t.Errorf("after %d entries: %d are listed", i+1, n)
		}
	}
	if !strings.Contains(text, "- Day 9\n") || strings.Contains(text, "- Day 4\n") {
		t.Errorf("not the last five: %s", text)
	}
}

func TestClaims234And250TheIndexHasAtMost5000Characters(t *testing.T) {
	t.Parallel()
	f := withTopics(t)
	row := "| projects/claw.md | " + strings.Repeat("x", 60) + " |\n"
	text, stored := good+"\n"+strings.Repeat(row, 40), ""
	for f.refusal(text) == "" {
		stored, text = text, text+row
	}
	last, next := utf8.RuneCountInString(stored), utf8.RuneCountInString(text)
	if last > 5_000 || next <= 5_000 || !strings.Contains(f.refusal(text), "[size]") {
		t.Errorf("%d characters are stored, %d are refused with %q", last, next, f.refusal(text))
	}
}

// compressed is a tree with an index of 92,000 characters that was compressed: the index before, and all files after.
var compressed struct {
	once   sync.Once
	before string
	files  map[string]string
}

// compress compresses an index of 92,000 characters, once for all tests.
func compress(t *testing.T) (before string, files map[string]string) {
	t.Helper()
	compressed.once.Do(func() {
		f := withGrown(t, 60)
		before := f.files()[index]
		f.apply(f.proposed())
		f.checkCompressed(before)
		compressed.before, compressed.files = before, f.files()
	})
	return compressed.before, compressed.files
}

func TestClaims235And258AnIndexOf92000CharactersIsCompressedBy96Percent(t *testing.T) {
	t.Parallel()
	before, files := compress(t)
	was, is := utf8.RuneCountInString(before), utf8.RuneCountInString(files[index])
	if was < 90_000 || is*100 > was*4 {
		t.Errorf("%d characters became %d, more than 4 in 100", was, is)
	}
}

func TestClaims236And259TheIndexTakesATwentiethOfItsTokens(t *testing.T) {
	t.Parallel()
	before, files := compress(t)
	if was, is := len(before)/4, len(files[index])/4; was < 20_000 || is*20 > was {
		t.Errorf("the index took %d tokens and takes %d", was, is)
	}
}

func TestClaim237WhatTheIndexLosesIsFound(t *testing.T) {
	t.Parallel()
	_, files := compress(t)
	const fact = "The decision 17 of project 42 is to keep the table of the seventh month."
	for path, text := range files {
		if strings.Contains(text, fact) {
			if name := strings.TrimPrefix(path, "/memories/"); strings.Contains(files[index], fact) ||
				!strings.Contains(files[index], name) {
				t.Errorf("the fact is in %s, which the index does not name: %s", path, files[index])
			}
			return
		}
	}
	t.Error("no file has the fact")
}

func TestClaim251TheIndexHasNoHashesCodeOrErrors(t *testing.T) {
	t.Parallel()
	f := withTopics(t)
	for rule, line := range map[string]string{"hash": "- Fixed in 3f2a9bc, see projects/claw.md",
		"code": "```go\nfunc main() {}\n```", "error": "- panic: runtime error, see lessons.md"} {
		if got := f.refusal(good + "\n" + line + "\n"); !strings.Contains(got, "["+rule+"]") {
			t.Errorf("%s: got %q", rule, got)
		}
	}
}

func TestClaim252NoListHasMoreThanFiveItems(t *testing.T) {
	t.Parallel()
	f := withTopics(t)
	for n := 4; n < 8; n++ {
		got := f.refusal(good + "\n## More\n\n" + strings.Repeat("- projects/claw.md\n", n))
		if strings.Contains(got, "[list]") != (n > 5) {
			t.Errorf("%d items: got %q", n, got)
		}
	}
}

func TestClaim253NoFactOfAnotherFileStandsInTheIndex(t *testing.T) {
	t.Parallel()
	f := withTopics(t)
	got := f.refusal(good + "\n- The release needs two approvals from the platform team. See projects/claw.md\n")
	if !strings.Contains(got, "[duplicate]") || !strings.Contains(got, "/memories/projects/claw.md") {
		t.Errorf("got %q, want the rule and the file", got)
	}
}

func TestClaim254TemporaryNotesGoToTODO(t *testing.T) {
	t.Parallel()
	f := withTopics(t)
	got := f.refusal(good + "\n- TODO: call Bob, see projects/claw.md\n")
	if !strings.Contains(got, "[temporary]") || !strings.Contains(got, "/memories/TODO.md") {
		t.Errorf("got %q, want the rule and the file", got)
	}
}

func TestClaim255MoreThanThreeChangedFilesAreNamed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 4 {
		c, err := f.store.Write(t.Context(), f.at, fmt.Sprintf("/memories/%d.md", i), "x", "")
		if err != nil || (len(c.Notes) > 0) != (i > 2) {
			t.Errorf("after %d files: got %q, %v", i+1, c.Notes, err)
		}
	}
}

func TestClaim265TheRulesHoldForEachWayOfWriting(t *testing.T) {
	t.Parallel()
	f := withTopics(t)
	const line = "## More\n\nThe staging host is s2 and has four cores."
	_, edit := f.store.Edit(t.Context(), f.at, index, func(content string) (string, error) {
		return memoryfile.Insert(index, content, line, len(memoryfile.Lines(content)))
	})
	_, _, all := f.store.WriteAll(t.Context(), f.at, []memoryfile.NewFile{{Path: index,
		Content: good + "\n" + line + "\n"}})
	for what, err := range map[string]error{"an edit": edit, "many files at once": all} {
		if err == nil || !strings.Contains(err.Error(), "[content]") {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if f.files()[index] != good {
		t.Errorf("the index is %s", f.files()[index])
	}
}
