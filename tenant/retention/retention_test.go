package retention_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/tenant/retention"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// now is the time of the sweeps.
var now = time.Date(2030, 6, 15, 12, 0, 0, 0, time.UTC)

// fixture is an organization with an agent and two conversations. All of its rows are in one transaction, which is
// rolled back at the end of the test, so that a sweep of all organizations by another test does not delete them.
type fixture struct {
	testing.TB
	db.DB
	store *retention.Store
	org   db.Org

	sweeping bool
	execs    int    // statements of a sweep
	after    func() // is called after each of them; may be nil
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	pool, org := dbtest.Org(t)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	f := &fixture{TB: t, DB: tx, org: org}
	f.store = &retention.Store{DB: f, Now: func() time.Time { return now }}
	f.exec(`INSERT INTO agents (org, name, agent_type, system) VALUES ($1, 'a', 'letta_v1_agent', '')`, org)
	f.exec(`INSERT INTO agent_logs (org, key, agent_key) SELECT org, key, key FROM agents WHERE org = $1`, org)
	f.exec(`INSERT INTO conversations (org, agent_key, id)
		SELECT org, key, name FROM (SELECT org, key FROM agents) a, unnest(ARRAY['first', 'second']) name
		WHERE org = $1`, org)
	return f
}

func (f *fixture) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	tag, err := f.DB.Exec(ctx, sql, args...)
	if f.sweeping {
		f.execs++
		if f.after != nil {
			f.after()
		}
	}
	return tag, err
}

func (f *fixture) exec(sql string, args ...any) {
	f.Helper()
	if _, err := f.DB.Exec(f.Context(), sql, args...); err != nil {
		f.Fatalf("%s: %v", sql, err)
	}
}

func (f *fixture) rows(table string) int {
	f.Helper()
	n, err := db.One[int](f.Context(), f.DB, `SELECT count(*) FROM `+table+` WHERE org = $1`, f.org)
	if err != nil {
		f.Fatal(err)
	}
	return n
}

func (f *fixture) set(change func(*retention.Ages)) {
	f.Helper()
	if _, err := f.store.Update(f.Context(), f.org, change); err != nil {
		f.Fatal(err)
	}
}

// sweep sweeps the organization. It returns the number of deleted rows by table.
func (f *fixture) sweep() map[string]int {
	f.Helper()
	deleted := map[string]int{}
	f.sweeping, f.execs = true, 0
	err := f.store.SweepOrg(f.Context(), f.org, deleted)
	f.sweeping = false
	if err != nil {
		f.Fatal(err)
	}
	return deleted
}

// prompt stores a prompt of a conversation. The prompt contains one piece, with the conversation's name for its hash.
func (f *fixture) prompt(conversation string, seq int, at time.Time) {
	f.Helper()
	f.exec(`INSERT INTO prompts (org, agent_key, conversation_key, format, seq, context_window, tokens, sha256, parts,
			first_position, last_position, handed_out_at)
		SELECT $1, agent_key, key, 'openai', $3, 1000, '{}', '', ARRAY[$2::text::bytea], 0, 0, $4
		FROM conversations WHERE org = $1 AND id = $2`, f.org, conversation, seq, at)
}

const day = 24 * time.Hour

