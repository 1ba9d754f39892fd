package grep_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/files/grep"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// library is an organization's folder, attached to an agent.
type library struct {
	t      *testing.T
	pool   *pgxpool.Pool
	org    db.Org
	folder int64
	agent  string
}

func newLibrary(t *testing.T) *library {
	t.Helper()
	pool, org := dbtest.Org(t)
	l := &library{t: t, pool: pool, org: org}
	l.one(&l.folder, `INSERT INTO folders (org, name) VALUES ($1, 'f') RETURNING key`, org)
	l.one(&l.agent, `
		INSERT INTO agents (org, name, agent_type, system) VALUES ($1, 'a', 'letta_v1_agent', '') RETURNING id`, org)
	l.exec(`INSERT INTO agent_folders (org, agent_id, folder_key) VALUES ($1, $2, $3)`, org, l.agent, l.folder)
	return l
}

func (l *library) one(to any, sql string, args ...any) {
	l.t.Helper()
	if err := l.pool.QueryRow(l.t.Context(), sql, args...).Scan(to); err != nil {
		l.t.Fatalf("%s: %v", sql, err)
	}
}

func (l *library) exec(sql string, args ...any) {
	l.t.Helper()
	if _, err := l.pool.Exec(l.t.Context(), sql, args...); err != nil {
		l.t.Fatalf("%s: %v", sql, err)
	}
}

// store stores a file with its segments. Those of another generation are there, too, with another text.
func (l *library) store(name, text string) { l.storeAs("text/plain", name, text) }

func (l *library) storeAs(mediaType, name, text string) {
	l.t.Helper()
	var key int64
	l.one(&key, `
		INSERT INTO files (org, folder_key, name, original_name, media_type, size_bytes, sha256, generation, chars)
		VALUES ($1, $2, $3, $3, $5, $4, '', 2, $4) RETURNING key`, l.org, l.folder, name, len(text),
		mediaType)
	for generation, text := range map[int]string{1: "needle\nold\nneedle\n" + text, 2: text} {
		for s := range grep.Segments(text) {
			l.exec(`
				INSERT INTO file_segments (org, file_key, generation, ordinal, first_line, lines, continues, text)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
				l.org, key, generation, s.Ordinal, s.FirstLine, s.Lines, s.Continues, s.Text)
		}
	}
}

func (l *library) search(pattern *grep.Pattern, contextLines int) grep.Result {
	l.t.Helper()
	got, err := grep.New().Search(context.Background(), l.pool, grep.Query{Org: l.org, AgentID: l.agent,
		Pattern: pattern, ContextLines: contextLines})
	if err != nil {
		l.t.Fatal(err)
	}
	return got
}

// The lines around a match are those of the file, also if they fill several segments.
func TestContextIsReadFromAllSegments(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", grep.SegmentBytes/2)
	many := strings.Repeat("a short line\n", grep.SegmentBytes/5)
	for name, text := range map[string]string{
		"a long line before the match":       long + "\nneedle\nafter\n",
		"a long line after the match":        "before\nneedle\n" + long,
		"long lines on both sides":           "first\n" + long + "\nneedle\n" + long + "\nlast",
		"a match in a long line":             "before\n" + long + "needle" + long + "\nafter\n",
		"the first line and the last":        "needle\nsecond\nlast but one\nneedle",
		"segments that begin around matches": many + "needle\n" + many + "needle\n" + many + long + "\nneedle",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLibrary(t)
			l.store("x.txt", text)
			pattern, err := grep.Compile("needle", grep.PatternOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, lines := range []int{1, 2} {
				want, err := pattern.File(stored(text), grep.MatchRange{Context: lines, Take: 20, Cap: 20})
				if err != nil {
					t.Fatal(err)
				}
				got := l.search(pattern, lines).Matches
				for i := range got {
					got[i].FileID, got[i].FileName = "", ""
				}
				if diff := cmp.Diff(want.Matches, got); diff != "" {
					t.Errorf("%d lines around each match (-want +got):\n%s", lines, diff)
				}
			}
		})
	}
}

// Words that a PDF broke at the end of a line, and whose hyphen stays, are found by both spellings.
func TestWordsOfAPDFAreFoundWithAndWithoutTheirHyphen(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.storeAs("application/pdf", "a.pdf", "Then the zorbifi-cation of all\nbegan, with the Zorbification.\n")
	l.store("b.txt", "a zorbifi-cation in a text\n")
	for _, c := range []struct {
		pattern string
		o       grep.PatternOptions
		want    int
	}{
		{"zorbification", grep.PatternOptions{}, 2}, {"the zorbification of", grep.PatternOptions{}, 1},
		{"zorbification", grep.PatternOptions{CaseSensitive: true, Literal: true}, 1},
		{"zorbifi-cation", grep.PatternOptions{}, 2}, {"zorbif.cation", grep.PatternOptions{}, 1},
		{"all", grep.PatternOptions{}, 1},
	} {
		pattern, err := grep.Compile(c.pattern, c.o)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.search(pattern, 0); got.Total != c.want {
			t.Errorf("%q: got %+v, want %d lines", c.pattern, got.Matches, c.want)
		}
	}
}
