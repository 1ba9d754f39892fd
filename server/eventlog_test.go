package server_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/event"
)

// kept selects everything that is stored about an organization's agents.
const kept = `
	SELECT coalesce(string_agg(row, E'\n' ORDER BY row), '') FROM (
		SELECT 'agent ' || to_jsonb(a)::text AS row FROM agents a WHERE org = $1
		UNION ALL SELECT 'attachment ' || to_jsonb(f)::text FROM agent_folders f WHERE org = $1
		UNION ALL SELECT 'view ' || to_jsonb(f)::text FROM agent_files f WHERE org = $1
		UNION ALL SELECT 'message ' || m.id FROM messages m WHERE org = $1
		UNION ALL SELECT 'event ' || to_jsonb(e)::text FROM events e WHERE org = $1
	) rows`

func (c *client) kept() string {
	c.t.Helper()
	all, err := db.One[string](c.t.Context(), c.pool, kept, c.org)
	if err != nil {
		c.t.Fatal(err)
	}
	return all
}

// refusing makes the database refuse all writes to some tables while do runs.
func (c *client) refusing(do func(), tables ...string) {
	c.t.Helper()
	var remove []func()
	for _, table := range tables {
		remove = append(remove, c.trigger(`BEFORE INSERT OR UPDATE OR DELETE ON `+table, `RAISE EXCEPTION 'refused'`))
	}
	do()
	for _, remove := range remove {
		remove()
	}
}

// trigger lets the database run a PL/pgSQL statement for each written row of the client's organization, until remove is
// called or the test ends. on says when, as in BEFORE INSERT ON blocks. The trigger locks the table, so the client must
// come from newElsewhereClient.
func (c *client) trigger(on, statement string) (remove func()) {
	c.t.Helper()
	if c.pool != elsewhereServer().pool {
		c.t.Fatal("this test would lock a table of all tests")
	}
	owner := dbtest.Owner(c.t, c.pool)
	exec := func(sql string) {
		c.t.Helper()
		if _, err := owner.Exec(context.Background(), sql); err != nil {
			c.t.Fatalf("%s: %v", sql, err)
		}
	}
	name := fmt.Sprintf("of_test_%08x", rand.Uint32())
	exec(fmt.Sprintf(`
		CREATE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF coalesce(to_jsonb(NEW) ->> 'org', to_jsonb(OLD) ->> 'org')::integer = %d THEN %s; END IF;
			RETURN coalesce(NEW, OLD);
		END $$`, name, c.org, statement))
	exec(fmt.Sprintf(`CREATE TRIGGER %[1]s %[2]s FOR EACH ROW EXECUTE FUNCTION %[1]s()`, name, on))
	remove = sync.OnceFunc(func() { exec(fmt.Sprintf(`DROP FUNCTION %s CASCADE`, name)) })
	c.t.Cleanup(remove)
	return remove
}

