package file_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/loci-memory/loci/db"
	memoryfile "github.com/loci-memory/loci/memory/file"
)

const index = "/memories/MEMORY.md"

// good is an index that obeys the rules.
const good = `# Memory

The index of my notes.

## Users

| Handle | Role | Notes |
| --- | --- | --- |
| ada | owner | likes short answers |

## Projects

| Name | Status | File |
| --- | --- | --- |
| Claw | open | projects/claw.md |

- Infrastructure: see memory/infra/dns.md
- Lessons: /memories/lessons.md, and [the web](https://example.com/a.md)

## Recent

- Moved the database
`

func withTopics(t *testing.T) *fixture {
	f := newFixture(t)
	f.write("/memories/projects/claw.md", "# Claw\n\nThe release needs two approvals from the platform team.\n")
	f.write("/memories/infra/dns.md", "The zone is example.net.\n")
	f.write("/memories/lessons.md", "Read the log first.\n")
	f.write(index, good)
	return f
}

// For each rule, a line that breaks it is refused. The error names the rule, and the place where the line belongs.
func TestTheRulesOfAnIndex(t *testing.T) {
	t.Parallel()
	f := withTopics(t)
	for _, tt := range []struct{ rule, line, where string }{
		{"content", "The staging host is s2.", "in /memories/infra/*.md"},
		{"content", "- The user prefers tea to coffee.", "in /memories/people/*.md"},
		{"content", "- Claw: " + strings.Repeat("very ", 50) + "long, see projects/claw.md", "/memories/projects/*.md"},
		{"content", "- The database password is rotated on Mondays, see infra/dns.md", "in /memories/infra/*.md"},
		{"content", "The user prefers tea, and projects/claw.md has more.", "in /memories/projects/*.md"},
		{"content", "The user drinks tea:\n\nprojects/claw.md", "in /memories/people/*.md"},
		{"temporary", "- Use the old host until Friday, see infra/dns.md", "in /memories/TODO.md"},
		{"temporary", "- Remember to call Bob, see projects/claw.md", "in /memories/TODO.md"},
		{"temporary", "## Temporary notes\n\n- The host of the week, projects/claw.md", "in /memories/TODO.md"},
		{"hash", "- Fixed in 3f2a9bc, see projects/claw.md", "in /memories/projects/*.md"},
		{"code", "```go\nfunc main() {}\n```", "in /memories/projects/*.md"},
		{"error", "- panic: runtime error, see lessons.md", "in /memories/lessons.md"},
		{"error", "- ValueError: bad input, see lessons.md", "in /memories/lessons.md"},
		{"temporary", "- TODO: call Bob, see projects/claw.md", "in /memories/TODO.md"},
		{"duplicate", "- The release needs two approvals from the platform team. See projects/claw.md",
			"/memories/projects/claw.md"},
		{"duplicate", "- For the release, two approvals from the platform team are needed: projects/claw.md",
			"/memories/projects/claw.md"},
		{"content", "## Rules\n\n- The staging host is s2.", "in /memories/infra/*.md"},
		{"list", "## People\n\n| Name | Role |\n| --- | --- |\n" + strings.Repeat("| ada | owner |\n", 6), "row 6"},
		{"dangling", "- Bob: people/bob.md", "people/bob.md, which does not exist"},
		{"dangling", "- Bob: /memories/people/", "/memories/people/, which does not exist"},
		{"list", strings.Repeat("- projects/claw.md\n", 6), "item 6"},
		{"size", strings.Repeat("| projects/claw.md | "+strings.Repeat("x", 100)+" |\n", 45), "5000"},
	} {
		_, err := f.store.Write(t.Context(), f.at, index, good+"\n## More\n\n"+tt.line+"\n", "")
		if !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), "["+tt.rule+"]") ||
			!strings.Contains(err.Error(), tt.where) {
			t.Errorf("%s: %.60q: got %v, want the rule and %q", tt.rule, tt.line, err, tt.where)
		}
		if tt.rule != "size" && err != nil && !strings.Contains(err.Error(), "line ") {
			t.Errorf("%s: got %v, which names no line", tt.rule, err)
		}
		off := memoryfile.IndexRules{Off: []string{"*"}}
		if _, err := f.store.UpdateTree(t.Context(), f.org, f.at.Tree, memoryfile.TreeUpdate{Rules: &off}); err != nil {
			t.Fatal(err)
		}
		if _, err := f.store.Write(t.Context(), f.at, index, good+tt.line+"\n", ""); err != nil {
			t.Errorf("%s that does not hold: got %v", tt.rule, err)
		}
		f.write(index, good)
		if _, err := f.store.UpdateTree(t.Context(), f.org, f.at.Tree, memoryfile.TreeUpdate{
			Rules: &memoryfile.IndexRules{}}); err != nil {
			t.Fatal(err)
		}
	}
	if got := f.files()[index]; got != good {
		t.Errorf("the index is %q", got)
	}
}