// A row is deleted when it is older than its age, and no sooner. With an age of 0 it is kept for good.
func TestARowIsDeletedBeyondItsAge(t *testing.T) {
	t.Parallel()
	// Each statement adds one row at the time $2 to the table.
	message := `INSERT INTO messages (org, id, agent_key, seq, conversation_key, position, session, role, content, tokens,
			created_at)
		SELECT $1, gen_random_uuid(), agent_key, 1, key, 1, 1, 'user', '[]', 1, $2 FROM conversations
		WHERE org = $1 AND id = 'first'`
	run := `INSERT INTO runs (org, id, agent_key, conversation_key, status, background, request, owner, completed_at,
			created_at)
		SELECT $1, 'run', agent_key, key, 'completed', true, '{}', '', $2::timestamptz, $2::timestamptz - interval '9 years'
		FROM conversations WHERE org = $1 AND id = 'first'`
	for _, c := range []struct {
		name, table string
		age         time.Duration
		set         func(a *retention.Ages, days int)
		sql         []string
	}{
		{"a replay", "replays", 20 * day, func(a *retention.Ages, n int) { a.Replays = 20 * n }, []string{
			`INSERT INTO replays (org, prices, steps, created_at) VALUES ($1, '{}', 1, $2)`}},
		{"a vector of a message", "message_vectors", 20 * day, func(a *retention.Ages, n int) { a.Vectors = 20 * n },
			[]string{message, `INSERT INTO embedding_spaces (provider, model, dimension) SELECT 'of ' || $1::integer, 'm', 1`,
				`INSERT INTO message_vectors (org, space_id, message_key, agent_key, conversation_key, position, role,
					created_at, embedding)
				SELECT org, s.id, m.key, agent_key, conversation_key, position, role, $2, '[1]'
				FROM messages m, embedding_spaces s WHERE org = $1 AND s.provider = 'of ' || $1::integer`}},
		{"a long result in a message, by the message's time", "clips", 20 * day,
			func(a *retention.Ages, n int) { a.LongResults = 20 * n }, []string{message,
				`INSERT INTO blobs (org, sha256, size_bytes, zstd, bytes) SELECT $1, '', 0, false, ''`,
				`INSERT INTO clips (org, id, sha256, agent_key, conversation_key, position, part)
				SELECT org, 'clip', '', agent_key, conversation_key, position, 0 FROM messages WHERE org = $1`}},
		{"a long result outside the log, by its own time", "clips", 20 * day,
			func(a *retention.Ages, n int) { a.LongResults = 20 * n }, []string{
				`INSERT INTO blobs (org, sha256, size_bytes, zstd, bytes) SELECT $1, '', 0, false, ''`,
				`INSERT INTO clips (org, id, sha256, agent_key, conversation_key, created_at)
				SELECT org, 'clip', '', agent_key, key, $2 FROM conversations WHERE org = $1 AND id = 'first'`}},
		{"a run, by its end", "runs", 20 * day, func(a *retention.Ages, n int) { a.Runs = 20 * n }, []string{run}},
		{"an event of a run, by the run's end", "run_items", 20 * time.Hour,
			func(a *retention.Ages, n int) { a.RunEvents = 20 * n }, []string{run,
				`INSERT INTO run_items (org, run_key, seq, item) SELECT org, key, 1, '{}' FROM runs WHERE org = $1`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, at := range []struct {
				of   string
				n    int // times the age; 0 keeps for good
				time time.Time
				left int
			}{
				{"as old as its age", 1, now.Add(-c.age), 1},
				{"older than its age", 1, now.Add(-c.age - time.Millisecond), 0},
				{"of 10 years, without an age", 0, now.AddDate(-10, 0, 0), 1},
			} {
				f := newFixture(t)
				f.set(func(a *retention.Ages) { c.set(a, at.n) })
				for _, sql := range c.sql {
					f.exec(sql, []any{f.org, at.time}[:1+min(strings.Count(sql, "$2"), 1)]...)
				}
				deleted := f.sweep()
				if left := f.rows(c.table); left != at.left || deleted[c.table] != 1-at.left {
					t.Errorf("%s: %d rows of %s are left, want %d; deleted %v", at.of, left, c.table, at.left, deleted)
				}
			}
		})
	}
}

// A run that still runs keeps its record and its events, however long ago it began.
func TestARunThatRunsIsKept(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.set(func(a *retention.Ages) { a.Runs, a.RunEvents = 1, 1 })
	f.exec(`INSERT INTO runs (org, id, agent_key, conversation_key, background, request, owner, created_at)
		SELECT $1, 'run', agent_key, key, true, '{}', '', $2 FROM conversations WHERE org = $1 AND id = 'first'`, f.org,
		now.AddDate(-1, 0, 0))
	f.exec(`INSERT INTO run_items (org, run_key, seq, item) SELECT org, key, 1, '{}' FROM runs WHERE org = $1`, f.org)
	f.sweep()
	if runs, items := f.rows("runs"), f.rows("run_items"); runs != 1 || items != 1 {
		t.Errorf("%d runs and %d events are left", runs, items)
	}
}