// Every change of an agent appends its events in the same transaction. If the event is refused, nothing changes; if the
// change is refused, there is no event.
func TestEveryChangeOfAnAgentIsAnEvent(t *testing.T) {
	t.Parallel()
	c := newElsewhereClient(t)
	folder, other := c.made("/v1/folders", `{"name":"f"}`), c.made("/v1/folders", `{"name":"g"}`)
	a, b := c.uploaded(folder, "a.txt", "alpha\n"), c.uploaded(folder, "b.txt", "beta\n")
	agent := c.made("/v1/agents", fmt.Sprintf(`{"name":"a","folder_ids":[%q]}`, other))
	base := "/v1/agents/" + agent
	var types []string
	for _, e := range c.events(agent, "") {
		types = append(types, e.Type)
	}
	if diff := gocmp.Diff([]string{"agent_created", "folder_attached", "message"}, types); diff != "" {
		t.Errorf("creation (-want +got):\n%s", diff)
	}
	for _, change := range []struct {
		name, method, target, body string
		want                       []string
	}{
		{"a setting", "PATCH", base, `{"name":"b"}`, []string{"agent_updated " + agent}},
		{"an attachment", "PATCH", base + "/folders/attach/" + folder, "",
			[]string{"folder_attached " + folder, "file_opened " + a, "file_opened " + b}},
		{"a search that finds a file", "POST", base + "/tools/grep_files/run", `{"args":{"pattern":"alpha"}}`,
			[]string{"file_used " + a}},
		{"a file that is closed", "PATCH", base + "/files/" + b + "/close", "", []string{"file_closed " + b}},
		{"a file that is opened", "PATCH", base + "/files/" + b + "/open", "", []string{"file_opened " + b}},
		{"a file that is opened by the tool", "POST", base + "/tools/open_files/run",
			`{"args":{"file_requests":[{"file_name":"f/a.txt"}]}}`,
			[]string{"file_opened " + a}},
		{"a lower limit", "PATCH", base, `{"max_files_open":1}`, []string{"agent_updated " + agent, "file_closed " + b}},
		{"a file too many", "PATCH", base + "/files/" + b + "/open", "", []string{"file_opened " + b, "file_closed " + a}},
		{"all files that are closed", "PATCH", base + "/files/close-all", "", []string{"file_closed " + b}},
		{"messages", "SAY", "", "", []string{"message", "message"}},
		{"other folders", "PATCH", base, fmt.Sprintf(`{"folder_ids":[%q]}`, folder),
			[]string{"agent_updated " + agent, "folder_detached " + other}},
		{"a file that is opened again", "PATCH", base + "/files/" + a + "/open", "", []string{"file_opened " + a}},
		{"an open file that is deleted", "DELETE", "/v1/folders/" + folder + "/" + a, "", []string{"file_closed " + a}},
		{"the last file that is opened", "PATCH", base + "/files/" + b + "/open", "", []string{"file_opened " + b}},
		{"a folder that is detached", "PATCH", base + "/folders/detach/" + folder, "",
			[]string{"folder_detached " + folder, "file_closed " + b}},
		{"one that is attached", "PATCH", base + "/folders/attach/" + other, "", []string{"folder_attached " + other}},
		{"one that is deleted", "DELETE", "/v1/folders/" + other, "", []string{"folder_detached " + other}},
	} {
		apply := func() error {
			if change.method == "SAY" {
				_, err := c.server.Recall.Append(t.Context(), c.org, agent, "", drafts("one", "two"))
				return err
			}
			if got := c.call(change.method, change.target, change.body); got.Code != 200 && got.Code != 204 ||
				strings.Contains(got.Text, `"status":"error"`) {
				return fmt.Errorf("got %d %s", got.Code, got.Text)
			}
			return nil
		}
		before := c.kept()
		for _, tables := range [][]string{{"events"}, {"agents", "agent_folders", "agent_files", "messages"}} {
			c.refusing(func() {
				if err := apply(); err == nil {
					t.Errorf("%s: it came through without writing to %v", change.name, tables)
				}
			}, tables...)
			if diff := gocmp.Diff(strings.Split(before, "\n"), strings.Split(c.kept(), "\n")); diff != "" {
				t.Errorf("%s, not written to %v, left something (-before +after):\n%s", change.name, tables, diff)
			}
		}
		last := c.events(agent, "?order=desc&limit=1")[0].Seq
		if err := apply(); err != nil {
			t.Errorf("%s: %v", change.name, err)
		}
		var got []string
		for _, e := range c.events(agent, fmt.Sprintf("?after=%d", last)) {
			if e.Type == "message" {
				e.RefID = ""
			}
			got = append(got, strings.TrimSpace(e.Type+" "+e.RefID))
		}
		if diff := gocmp.Diff(change.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", change.name, diff)
		}
	}
}

// throng is a group of writers and what their committed transactions wrote.
type throng struct {
	*client
	web    *httptest.Server
	agents []string
	done   context.Context // ends when all writers are done

	mu      sync.Mutex
	said    map[string]map[string]bool // committed texts, by agent
	renamed map[string]int             // number of renames, by agent
}

// writer appends messages to agents in transactions, and renames the agents. It aborts every fourth transaction.
func (w *throng) writer(number int) {
	dice := rand.New(rand.NewPCG(1, uint64(number)))
	for n := range 5 {
		agent := w.agents[max(0, dice.IntN(2*len(w.agents))-len(w.agents))]
		if dice.IntN(4) == 0 {
			if got := w.call("PATCH", "/v1/agents/"+agent, fmt.Sprintf(`{"name":"by %d"}`, number)); got.Code != 200 {
				w.t.Errorf("rename: got %d %s", got.Code, got.Text)
				continue
			}
			w.mu.Lock()
			w.renamed[agent]++
			w.mu.Unlock()
			continue
		}
		texts := make([]string, 1+dice.IntN(3))
		for i := range texts {
			texts[i] = fmt.Sprint(number, "-", n, "-", i)
		}
		err := w.speak(agent, texts, dice)
		switch {
		case err == nil:
			w.note(agent, texts)
		case !errors.Is(err, errAborted):
			w.t.Errorf("append: %v", err)
		}
	}
}

var errAborted = errors.New("aborted")

func (w *throng) speak(agent string, texts []string, dice *rand.Rand) error {
	return db.Tx(w.t.Context(), w.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(w.t.Context(), `SELECT pg_advisory_xact_lock($1)`, dice.IntN(8)); err != nil {
			return err
		}
		if _, err := w.server.Recall.With(tx).Append(w.t.Context(), w.org, agent, "", drafts(texts...)); err != nil {
			return err
		}
		if dice.IntN(4) == 0 {
			return errAborted
		}
		return nil
	})
}

func (w *throng) note(agent string, texts []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.said[agent] == nil {
		w.said[agent] = map[string]bool{}
	}
	for _, text := range texts {
		w.said[agent][text] = true
	}
}

// over reports whether all writers are done and a reader has reached the end.
func (w *throng) over(agent string, last int64) bool {
	if w.done.Err() == nil {
		return false
	}
	head, err := event.Head(w.t.Context(), w.pool, w.org, agent)
	if err != nil {
		w.t.Errorf("read the head: %v", err)
	}
	return err != nil || last >= head
}