func TestRecentActivityRolls(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	section := func(from, to, step int) string {
		text := "# Memory\n\n## Recent\n\n"
		for i := from; i != to; i += step {
			text += fmt.Sprintf("- Day %d\n", i)
		}
		return text
	}
	f.write(index, section(1, 6, 1))
	c, err := f.store.Write(t.Context(), f.at, index, section(1, 7, 1), "")
	if err != nil || c.File.Content != section(2, 7, 1) || len(c.Notes) != 1 || !strings.Contains(c.Notes[0], "Day 1") {
		t.Errorf("one more at the end: got %q, %q, %v", c.File.Content, c.Notes, err)
	}
	f.write(index, section(5, 0, -1))
	if c, err = f.store.Write(t.Context(), f.at, index, section(7, 0, -1), ""); err != nil ||
		c.File.Content != section(7, 2, -1) {
		t.Errorf("two more at the beginning: got %q, %v", c.File.Content, err)
	}
}

// The dates of entries tell which are the oldest, even when the index is written for the first time.
func TestRecentActivityRollsByItsDates(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	section := func(days ...int) string {
		text := "# Memory\n\n## Recent\n\n"
		for _, day := range days {
			text += fmt.Sprintf("- 2026-01-%02d: a day\n", day)
		}
		return text
	}
	if got := f.write(index, section(1, 2, 3, 4, 5, 6, 7)).Content; got != section(3, 4, 5, 6, 7) {
		t.Errorf("the oldest first: got %q", got)
	}
	if got := f.write(index, section(9, 8, 7, 6, 5, 4)).Content; got != section(9, 8, 7, 6, 5) {
		t.Errorf("the newest first: got %q", got)
	}
}

func TestPointersOfTheIndexStayTrue(t *testing.T) {
	t.Parallel()
	f := withTopics(t)
	if _, _, err := f.store.Delete(t.Context(), f.at, "/memories/infra", ""); !errors.Is(err, db.ErrInvalid) ||
		!strings.Contains(err.Error(), "line 17") {
		t.Errorf("a deletion of what the index points to: got %v", err)
	}
	_, notes, err := f.store.Rename(t.Context(), f.at, "/memories/infra", "/memories/services")
	if err != nil || len(notes) != 1 {
		t.Errorf("a renaming: got %q, %v", notes, err)
	}
	want := strings.Replace(good, "memory/infra/dns.md", "services/dns.md", 1)
	if got := f.files()[index]; got != want {
		t.Errorf("the index is %q, want %q", got, want)
	}
}

