package file_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db"
)

// The rules refuse a fact, an error message or a long list in an index, in whatever form it is written.
func TestARuleOfAnIndexHoldsInEachForm(t *testing.T) {
	t.Parallel()
	f := withTopics(t)
	items := func(bullet string) string { return strings.Repeat(bullet+"[a](projects/claw.md)\n", 6) }
	for rule, texts := range map[string][]string{
		"content": {
			"# The password of the server is swordfish and the port is 99", "## The database runs on port 5433 since May",
			"> ## The user prefers tea to coffee", "**The staging host is s2 and burns**", "The staging host is s2\n---",
			"## Password: swordfish", "## Port: 5433", "## Database on port 5433 since May", "## Host 10.0.0.5 of staging",
			"## [The staging host is s2](projects/claw.md)", "## " + strings.Repeat("very ", 20) + "long",
			"| topic | file |\n|---|---|\n| The DB is on port 5433 | [a](projects/claw.md) |",
			"> | topic | file |\n> |---|---|\n> | The DB is on port 5433 | projects/claw.md |",
			"- The DB is on port 5433, see infra/dns.md", "- The port is 5433: infra/dns.md",
			"- The keys are in the blue safe of Ada: infra/dns.md",
			"- projects/claw.md\u2028The port is 5433 of the machine\u2028\n- projects/claw.md",
			"# I\vThe port is 5433 of the machine\v", "# I\fThe port is 5433 of it", "# I\u0085The port is 5433 of it",
			"# I\u2029The port is 5433 of it", "# I\rThe port is 5433 of it",
		},
		"error": {
			"- [a](projects/claw.md) panic: runtime error: index out of range [5]", "- projects/claw.md fatal error: all asleep",
			"- projects/claw.md goroutine 17 [running]:", "- projects/claw.md /src/main.go:12 +0x1d",
			"- projects/claw.md TypeError: x is undefined", "- projects/claw.md KeyError: 'x'",
			"- projects/claw.md java.lang.NullPointerException: null", "- projects/claw.md at com.Foo.bar(Foo.java:12)",
			"- projects/claw.md at f (/app/index.js:3:7)", "- projects/claw.md thread 'main' panicked at src/main.rs:2",
			"- projects/claw.md a.c:5:3: error: expected ;", "- projects/claw.md error[E0382]: borrow of moved value: x",
			"- projects/claw.md ENOENT: no such file", "- projects/claw.md bash: x: command not found",
			"- projects/claw.md ORA-00942: table", "- projects/claw.md ** (RuntimeError) oops",
			"| panic: boom and doom | projects/claw.md |", "## projects/claw.md panic: assignment to nil map",
			"- projects/claw.md app.rb:3:in `x'", "- projects/claw.md Exception in thread \"main\"",
		},
		"list": {
			items("• "), items("◦ "), items("– "), items("▪ "), items("✅ "), items("→ "), items("a) "), items("(1) "),
			items("iv. "), items("> - "), items("☑️ "), strings.Repeat("<li>projects/claw.md</li>\n", 6),
			strings.Repeat("- projects/claw.md\u2028", 6),
		},
		"duplicate": {"| topic | file |\n|---|---|\n" +
			"| The release needs two approvals from the platform team | projects/claw.md |"},
	} {
		for _, text := range texts {
			_, err := f.store.Write(t.Context(), f.at, index, "# Memory\n\n"+text+"\n", "")
			if !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), "["+rule+"]") {
				t.Errorf("%s: %q: got %v", rule, text, err)
			}
		}
	}
	c, err := f.store.Write(t.Context(), f.at, index, "# Memory\u2028\r\n- projects/claw.md\r\n", "")
	if err != nil || c.File.Content != "# Memory\n\r\n- projects/claw.md\r\n" || len(c.Notes) != 1 {
		t.Errorf("an index with another line end: got %q, %q, %v", c.File.Content, c.Notes, err)
	}
}

// The rules accept what an index is for: topics as headings, links with a short description, tables of pointers.
func TestGoodIndexesAreKept(t *testing.T) {
	t.Parallel()
	f := withTopics(t)
	f.write("/memories/errors.md", "# Errors of the build and what they mean\n\nIt retries.\n")
	for _, heading := range []string{
		"# Memory of Ada, who works on Claw", "## What is where", "## Who is who in the platform team",
		"## How the release is made and rolled back", "## Things we have learned from outages",
		"## Lessons learned from the migration to Postgres 17", "## Q3 2026: plans and decisions", "## 2026-11-23",
		"## Week 47 of 2026", "## Issue 12345 and what came of it", "## RFC 9110 and its caching rules",
		"## CLAW-12345: the slow release train", "## Projects (open)", "## Where the backups are kept",
		"## Rules that must be obeyed", "## The user and what she prefers", "## Read first: how this index works",
		"## Decisions (see also projects/)", "## Everything about the deployment of Claw", "## Bugs we have fixed",
		"## Questions Ada has asked", "## The nightly runs of the pipeline", "## Claw: the rewrite", "## Known errors",
		"## Tools I can use here", "## Secrets: where they are", "**Open questions of the team**", "Topics\n------",
		"Claw and its parts\n===", "> ## Older notes", "## Panic: what to do", "## Server errors and their causes",
	} {
		text := heading + "\n\n- [Claw](projects/claw.md): plan, decisions and people\n"
		if _, err := f.store.Write(t.Context(), f.at, index, text, ""); err != nil {
			t.Errorf("%q: %v", heading, err)
		}
	}
	for _, lines := range []string{
		"- [Claw](projects/claw.md) - what it is, and who is in it", "- [DNS](infra/dns.md) — how names are resolved",
		"- All notes on names are in infra/dns.md", "- Details are kept in the file of the project: projects/claw.md",
		"- There are 12 notes on releases in /memories/projects/", "| Claw | is open | projects/claw.md |",
		"| Claw | what must be done before a release | projects/claw.md |", "• projects/claw.md\n• infra/dns.md",
		"- [Panics](errors.md): what they mean", "- Panic: see errors.md", "- TypeError: errors.md",
		"- ECONNREFUSED of the proxy: errors.md", "- Error: see errors.md", "- Exit codes and their meaning: errors.md",
		"- Level of errors, and how they are logged: errors.md", "→ projects/claw.md", "> - projects/claw.md",
		"## People\n\n- Ada is the owner of Claw: projects/claw.md",
		"## Recent\n\n- 2026-01-02: Claw was moved to s3 (projects/claw.md)",
	} {
		if _, err := f.store.Write(t.Context(), f.at, index, "# Memory\n\n"+lines+"\n", ""); err != nil {
			t.Errorf("%q: %v", lines, err)
		}
	}
}
