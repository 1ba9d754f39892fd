package erase_test

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/tenant/erase"
)

// A report names rows by ids that callers know, never by numbers that count the rows of all organizations.
func TestPlacesAreNamedByIDs(t *testing.T) {
	t.Parallel()
	pool, org := dbtest.Org(t)
	owner := dbtest.Owner(t, pool)
	const word = "Qzoraplace"
	for _, sql := range []string{
		`INSERT INTO folders (org, name) VALUES ($1, $2)`,
		`INSERT INTO archives (org, name) VALUES ($1, $2)`,
		`INSERT INTO memory_trees (org, name) VALUES ($1, $2)`,
		`INSERT INTO tools (org, name, description, source_type, json_schema, return_char_limit)
		VALUES ($1, 'f', $2, 'python', '{}', 1000)`,
		`WITH b AS (INSERT INTO blocks (org, label, value, limit_chars) VALUES ($1, 'human', $2, 100) RETURNING key)
		INSERT INTO block_versions (org, block_key, version, author, label, value, limit_chars, read_only)
		SELECT $1, key, 7, 'x', 'human', $2, 100, false FROM b`,
	} {
		if _, err := owner.Exec(t.Context(), sql, org, word); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	e, err := newStore(t, pool, nil).Create(t.Context(), org, erase.Request{Texts: []string{word}})
	if err != nil {
		t.Fatal(err)
	}
	id := regexp.MustCompile(`-[0-9a-f-]{36}`)
	got := map[string]string{}
	for _, p := range e.Report.Places {
		got[p.Where] = id.ReplaceAllString(p.Of, "-…")
	}
	want := map[string]string{"folders.name": "source-…", "archives.name": "archive-…",
		"memory_trees.name": "tree-…",
		"tools.description": "tool-…", "blocks.value": "block-…", "block_versions.value": "block-… version 7"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the places (-want +got): %s", diff)
	}
}