func TestTheManifestIsObeyed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	operator := memoryfile.At{Org: f.org, Tree: f.at.Tree, Author: db.Provenance{KeyID: "key-1"}}
	m := memoryfile.Manifest{Entries: []memoryfile.ManifestEntry{
		{Path: "/memories/log.md", Holds: "what happened", Update: "append"},
		{Path: "/memories/short/*.md", Holds: "short notes", MaxChars: 10, Update: "replace",
			NotHere: "Long ones go to log.md."},
	}}
	if _, err := f.store.SetManifest(t.Context(), operator, m); err != nil {
		t.Fatal(err)
	}
	if got, own, err := f.store.Manifest(t.Context(), f.org, f.at.Tree); err != nil || !own || len(got.Entries) != 2 ||
		got.Entries[1] != m.Entries[1] {
		t.Errorf("the manifest is %+v, %t, %v", got, own, err)
	}
	f.write("/memories/log.md", "one\n")
	f.write("/memories/log.md", "one\ntwo\n")
	if _, _, err := f.store.Delete(t.Context(), f.at, "/memories/log.md", ""); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("a deletion of what is only added to: got %v, want ErrInvalid", err)
	}
	if _, _, err := f.store.Rename(t.Context(), f.at, "/memories/log.md", "/memories/b.md"); !errors.Is(err,
		db.ErrInvalid) {
		t.Errorf("a renaming of what is only added to: got %v, want ErrInvalid", err)
	}
	if got := f.files()["/memories/log.md"]; got != "one\ntwo\n" {
		t.Errorf("what is only added to is %q", got)
	}
	for path, text := range map[string]string{"/memories/log.md": "two\n", "/memories/short/a.md": "more than ten",
		memoryfile.ManifestPath: m.Render(), "/memories/manifest.md": "x"} {
		if _, err := f.store.Write(t.Context(), f.at, path, text, ""); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", path, err)
		}
	}
	f.write("/memories/long.md", "more than ten")
	if _, _, err := f.store.Rename(t.Context(), f.at, "/memories/long.md", "/memories/short/a.md"); !errors.Is(err,
		db.ErrInvalid) {
		t.Errorf("a renaming to a path for less: got %v, want ErrInvalid", err)
	}
	if _, _, err := f.store.Delete(t.Context(), f.at, memoryfile.ManifestPath, ""); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("its deletion by an agent: got %v, want ErrInvalid", err)
	}
	if _, _, err := f.store.Rename(t.Context(), f.at, memoryfile.ManifestPath, "/memories/m"); !errors.Is(err,
		db.ErrInvalid) {
		t.Errorf("its renaming: got %v, want ErrInvalid", err)
	}
	if _, err := f.store.Write(t.Context(), operator, memoryfile.ManifestPath, "no table", ""); !errors.Is(err,
		db.ErrInvalid) {
		t.Errorf("a manifest without a table: got %v, want ErrInvalid", err)
	}
	c, err := f.store.Write(t.Context(), f.at, "/memories/other.md", "x", "")
	if err != nil || len(c.Notes) != 1 || !strings.Contains(c.Notes[0], "covers") {
		t.Errorf("a path that it does not cover: got %q, %v", c.Notes, err)
	}
}

func TestManyChangedFilesAreNamed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var notes []string
	for i := range 4 {
		c, err := f.store.Write(t.Context(), f.at, fmt.Sprintf("/memories/%d.md", i), "x", "")
		if err != nil {
			t.Fatal(err)
		}
		if notes = c.Notes; (len(notes) > 0) != (i == 3) {
			t.Errorf("after %d files: got %q", i+1, notes)
		}
	}
	if !strings.Contains(notes[0], "/memories/0.md, /memories/1.md, /memories/2.md, /memories/3.md") {
		t.Errorf("got %q", notes)
	}
	f.write(index, "- 0.md\n")
	if c, err := f.store.Write(t.Context(), f.at, "/memories/0.md", "y", ""); err != nil || len(c.Notes) > 0 {
		t.Errorf("after the index was changed: got %q, %v", c.Notes, err)
	}
}