// page reads events over REST. ok is false if the request fails.
func (w *throng) page(agent, query string) (list []wireEvent, ok bool) {
	got := w.call("GET", "/v1/agents/"+agent+"/events"+query, "")
	err := json.Unmarshal([]byte(got.Text), &list)
	if err != nil {
		w.t.Errorf("read %s: got %d %s", query, got.Code, got.Text)
	}
	return list, err == nil
}

// pages reads page by page. It remembers only the last position.
func (w *throng) pages(agent string, dice *rand.Rand) (events []wireEvent) {
	for last, ok := int64(0), true; ok && !w.over(agent, last); {
		var page []wireEvent
		page, ok = w.page(agent, fmt.Sprintf("?after=%d&limit=%d", last, 1+dice.IntN(20)))
		events = append(events, page...)
		if len(page) > 0 {
			last = page[len(page)-1].Seq
		}
	}
	return events
}

// consumes reads as a named consumer, which remembers only its name. It has read everything up to its last commit.
func (w *throng) consumes(agent string, dice *rand.Rand) (events []wireEvent) {
	for last, ok := int64(0), true; ok && !w.over(agent, last); {
		var page []wireEvent
		if page, ok = w.page(agent, fmt.Sprintf("?consumer=reader&limit=%d", 1+dice.IntN(20))); len(page) == 0 {
			continue
		}
		commit := fmt.Sprintf(`{"seq":%d,"expected_seq":%d}`, page[len(page)-1].Seq, last)
		if got := w.call("PUT", "/v1/agents/"+agent+"/consumers/reader", commit); got.Code != 200 {
			w.t.Errorf("commit %s: got %d %s", commit, got.Code, got.Text)
			return events
		}
		events, last = append(events, page...), page[len(page)-1].Seq
	}
	return events
}

// follows reads a stream that keeps breaking off, for the last time after all writers are done. It reconnects with the
// last id.
func (w *throng) follows(agent string, dice *rand.Rand) (events []wireEvent) {
	for last := int64(0); !w.over(agent, last); {
		s, err := w.tail(w.t.Context(), w.web, agent, "", fmt.Sprint(last))
		if err != nil {
			w.t.Errorf("follow: %v", err)
			return events
		}
		if w.done.Err() == nil {
			context.AfterFunc(w.done, s.close)
		}
		for range 1 + dice.IntN(8) {
			if w.over(agent, last) {
				break
			}
			e, err := s.next()
			if err != nil && w.done.Err() == nil {
				w.t.Errorf("after %d: %v", last, err)
			}
			if err != nil {
				break
			}
			events, last = append(events, e), e.Seq
		}
		s.close()
	}
	return events
}

// check compares a reader's events with what was written: each event once, in order, without gaps, with its message.
func (w *throng) check(reader, agent string, events []wireEvent) {
	w.t.Helper()
	texts, renamed := map[string]bool{}, 0
	for i, e := range events {
		if e.Seq != int64(i+1) {
			w.t.Errorf("%s of %s read %v", reader, agent, positions(events))
			return
		}
		switch {
		case e.Type == "agent_updated":
			renamed++
		case e.Message == nil && e.Type == "message":
			w.t.Errorf("%s of %s read %+v without its message", reader, agent, e)
		case e.Type == "message" && e.Message.Role == "user":
			texts[e.Message.Content[0].Text] = true
		}
	}
	if diff := gocmp.Diff(w.said[agent], texts); diff != "" || renamed != w.renamed[agent] {
		w.t.Errorf("%s of %s read %d renamings, want %d; messages (-want +got):\n%s", reader, agent, renamed,
			w.renamed[agent], diff)
	}
}

// Thirty-two writers write to a shared agent and to others, while readers read over REST. Each reader sees every event
// once, in order and without gaps, even though its connection breaks.
func TestReadersOverRESTMissNothingAndSeeNothingTwice(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	done, finish := context.WithCancel(t.Context())
	w := &throng{client: c, web: httptest.NewServer(c), done: done, said: map[string]map[string]bool{},
		renamed: map[string]int{}}
	t.Cleanup(w.web.Close)
	for range 3 {
		w.agents = append(w.agents, c.made("/v1/agents", `{"name":"a"}`))
	}
	var writing, reading sync.WaitGroup
	for who := range 32 {
		writing.Go(func() { w.writer(who) })
	}
	type result struct {
		reader, agent string
		read          []wireEvent
	}
	var mu sync.Mutex
	var results []result
	for i, agent := range w.agents {
		for k, reader := range []struct {
			name string
			all  func(string, *rand.Rand) []wireEvent
		}{{"a pager", w.pages}, {"a consumer", w.consumes}, {"a stream", w.follows}} {
			reading.Go(func() {
				events := reader.all(agent, rand.New(rand.NewPCG(uint64(i), uint64(k))))
				mu.Lock()
				defer mu.Unlock()
				results = append(results, result{reader.name, agent, events})
			})
		}
	}
	writing.Wait()
	finish()
	reading.Wait()
	slices.SortFunc(results, func(a, b result) int { return cmp.Compare(a.reader+a.agent, b.reader+b.agent) })
	for _, r := range results {
		w.check(r.reader, r.agent, r.read)
	}
}