// Prompts are deleted by their age, and beyond the number that a conversation keeps, the oldest first. The newest
// prompt of each conversation stays at any age.
func TestPromptsOfAConversation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		days, kept int
		ages       []int // in days, of the first conversation's prompts, from the oldest
		left       string
	}{
		{"older ones go by their age", 10, 0, []int{12, 11, 10, 9}, "10 9"},
		{"the newest stays at any age", 10, 0, []int{300, 200}, "200"},
		{"the oldest go beyond the number", 0, 2, []int{5, 4, 3, 2}, "3 2"},
		{"as many as the number stay", 0, 3, []int{5, 4, 3}, "5 4 3"},
		{"without an age and a number all stay", 0, 0, []int{9_000, 8_000}, "9000 8000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.set(func(a *retention.Ages) { a.Prompts, a.PromptsKept = c.days, c.kept })
			for i, age := range c.ages {
				f.prompt("first", i, now.AddDate(0, 0, -age))
			}
			f.prompt("second", 1, now.AddDate(-1, 0, 0))
			f.sweep()
			for conversation, want := range map[string]string{"first": c.left, "second": "365"} {
				got, err := db.One[string](t.Context(), f.DB, `
					SELECT coalesce(string_agg(extract(day FROM $3 - handed_out_at)::text, ' ' ORDER BY p.key), '')
					FROM prompts p JOIN conversations c ON c.org = p.org AND c.key = p.conversation_key
					WHERE p.org = $1 AND c.org = $1 AND c.id = $2`, f.org, conversation, now)
				if err != nil || got != want {
					t.Errorf("the prompts of the %s conversation: got those of %q days, %v, want %q", conversation, got, err, want)
				}
			}
		})
	}
}

// A piece of prompts stays while a stored prompt contains it, and for 2 hours after its last use.
func TestPiecesOfPromptsStayWhileTheyAreUsed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.set(func(a *retention.Ages) { a.Prompts, a.PromptsKept = 0, 0 })
	f.prompt("first", 1, now)
	for name, age := range map[string]time.Duration{"first": 300 * day, "two hours": 2 * time.Hour,
		"longer": 2*time.Hour + time.Millisecond, "long": 300 * day} {
		f.exec(`INSERT INTO prompt_parts (org, agent_key, sha256, bytes, used_at)
			SELECT org, key, $2::text::bytea, '', $3 FROM agents WHERE org = $1`, f.org, name, now.Add(-age))
	}
	deleted := f.sweep()
	left, err := db.One[string](t.Context(), f.DB, `
		SELECT string_agg(convert_from(sha256, 'UTF8'), ', ' ORDER BY sha256) FROM prompt_parts WHERE org = $1`, f.org)
	if err != nil || left != "first, two hours" || deleted["prompt_parts"] != 2 {
		t.Errorf("left are the pieces %q, %v; deleted %v", left, err, deleted)
	}
}

// A sweep deletes at most Batch rows in a statement, and goes on until none are left. If its context ends between two
// statements, it stops with that error.
func TestASweepGoesInBatches(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.set(func(a *retention.Ages) { *a = retention.Ages{Replays: 1} })
	f.store.Batch = 3
	old := func(n int) {
		f.exec(`INSERT INTO replays (org, prices, steps, created_at)
			SELECT $1, '{}', 1, $2 FROM generate_series(1, $3)`, f.org, now.Add(-2*day), n)
	}
	for rows, want := range map[int]int{0: 1, 2: 1, 3: 2, 7: 3} {
		old(rows)
		if deleted := f.sweep(); deleted["replays"] != rows || f.execs != want {
			t.Errorf("of %d rows %d are deleted in %d statements, want %d", rows, deleted["replays"], f.execs, want)
		}
	}
	old(7)
	ctx, cancel := context.WithCancel(t.Context())
	f.after, f.sweeping, f.store.Pause = cancel, true, time.Hour
	deleted := map[string]int{}
	err := f.store.SweepOrg(ctx, f.org, deleted)
	if !errors.Is(err, context.Canceled) || deleted["replays"] != 3 {
		t.Errorf("a sweep whose context ended: deleted %v, %v", deleted, err)
	}
}