// No way of writing makes an index too long, even if many servers write it at the same time.
func TestAnIndexNeverGetsTooLong(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("/memories/a.md", "a")
	f.write(index, "# Index\n")
	pool, err := db.Connect(t.Context(), f.pool.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	pools := []*pgxpool.Pool{f.pool, pool}
	var group errgroup.Group
	group.SetLimit(8) // each has a connection
	for writer := range 40 {
		group.Go(func() error {
			row := fmt.Sprintf("| a.md | %d%s |", writer, strings.Repeat("x", 150))
			store := memoryfile.New(pools[writer%2], memoryfile.Options{})
			_, err := store.Edit(t.Context(), f.at, index, func(content string) (string, error) {
				return memoryfile.Insert(index, content, row, len(memoryfile.Lines(content)))
			})
			if errors.Is(err, db.ErrInvalid) {
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if n := utf8.RuneCountInString(f.files()[index]); n > 5_000 || n < 4_500 {
		t.Errorf("the index has %d characters, want as many as fit 5,000", n)
	}
	f.write("/memories/long.md", strings.Repeat("x", 5_001))
	if _, err := f.store.Create(t.Context(), memoryfile.At{Org: f.org, Tree: f.at.Tree}, "/memories/memory.MD",
		"x", memoryfile.Dates{}); err == nil {
		t.Error("there are two indexes")
	}
	if _, _, err := f.store.Delete(t.Context(), f.at, index, ""); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.store.Rename(t.Context(), f.at, "/memories/long.md", "/memories/Memory.md"); !errors.Is(err,
		db.ErrInvalid) {
		t.Errorf("a long file in the place of the index: got %v, want ErrInvalid", err)
	}
}

func TestALintReportsTheStateOfATree(t *testing.T) {
	t.Parallel()
	f := withTopics(t)
	f.write("/memories/orphan.md", "nobody points here")
	l, err := f.store.Lint(t.Context(), f.org, f.at.Tree)
	if err != nil || len(l.Violations) != 0 || l.Files != 5 || l.IndexChars != utf8.RuneCountInString(good) {
		t.Errorf("got %+v, %v", l, err)
	}
	if got := strings.Join(l.Unreachable, " "); got != "/memories/orphan.md" {
		t.Errorf("no pointer leads to %q", got)
	}
	off := memoryfile.IndexRules{Off: []string{"*"}}
	if _, err := f.store.UpdateTree(t.Context(), f.org, f.at.Tree, memoryfile.TreeUpdate{Rules: &off}); err != nil {
		t.Fatal(err)
	}
	f.write(index, good+"\n## More\n\nThe staging host is s2.\n")
	if l, err = f.store.Lint(t.Context(), f.org, f.at.Tree); err != nil || len(l.Violations) != 1 {
		t.Errorf("rules that do not hold are reported, too: got %+v, %v", l, err)
	}
}

// The rules accept what an index of pointers contains: labels, introductions, identifiers, other projects' files, other
// scripts.
func TestIndexesThatPointAreNotRefused(t *testing.T) {
	t.Parallel()
	f := withTopics(t)
	f.write("/memories/TODO.md", "- Ask Ada.\n")
	f.write("/memories/errors.md", "# Errors of the build and what they mean\n\nIt retries.\n")
	f.write("/memories/projects/爪.md", "部署在周五。\n")
	for _, lines := range []string{
		"- TODO: TODO.md", "- Todo list: see /memories/TODO.md", "## TODO\n\n- See TODO.md",
		"| Claw stack rewrite | WIP | projects/claw.md |",
		"- Error: see errors.md", "- Error budget: errors.md", "- Errors of the build and what they mean: errors.md",
		"- Temporary credentials of AWS and their life: infra/dns.md", "| Claw | TBD | projects/claw.md |",
		"- Staging agent 123e4567-e89b-42d3-8456-426614174000: infra/dns.md", "- Since 20260101, build 1234567: infra/dns.md",
		"- Commits are in https://example.com/c/3f2a9bc01d, see projects/claw.md", "- Colours #ff00aa: projects/claw.md",
		"- Claw builds from package.json and README.md: see projects/claw.md", "---\n\n- projects/claw.md",
		"**Projects**\n\n- projects/claw.md",
		"Details are in these files:\n\n- projects/claw.md", "## 👤 Users\n\n- ada likes short answers",
		"## Behaviour rules:\n\n- See AGENTS.md",
		"## Recent (last 5)\n\n- Moved the database", "- 项目爪:见projects/爪.md。",
		"- 项目:详见 /memories/projects/爪.md，以及 errors.md。",
		"- الخادم: انظر infra/dns.md", "- \u200fהשרת: infra/dns.md\u200f",
		"- 数据库:什么是主库、如何切换，见 infra/dns.md", "- 部署为何失败: projects/claw.md", "- 周五发布流程以及回滚步骤清单: projects/claw.md",
		"- Wie ein Release entsteht und was zu tun ist: projects/claw.md", "- Was im Notfall zu tun ist, in infra/dns.md",
		"- [Claw](projects/claw.md) and [DNS](memory/infra/dns.md)",
		"- `projects/claw.md`: the Claw", "- See projects/claw.md.", "* projects/claw.md\r\n* errors.md\r\n",
		"1. projects/claw.md\n2) errors.md",
		"> See projects/claw.md", "- DNS → infra/dns.md", "- **Claw** — projects/claw.md", "<!-- projects/claw.md -->",
	} {
		if _, err := f.store.Write(t.Context(), f.at, index, "# Memory\n\n"+lines+"\n", ""); err != nil {
			t.Errorf("%q: %v", lines, err)
		}
	}
	intro := "# Memory\n\nThis file is an index: each line\npoints to a file\nof details.\n\n- projects/claw.md\n"
	f.write(index, strings.ReplaceAll(intro, "\n", "\r\n"))
	for _, lines := range []string{
		"The staging host of Claw burns.\n\n- projects/claw.md", "See AGENTS.md", "- See CONTRIBUTING.md",
		"- Fixed by deadbee1 in projects/claw.md",
		"| Claw | it is broken for now and slow | projects/claw.md |",
		"- Temporary: use the host s3, see infra/dns.md", "- See projects/claw.md and people/none.md",
		"- projects/claw.md, memory/none.yaml",
		"- 数据库的端口是5433，见 projects/claw.md", "- 发布之前必须得到两个人的批准: projects/claw.md",
		"- Der Port der Datenbank ist 5433, siehe infra/dns.md", "- La base debe reiniciarse cada lunes: infra/dns.md",
		"项目爪:见projects/没有.md。", "A\nB\nC\nD\n\n- projects/claw.md", "- panic: it fails\n- projects/claw.md",
	} {
		text := "# Memory\n\nIntro.\n\n" + lines + "\n"
		if _, err := f.store.Write(t.Context(), f.at, index, text, ""); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("%q: got %v, want ErrInvalid", lines, err)
		}
	}
	if _, notes, err := f.store.Rename(t.Context(), f.at, "/memories/projects", "/memories/work"); err != nil {
		t.Errorf("a renaming: got %q, %v", notes, err)
	}
	f.write(index, "# Memory\n\n- 项目爪:见work/爪.md。\n")
	if _, _, err := f.store.Rename(t.Context(), f.at, "/memories/work", "/memories/p"); err != nil ||
		f.files()[index] != "# Memory\n\n- 项目爪:见p/爪.md。\n" {
		t.Errorf("the pointer became %q, %v", f.files()[index], err)
	}
}

// The index can point to every path that a file may have, and the pointers follow a renaming.
func TestEachPathCanBePointedTo(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, tt := range []struct{ path, line string }{
		{"w w.md", "- [W](<w w.md>)"},
		{"w w.md", "- [W](w%20w.md)"},
		{"w w.md", "- [W](</memories/w w.md> \"A title\"), see it"},
		{"it's.md", "- [it's.md](it's.md)"},
		{"x,y.md", "- [x,y.md](/memories/x,y.md)"},
		{"a(1).md", "- [A](a(1).md)"},
		{"b (2).md", "- [B](b%20%282%29.md#the-part)"},
		{"c[3].md", "- [C](c\\[3\\].md)"},
		{"d#4.md", "- [D](d%234.md)"},
		{"e&f=g!.md", "- [E](e&f=g!.md)"},
		{"noext", "- [N](noext)"},
		{"v1.2", "| V | [V](v1.2) |"},
		{"dir one/f.md", "- [F](<dir one/f.md>)"},
		{"dir one/f.md", "- [all](<dir one/>)"},
		{"[erased]/[erased].md", "- /memories/[erased]/[erased].md"},
		{"[erased]/[erased].md", "- [erased]/[erased].md"},
	} {
		file := "/memories/" + tt.path
		f.write(file, "A note.\n")
		f.write(index, "# Memory\n\n"+tt.line+"\n")
		l, err := f.store.Lint(t.Context(), f.org, f.at.Tree)
		if err != nil || len(l.Unreachable)+len(l.Violations) > 0 {
			t.Errorf("%s: unreachable %q, %+v, %v", tt.line, l.Unreachable, l.Violations, err)
		}
		from, to := file, "/memories/new dir/a, (b).md"
		if strings.HasSuffix(tt.line, "/>)") { // it points to the directory
			from, to = "/memories/dir one", "/memories/new (dir)"
		}
		_, _, err = f.store.Rename(t.Context(), f.at, from, to)
		if err != nil {
			t.Errorf("%s: a renaming: %v", tt.line, err)
		}
		if l, err = f.store.Lint(t.Context(), f.org, f.at.Tree); err != nil || len(l.Unreachable)+len(l.Violations) > 0 {
			t.Errorf("%s: after a renaming %q: unreachable %q, %+v, %v", tt.line, f.files()[index], l.Unreachable,
				l.Violations, err)
		}
		for _, path := range slices.Concat([]string{index}, slices.Collect(maps.Keys(f.files()))) {
			if _, _, err := f.store.Delete(t.Context(), f.at, path, ""); err != nil && !errors.Is(err, db.ErrNotFound) {
				t.Fatal(err)
			}
		}
	}
	for _, line := range []string{"- [W](<no such.md>)", "- [W](nothing)", "- [W](nothing%20here)", "- w w.md"} {
		if _, err := f.store.Write(t.Context(), f.at, index, "# Memory\n\n"+line+"\n", ""); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("%s: got %v", line, err)
		}
	}
}

// The manifest can never be the index.
func TestTheManifestIsNoIndex(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, path := range []string{memoryfile.ManifestPath, "/memories/manifest.MD"} {
		_, err := f.store.UpdateTree(t.Context(), f.org, f.at.Tree, memoryfile.TreeUpdate{
			Rules: &memoryfile.IndexRules{Index: path}})
		if !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), "rules.index") {
			t.Errorf("%s: got %v, want ErrInvalid", path, err)
		}
	}
}

// A list line that points to a file names it and what it is about, and tells none of its facts.
func TestAFactBesideAPointerOfAListIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("/memories/a.md", "# A\n")
	index := func(line string) error {
		_, err := f.store.Write(t.Context(), f.at, "/memories/MEMORY.md", "# Index\n\n## Topics\n"+line+"\n", "")
		return err
	}
	for _, told := range []string{
		"- [Ada](/memories/a.md) is allergic to nuts", "- [Ada](/memories/a.md): lives in Oslo and likes tea",
		"- /memories/a.md: has two cats", "- /memories/a.md is about to move to Oslo",
		"- /memories/a.md: the API runs on port 8080", "- [API](/memories/a.md): the API listens on port 8080",
		"- [API](/memories/a.md): port: 8080", "- [Release](/memories/a.md) — we ship on Friday at noon",
		"1. The deploy uses blue-green, see [deploys](/memories/a.md)", "- Ada moved to Oslo ([Ada](/memories/a.md))",
		"- Never push on Fridays ([rules](/memories/a.md))", "- [Ada](/memories/a.md): wohnt in Oslo",
	} {
		if err := index(told); err == nil || !strings.Contains(err.Error(), "[content]") {
			t.Errorf("%s: got %v, want a refusal", told, err)
		}
	}
	for _, named := range []string{
		"- [Ada](/memories/a.md): who she is and where she lives", "- [API](/memories/a.md): ports, hosts, how it starts",
		"- [Rules](/memories/a.md): what to do before a release", "- [Ada](/memories/a.md): the user's home, work and tastes",
		"- [Deploys](/memories/a.md): steps, owners and costs of a deploy",
		"- [Log](/memories/a.md): all runs since May 2026",
		"- [Postgres](/memories/a.md): uses, limits and setup", "- see /memories/a.md for how the database starts",
		"- [Trip](/memories/a.md) – hotel, flights, costs", "- [Wiki](/memories/a.md): wishes of its users",
	} {
		if err := index(named); err != nil {
			t.Errorf("%s: %v", named, err)
		}
	}
}
