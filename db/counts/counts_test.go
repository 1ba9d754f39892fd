package counts_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/counts"
	"github.com/loci-memory/loci/db/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// rows are what the test adds to a database. $1 is the organization.
var rows = []string{
	`INSERT INTO agents (org, name, agent_type, system) SELECT $1, 'a', 'letta_v1_agent', ''`,
	`INSERT INTO agent_logs (org, key, agent_key) SELECT org, key, key FROM agents WHERE org = $1`,
	`INSERT INTO embedding_spaces (provider, model, dimension, used_at)
	SELECT 'counts' || $1::integer, model, 1, now() - age::interval
	FROM (VALUES ('used', '4 minutes'), ('unused', '6 minutes')) s (model, age)`,

	// The jobs: two that wait, the older for 2 minutes; one with a date in the future; one that ended.
	`INSERT INTO river_job (kind, queue, state, args, max_attempts, created_at, scheduled_at, finalized_at)
	SELECT 'counted', 'counted', state::river_job_state, jsonb_build_object('org', $1::integer), 1,
	       now() - age::interval, now() - due::interval, CASE WHEN state = 'completed' THEN now() END
	FROM (VALUES ('available', '2 minutes', '9 years'), ('available', '1 minute', '1 minute'),
	             ('scheduled', '3 minutes', '-1 minute'), ('completed', '1 hour', '1 hour')) j (state, age, due)`,

	// The files: two that wait, one parsed, one with an error, and one in a deleted folder.
	`INSERT INTO folders (org, name, deleted_at) SELECT $1, name, deleted::timestamptz
	FROM (VALUES ('kept', NULL), ('deleted', now()::text)) f (name, deleted)`,
	`INSERT INTO files (org, folder_key, name, original_name, media_type, size_bytes, sha256, generation,
		wanted_generation, error)
	SELECT $1, d.key, f.name, f.name, 'text/plain', 1, '', f.generation, f.wanted, f.error
	FROM (VALUES ('kept', 'new', 0, 1, NULL), ('kept', 'changed', 1, 2, NULL), ('kept', 'parsed', 1, 1, NULL),
	             ('kept', 'refused', 0, 1, 'no text'), ('deleted', 'gone', 0, 1, NULL))
	     f (folder, name, generation, wanted, error)
	JOIN folders d ON d.org = $1 AND d.name = f.folder`,
	`INSERT INTO agent_files (org, agent_id, file_key, is_open, last_used_seq, last_used_at)
	SELECT $1, a.id, f.key, f.name IN ('parsed', 'changed'), 1, now() FROM agents a, files f
	WHERE a.org = $1 AND f.org = $1`,

	// What waits for vectors: 30 + 5 chunks, and 100 of a space that no server uses any more.
	`INSERT INTO embed_batches (org, file_key, folder_key, space_id, generation, first_ordinal, end_ordinal)
	SELECT $1, f.key, f.folder_key, s.id, 1, b.first, b.last
	FROM (VALUES ('used', 10, 40), ('used', 40, 45), ('unused', 0, 100)) b (model, first, last)
	JOIN embedding_spaces s ON s.provider = 'counts' || $1::integer AND s.model = b.model
	JOIN files f ON f.org = $1 AND f.name = 'parsed'`,
	`INSERT INTO conversations (org, agent_key, messages, embedded, unembedded, embedded_space, deleted_at)
	SELECT $1, a.key, c.messages, c.embedded, c.unembedded, s.id, c.deleted::timestamptz
	FROM (VALUES (10, 4, true, 'used', NULL), (10, 9, true, 'used', NULL), (50, 0, false, 'used', NULL),
	             (60, 0, true, 'none', NULL), (70, 0, true, 'used', now()::text))
	     c (messages, embedded, unembedded, model, deleted)
	JOIN agents a ON a.org = $1
	LEFT JOIN embedding_spaces s ON s.provider = 'counts' || $1::integer AND s.model = c.model`,
	`INSERT INTO archives (org, name) SELECT $1, 'a'`,
	`INSERT INTO passages (org, archive_key, text, sha256, lex, terms)
	SELECT $1, key, n::text, n::text::bytea, '{1:1}/16777216', '{}' FROM archives, generate_series(1, 4) n WHERE org = $1`,
	`INSERT INTO unembedded_passages (org, passage_key, archive_key, refused)
	SELECT $1, key, archive_key, CASE WHEN text = '4' THEN 'too long' END FROM passages WHERE org = $1`,
	`INSERT INTO memory_trees (org, name) SELECT $1, 't'`,
	`INSERT INTO memory_files (org, tree_key, path, folded, content, sha256, lex, terms, unembedded, deleted_at)
	SELECT $1, t.key, f.path, f.path, '', '', '{1:1}/16777216', '{}', f.unembedded, f.deleted::timestamptz
	FROM (VALUES ('/1', true, NULL), ('/2', false, NULL), ('/3', true, now()::text)) f (path, unembedded, deleted)
	JOIN memory_trees t ON t.org = $1`,
}

