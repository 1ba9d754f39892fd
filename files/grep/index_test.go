package grep_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/files/grep"
)

// shelf is a folder in a transaction that is rolled back at the end of the test, because the index is of the folders of
// all organizations.
type shelf struct {
	testing.TB
	tx     pgx.Tx
	org    db.Org
	folder int64
	search *grep.Searcher
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	pool, org := dbtest.Org(t)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	s := &shelf{TB: t, tx: tx, org: org, search: grep.New()}
	s.search.IndexChars = 100
	if s.folder, err = db.One[int64](t.Context(), tx, `
		INSERT INTO folders (org, name) VALUES ($1, 'f') RETURNING key`, org); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *shelf) exec(sql string, args ...any) {
	s.Helper()
	if _, err := s.tx.Exec(s.Context(), sql, args...); err != nil {
		s.Fatalf("%s: %v", sql, err)
	}
}

// store stores files of some characters each.
func (s *shelf) store(chars int, names ...string) {
	s.Helper()
	for _, name := range names {
		text := strings.Repeat("x", chars-1) + "\n"
		key, err := db.One[int64](s.Context(), s.tx, `
			INSERT INTO files (org, folder_key, name, original_name, media_type, size_bytes, sha256, generation, chars)
			VALUES ($1, $2, $3, $3, 'text/plain', $4, '', 1, $4) RETURNING key`, s.org, s.folder, name, chars)
		if err != nil {
			s.Fatal(err)
		}
		for segment := range grep.Segments(text) {
			s.exec(`INSERT INTO file_segments (org, file_key, generation, ordinal, first_line, lines, continues, text)
				VALUES ($1, $2, 1, $3, $4, $5, $6, $7)`, s.org, key, segment.Ordinal, segment.FirstLine, segment.Lines,
				segment.Continues, segment.Text)
		}
	}
}

// update indexes new text, and returns the blocks of the folder: the names of their files, oldest block first.
func (s *shelf) update() []string {
	s.Helper()
	if _, err := s.search.UpdateIndex(s.Context(), s.tx); err != nil {
		s.Fatal(err)
	}
	return s.blocks()
}

func (s *shelf) blocks() []string {
	s.Helper()
	list, err := db.All[string](s.Context(), s.tx, `
		SELECT string_agg(DISTINCT f.name, ' ' ORDER BY f.name)
		FROM gram_blocks b
		JOIN gram_units u ON u.org = b.org AND u.block_key = b.key
		JOIN files f ON f.org = u.org AND f.key = u.file_key
		WHERE b.org = $1 GROUP BY b.key ORDER BY b.key`, s.org)
	if err != nil {
		s.Fatal(err)
	}
	return list
}

// A folder's new text is indexed once there is enough of it. Smaller blocks are merged into new ones, larger ones stay.
func TestTextIsIndexedInBlocks(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	for _, step := range []struct {
		name  string
		chars int
		files []string
		want  []string
	}{
		{"too little text", 49, []string{"a", "b"}, nil},
		{"with a character more than is needed", 3, []string{"c"}, []string{"a b c"}},
		{"too little of new text", 99, []string{"d"}, []string{"a b c"}},
		{"more new text than in the block", 30, []string{"e"}, []string{"a b c d e"}},
		{"less new text than in the block", 120, []string{"f"}, []string{"a b c d e", "f"}},
		{"new text as large as the small block", 120, []string{"g"}, []string{"a b c d e f g"}},
	} {
		s.store(step.chars, step.files...)
		if got := s.update(); !slices.Equal(got, step.want) {
			t.Errorf("%s: the blocks have the files %q, want %q", step.name, got, step.want)
		}
	}
	if got := s.update(); !slices.Equal(got, []string{"a b c d e f g"}) {
		t.Errorf("without new text: the blocks are %q", got)
	}
	waiting, err := db.One[int](t.Context(), s.tx, `
		SELECT count(*) FROM files WHERE org = $1 AND gram_generation <> generation`, s.org)
	if err != nil || waiting != 0 {
		t.Errorf("%d files wait for the index, %v", waiting, err)
	}
}

// Exactly as much text as is needed is enough.
func TestTheLeastTextOfTheIndex(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.store(50, "a", "b")
	if got := s.update(); !slices.Equal(got, []string{"a b"}) {
		t.Errorf("the blocks are %q, want one", got)
	}
}

// A text that is larger than any block is not indexed.
func TestAHugeTextIsNotIndexed(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.store(200, "huge", "small")
	s.exec(`UPDATE files SET chars = $2 WHERE org = $1 AND name = 'huge'`, s.org, 256<<20+1)
	if got := s.update(); !slices.Equal(got, []string{"small"}) {
		t.Errorf("the blocks are %q, want the small text's", got)
	}
}

// A block is rebuilt when more than half of its files are gone or have another text, and goes when none is left.
func TestStaleBlocksAreRebuilt(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.store(50, "a", "b", "c", "d")
	s.update()
	prune := func(when string, parts int, want ...string) {
		t.Helper()
		if _, err := s.search.PruneIndex(t.Context(), s.tx); err != nil {
			t.Fatal(err)
		}
		got, err := db.One[string](t.Context(), s.tx, `
			SELECT coalesce(string_agg(parts::text, ' '), '') FROM gram_blocks WHERE org = $1`, s.org)
		if err != nil {
			t.Fatal(err)
		}
		counted := ""
		if parts > 0 {
			counted = fmt.Sprint(parts)
		}
		if blocks := s.blocks(); !slices.Equal(blocks, want) || got != counted {
			t.Errorf("%s: the blocks are %q with %s parts, want %q with %s", when, blocks, got, want, counted)
		}
	}
	s.exec(`DELETE FROM files WHERE org = $1 AND name IN ('a', 'b')`, s.org)
	prune("half of them are gone", 4, "c d")
	s.exec(`UPDATE files SET generation = 2 WHERE org = $1 AND name = 'c'`, s.org)
	prune("one of four is left", 1, "d")
	s.exec(`DELETE FROM files WHERE org = $1 AND name = 'd'`, s.org)
	prune("none is left", 0)
}