// A sweep of all organizations uses the settings of each.
func TestASweepOfAllOrganizations(t *testing.T) {
	t.Parallel()
	pool, month := dbtest.Org(t)
	_, year := dbtest.Org(t)
	store := &retention.Store{DB: pool, Now: func() time.Time { return now.AddDate(-20, 0, 0) }}
	if _, err := store.Update(t.Context(), year, func(a *retention.Ages) { a.Replays = 365 }); err != nil {
		t.Fatal(err)
	}
	for _, org := range []db.Org{month, year} {
		if err := db.Exec(t.Context(), pool, `INSERT INTO replays (org, prices, steps, created_at) VALUES ($1, '{}', 1, $2)`,
			org, now.AddDate(-20, -2, 0)); err != nil {
			t.Fatal(err)
		}
	}
	deleted, err := store.Sweep(t.Context())
	if err != nil || deleted["replays"] != 1 {
		t.Errorf("deleted %v, %v, want one replay", deleted, err)
	}
	left, err := db.All[db.Org](t.Context(), pool, `SELECT org FROM replays WHERE org IN ($1, $2)`, month, year)
	if err != nil || len(left) != 1 || left[0] != year {
		t.Errorf("the replays of %v are left, %v, want %v", left, err, year)
	}
}

func TestSettingsHaveDefaults(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	want := retention.Ages{Prompts: 30, PromptsKept: 1_000, RunEvents: 3, Replays: 30}
	if got, err := f.store.Settings(t.Context(), f.org); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	f.set(func(a *retention.Ages) { a.Runs = 7 })
	f.set(func(a *retention.Ages) { a.Prompts = 0 })
	want.Runs, want.Prompts = 7, 0
	if got, err := f.store.Settings(t.Context(), f.org); err != nil || got != want {
		t.Errorf("after two changes: got %+v, %v, want %+v", got, err, want)
	}
}

// Each number has a range. A number outside is refused by its name, and no number of the change is stored.
func TestAgesAreInRange(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, c := range map[string]struct {
		field func(*retention.Ages) *int
		most  int
	}{
		"prompts_days":      {func(a *retention.Ages) *int { return &a.Prompts }, 36_500},
		"prompts_kept":      {func(a *retention.Ages) *int { return &a.PromptsKept }, 1_000_000},
		"long_results_days": {func(a *retention.Ages) *int { return &a.LongResults }, 36_500},
		"vectors_days":      {func(a *retention.Ages) *int { return &a.Vectors }, 36_500},
		"run_events_hours":  {func(a *retention.Ages) *int { return &a.RunEvents }, 876_000},
		"runs_days":         {func(a *retention.Ages) *int { return &a.Runs }, 36_500},
		"replays_days":      {func(a *retention.Ages) *int { return &a.Replays }, 36_500},
	} {
		for _, n := range []int{0, c.most} {
			ages := retention.Defaults()
			if *c.field(&ages) = n; ages.Check() != nil {
				t.Errorf("%s: %d is refused: %v", name, n, ages.Check())
			}
		}
		for _, n := range []int{-1, c.most + 1} {
			_, err := f.store.Update(t.Context(), f.org, func(a *retention.Ages) {
				a.Runs, a.Replays = 99, 99
				*c.field(a) = n
			})
			if refused, ok := errors.AsType[*db.FieldError](err); !ok || refused.Field != name {
				t.Errorf("%s of %d: got %v, want a refusal of the field", name, n, err)
			}
		}
	}
	if got, err := f.store.Settings(t.Context(), f.org); err != nil || got != retention.Defaults() {
		t.Errorf("refused changes left %+v, %v", got, err)
	}
}
