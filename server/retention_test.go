package server_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/tenant/retention"
)

// An agent that is read again and again does not grow. The age and the number of stored prompts, and of their pieces,
// are bounded.
func TestReadingDoesNotGrowTheDatabase(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := "/v1/agents/" + c.made("/v1/agents", `{"name":"a"}`)
	rows := func(table string) int {
		n, err := db.One[int](t.Context(), c.pool, `SELECT count(*) FROM `+table+` WHERE org = $1`, c.org)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	c.must("PATCH", "/v1/admin/retention", `{"prompts_kept":20}`)
	store := retention.Store{DB: c.pool, Batch: 3}
	var sizes [2]int
	for round := range 4 {
		for i := range 30 {
			c.must("POST", agent+"/messages/capture", fmt.Sprintf(`{"messages":[{"role":"user","content":"%d %d"}]}`, round, i))
			c.must("GET", agent+"/prompt", "")
			c.must("GET", agent+"/prompt", "")
		}
		c.age("2 hours 1 minute")
		c.sweep(store)
		size := [2]int{rows("prompts"), rows("prompt_parts")}
		if size[0] > 20 || round > 0 && size[1] > 30*(round+1)+60 {
			t.Errorf("after %d rounds: %d prompts, %d pieces", round+1, size[0], size[1])
		}
		sizes = size
	}
	c.age("31 days")
	c.sweep(store)
	if n := rows("prompts"); n != 1 {
		t.Errorf("%d prompts are left after their days, want the newest", n)
	}
	if n := rows("prompt_parts"); n > sizes[1] {
		t.Errorf("%d pieces, before %d", n, sizes[1])
	}
	c.must("GET", agent+"/context", "")
	c.must("GET", agent+"/prompt", "")
}

// age makes prompts and their pieces older.
func (c *client) age(interval string) {
	c.t.Helper()
	for _, sql := range []string{
		`UPDATE prompts SET handed_out_at = handed_out_at - $1::text::interval WHERE org = $2`,
		`UPDATE prompt_parts SET used_at = used_at - $1::text::interval WHERE org = $2`} {
		if _, err := c.pool.Exec(context.WithoutCancel(c.t.Context()), sql, interval, c.org); err != nil {
			c.t.Fatal(err)
		}
	}
}

// sweep deletes rows of the client's organization that are too old. It returns the number of deleted rows by table.
func (c *client) sweep(store retention.Store) (deleted map[string]int) {
	c.t.Helper()
	deleted = map[string]int{}
	if err := store.SweepOrg(c.t.Context(), c.org, deleted); err != nil {
		c.t.Fatal(err)
	}
	return deleted
}

// Each kind of row is there until it reaches its maximum age, and is then deleted. This holds for the default ages and
// for an organization's own.
func TestEachKindHasAnAge(t *testing.T) {
	t.Parallel()
	r := newRunner(t, `{"name":"a"}`)
	r.clip(r.agent, "line")
	r.fit(r.agent, numbered(5_000), "")
	r.stream(r.path()+"/stream", `{"input":"Hello","background":true}`)
	r.must("POST", r.path(), `{"input":"Hello again"}`)
	r.accepted("/v1/lab/replays", `{"agent_id":"`+r.agent+`","policies":["letta"]}`)
	r.exec(`INSERT INTO embedding_spaces (provider, model, dimension) VALUES ('ages', 'm', 1) ON CONFLICT DO NOTHING`)
	r.exec(`INSERT INTO message_vectors (org, message_key, space_id, agent_key, conversation_key, position, role,
		created_at, embedding)
		SELECT org, key, (SELECT id FROM embedding_spaces WHERE provider = 'ages'), agent_key, conversation_key, position,
		       role, created_at, '[1]' FROM messages WHERE org = $1`, r.org)
	now := time.Now()
	store := retention.Store{DB: r.pool, Batch: 2, Now: func() time.Time { return now }}
	rows := func(table string) (n int) {
		n, err := db.One[int](t.Context(), r.pool, `SELECT count(*) FROM `+table+` WHERE org = $1`, r.org)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	messages := rows("messages")
	const day = 24 * time.Hour
	for _, w := range []struct {
		settings, table string
		age             time.Duration
		left            int
	}{
		{`{}`, "run_items", 3 * time.Hour, 0},
		{`{"replays_days":20}`, "replays", 20 * day, 0},
		{`{}`, "prompts", 30 * day, 1}, // the newest of each conversation stays
		{`{"vectors_days":40}`, "message_vectors", 40 * day, 0},
		{`{"long_results_days":50}`, "clips", 50 * day, 0},
		{`{"runs_days":60}`, "runs", 60 * day, 0},
	} {
		r.must("PATCH", "/v1/admin/retention", w.settings)
		for _, moment := range []struct {
			age  time.Duration
			gone bool
		}{{w.age - time.Minute, false}, {w.age + time.Minute, true}} {
			before := rows(w.table)
			now = time.Now().Add(moment.age)
			deleted := r.sweep(store)
			if left := rows(w.table); before == w.left || moment.gone && left != w.left || !moment.gone && left != before ||
				deleted[w.table] != before-left {
				t.Errorf("%s after %s: %d rows, before %d; reported %v", w.table, moment.age, left, before, deleted)
			}
		}
	}
	if n := rows("messages"); n != messages || rows("steps") > 0 {
		t.Errorf("%d messages, before %d; %d steps without a run", n, messages, rows("steps"))
	}
	r.must("GET", "/v1/agents/"+r.agent+"/prompt", "")
}

// Long results and vectors are kept for ever, unless an organization sets a number of days.
func TestAnOrganizationSetsHowLongItKeeps(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	clip := c.clip(agent, "line")
	store := retention.Store{DB: c.pool}
	old := func() {
		c.exec(`UPDATE messages SET created_at = created_at - interval '400 days' WHERE org = $1`, c.org)
		c.sweep(store)
	}
	old()
	c.must("GET", "/v1/agents/"+agent+"/expand/"+clip, "")
	if got := c.must("PATCH", "/v1/admin/retention", `{"long_results_days":90}`); !strings.Contains(got,
		`"long_results_days":90`) || !strings.Contains(got, `"prompts_days":30`) {
		t.Errorf("got %s", got)
	}
	old()
	if got := c.call("GET", "/v1/agents/"+agent+"/expand/"+clip, ""); got.Code != 404 {
		t.Errorf("a long result after its days: got %d %s", got.Code, got.Text)
	}
	c.must("GET", "/v1/agents/"+agent+"/prompt", "")
	for _, body := range []string{`{"prompts_days":-1}`, `{"vectors_days":36501}`, `{"prompts_kept":1000001}`,
		`{"run_events_hours":876001}`, `{"runs_days":-1}`} {
		field := strings.Split(body, `"`)[1]
		if got := c.call("PATCH", "/v1/admin/retention", body); got.Code != 422 || !strings.Contains(got.Text, field) {
			t.Errorf("%s: got %d %s", body, got.Code, got.Text)
		}
	}
}

// Simultaneous changes of different settings are all stored.
func TestChangesOfTheRetentionAreNotLost(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	store := retention.Store{DB: c.pool}
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for range 10 {
				if _, err := store.Update(t.Context(), c.org, func(a *retention.Ages) { a.Runs++ }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	callers.Wait()
	if got, err := store.Settings(t.Context(), c.org); err != nil || got.Runs != 80 {
		t.Errorf("80 changes of runs_days made it %d, %v", got.Runs, err)
	}
}