// Each number counts what waits or is there. It leaves out deleted rows, finished jobs, refused texts, and spaces that
// no server has used for 5 minutes.
func TestEachNumberCountsItsRows(t *testing.T) {
	t.Parallel()
	pool, org := dbtest.Org(t)
	// One snapshot, so that other tests do not change the numbers.
	tx, err := pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	before := numbers(t, tx)
	for _, sql := range rows {
		if _, err := tx.Exec(t.Context(), sql, org); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	after := numbers(t, tx)
	for of, want := range map[counts.Count]float64{
		{Of: "job", Name: "counted", State: "available"}: 2,
		{Of: "job", Name: "counted", State: "scheduled"}: 1,
		{Of: "job", Name: "counted", State: "completed"}: 0,
		{Of: "oldest", Name: "counted"}:                  120, // seconds, not the years of the queue's virtual time
		{Of: "file", State: "waiting"}:                   2,
		{Of: "file", State: "parsed"}:                    1,
		{Of: "file", State: "error"}:                     1,
		{Of: "open"}:                                     2,
		{Of: "vector", Name: "files"}:                    35,
		{Of: "vector", Name: "messages"}:                 7,
		{Of: "vector", Name: "passages"}:                 3,
		{Of: "vector", Name: "memory_files"}:             1,
	} {
		if got := after[of] - before[of]; got != want {
			t.Errorf("%+v: got %v more, want %v", of, got, want)
		}
	}
	if size := after[counts.Count{Of: "size"}]; size < 1<<20 {
		t.Errorf("the database has %v bytes", size)
	}
}

// numbers returns all numbers of a database by what they count, which is a Count without a value.
func numbers(t *testing.T, d db.DB) map[counts.Count]float64 {
	t.Helper()
	all, err := counts.All(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	by := map[counts.Count]float64{}
	for _, c := range all {
		by[counts.Count{Of: c.Of, Name: c.Name, State: c.State}] = c.Value
	}
	return by
}

// failing is a database that answers some queries with an error.
type failing struct {
	db.DB
	queries int
	code    func(query int) string // of the error; query counts from 1
}

func (f *failing) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	f.queries++
	if code := f.code(f.queries); code != "" {
		sql, args = `DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '`+code+`'; END $$`, nil
	}
	return f.DB.Query(ctx, sql, args...)
}

// Without a node of a cluster the numbers of the other nodes are still counted. Without the coordinator there are none,
// and a fault of a statement is not hidden.
func TestNumbersOfANodeThatIsAwayAreLeftOut(t *testing.T) {
	t.Parallel()
	pool, _ := dbtest.Org(t)
	const away, wrong = "08006", "42601"
	for _, c := range []struct {
		name string
		code func(query int) string
		want string // the error's code
		has  bool   // numbers
	}{
		{"the nodes with rows of organizations are away", func(query int) string {
			return map[bool]string{true: away}[query > 1]
		}, "", true},
		{"the coordinator is away", func(int) string { return away }, away, false},
		{"a later statement is wrong", func(query int) string { return map[int]string{2: wrong}[query] }, wrong, false},
	} {
		all, err := counts.All(t.Context(), &failing{DB: pool, code: c.code})
		code := ""
		if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
			code = pg.Code
		}
		if code != c.want || (err != nil) != (c.want != "") || len(all) > 0 != c.has {
			t.Errorf("%s: got %d numbers, %v, want %q", c.name, len(all), err, c.want)
		}
		for _, count := range all {
			if count.Of != "job" && count.Of != "oldest" && count.Of != "size" {
				t.Errorf("%s: got %+v, which another node has", c.name, count)
			}
		}
	}
}
