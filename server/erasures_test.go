package server_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	memoryagent "github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/tenant/erase"
)

// secret has characters that JSON escapes, a letter that Unicode can write in two ways, and several words.
const secret = `Zoë "Quartz" Müller qzx7741`

// spellings are different ways to store the text.
var spellings = []string{secret, "ZOË \"quartz\" Mu\u0308ller qzx7741", `Zo\u00eb \"Quartz\" M\u00fcller qzx7741`,
	"Zoë\n\"Quartz\"\tMüller\u00a0qzx7741", "Zo\u200bë \"Quartz\" Müller qzx7741"}

// everyTextColumn returns all columns that may hold a text, from the database's catalog. It includes the columns of
// jobs.
func everyTextColumn(c *client) (columns [][2]string) {
	c.t.Helper()
	rows, err := c.pool.Query(c.t.Context(), `
		SELECT c.relname::text, a.attname::text FROM pg_class c
		JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND format_type(a.atttypid, NULL)
		      IN ('text', 'character varying', 'json', 'jsonb', 'bytea', 'text[]', 'jsonb[]', 'bytea[]',
		          'character varying[]')
		ORDER BY 1, a.attnum`)
	if err != nil {
		c.t.Fatal(err)
	}
	columns, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (p [2]string, err error) {
		return p, r.Scan(&p[0], &p[1])
	})
	if err != nil || len(columns) < 150 {
		c.t.Fatalf("%d columns: %v", len(columns), err)
	}
	return columns
}

// stored returns the places of stored texts that contain one of some parts, in upper or lower case, as table.column and
// the text.
func (c *client) stored(parts ...string) (places []string) {
	c.t.Helper()
	conditions := c.ofOrg()
	for _, col := range everyTextColumn(c) {
		table, name := pgx.Identifier{col[0]}.Sanitize(), pgx.Identifier{col[1]}.Sanitize()
		texts, err := db.All[*string](c.t.Context(), c.pool, `SELECT t.`+name+`::text FROM `+table+` t `+conditions[col[0]])
		if err != nil {
			c.t.Fatalf("read %v: %v", col, err)
		}
		for i, text := range texts { // bytes are shown in hexadecimal digits
			if text != nil && strings.HasPrefix(*text, `\x`) {
				raw, _ := hex.DecodeString((*text)[2:])
				texts[i] = new(string(raw))
			}
		}
		if col == [2]string{"blobs", "bytes"} {
			texts = append(texts, c.blobs()...)
		}
		for _, text := range texts {
			for _, part := range parts {
				if text != nil && strings.Contains(strings.ToLower(*text), strings.ToLower(part)) {
					places = append(places, col[0]+"."+col[1]+": "+*text)
				}
			}
		}
	}
	return places
}

// ofOrg returns, by table, the condition for rows t that belong to the client's organization.
func (c *client) ofOrg() map[string]string {
	c.t.Helper()
	tables, err := db.All[string](c.t.Context(), c.pool, `
		SELECT attrelid::regclass::text FROM pg_attribute WHERE attname = 'org' AND NOT attisdropped
		  AND attrelid IN (SELECT oid FROM pg_class WHERE relnamespace = current_schema()::regnamespace)`)
	if err != nil {
		c.t.Fatal(err)
	}
	conditions := map[string]string{"river_job": fmt.Sprintf(`WHERE (t.args ->> 'org')::integer = %d`, c.org)}
	for _, table := range tables {
		conditions[table] = fmt.Sprintf(`WHERE t.org = %d`, c.org)
	}
	return conditions
}

// blobs returns the texts that are stored outside the log.
func (c *client) blobs() (texts []*string) {
	rows, err := c.pool.Query(c.t.Context(), `SELECT bytes, zstd FROM blobs WHERE org = $1`, c.org)
	if err != nil {
		c.t.Fatal(err)
	}
	var raw []byte
	var packed bool
	if _, err := pgx.ForEachRow(rows, []any{&raw, &packed}, func() error {
		text, err := recall.Unpacked(bytes.Clone(raw), packed)
		texts = append(texts, &text)
		return err
	}); err != nil {
		c.t.Fatal(err)
	}
	return texts
}

func quoted(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// planted returns an agent with a text in each memory, in current and older versions, and in runs, prompts, summaries
// and jobs.
func planted(t *testing.T, text string) (c *client, agent string) {
	t.Helper()
	return plantedIn(newServerClient(t), text)
}

// plantedIn does the same as planted for a client with its own server.
func plantedIn(owner *client, text string) (c *client, agent string) {
	t := owner.t
	t.Helper()
	q := func(format string) string { return fmt.Sprintf(format, quoted(text)) }
	r := newRunnerOf(owner, q(`{"name":"a","description":%[1]s,"metadata":{"note":%[1]s},"tool_set":"standard",
		"system":%[1]s,"tags":[%[1]s],"tools":["request_erasure","memory_files","search_memory"],
		"memory_blocks":[{"label":"human","value":%[1]s}]}`))
	c, agent = r.client, r.agent
	c.work()
	path := "/v1/agents/" + agent
	r.model.Says(modeltest.Answer{Text: "So you are " + text + "."})
	c.must("POST", r.path(), q(`{"input":%s}`))
	r.model.Says(modeltest.Answer{Text: "Yes, " + text + "."})
	r.stream(r.path()+"/stream", q(`{"input":%s,"background":true}`))
	var long strings.Builder
	for i := range 6_000 {
		fmt.Fprintf(&long, "line %d\n", i)
	}
	c.capture(agent, fmt.Sprintf(`{"messages":[{"role":"assistant","tool_calls":[{"id":"c1","function":{"name":"read",
		"arguments":%s}}]},{"role":"tool","tool_call_id":"c1","content":%s},{"role":"user","content":%s}]}`,
		quoted(q(`{"who":%s}`)), quoted(long.String()+text+"\n"+long.String()), quoted("I am "+text)))
	c.fit(agent, long.String()+text+"\n"+long.String(), "")
	c.capture(agent, chatter(1, 8, "weather"))
	c.must("GET", path+"/prompt", "")
	c.compact(path+"/summarize", `{}`)
	c.must("GET", path+"/prompt", "")
	c.must("POST", path+"/archival-memory", q(`{"text":%s,"tags":["t"]}`))
	c.must("POST", path+"/archival-memory", fmt.Sprintf(`{"text":%s}`, quoted("She is "+text+" of Berlin.")))
	c.must("PATCH", path+"/core-memory/blocks/human", `{"value":"nobody"}`)
	c.must("PATCH", "/v1/conversations/"+agent+"/working-memory",
		fmt.Sprintf(`{"changes":[{"field":"decisions","text":%s}]}`, quoted("Call "+strings.ReplaceAll(text, "\n", " "))))
	tree := c.made("/v1/memory-trees", q(`{"name":"t","description":%s}`))
	c.must("PATCH", path+"/memory-trees/attach/"+tree, "")
	for _, content := range []string{"Knows " + text + ".\n", "Knows nobody.\n", "Again " + text + "\n"} {
		c.must("PUT", "/v1/memory-trees/"+tree+"/file", fmt.Sprintf(`{"path":"/memories/a.md","content":%s}`,
			quoted(content)))
	}
	folder := c.made("/v1/folders", q(`{"name":"f","instructions":%s}`))
	c.must("PATCH", path+"/folders/attach/"+folder, "")
	c.uploaded(folder, "a.txt", strings.Repeat("The cat sat on the mat. ", 60)+text+strings.Repeat(" And so on.", 60))
	c.uploaded(folder, "other.txt", "Nothing to see.")
	c.made("/v1/conversations?agent_id="+agent, q(`{"summary":%s}`))
	c.made("/v1/archives", q(`{"name":%s}`))
	c.made("/v1/identities", q(`{"identifier_key":"k","name":%s,"identity_type":"user"}`))
	c.plantInWords(agent, text)
	if _, err := c.pool.Exec(t.Context(), `
		INSERT INTO river_job (args, kind, max_attempts, queue, errors, state, finalized_at)
		SELECT jsonb_build_object('org', org, 'what', $1::text), 'test', 1, 'none',
		       ARRAY[jsonb_build_object('error', $1::text)],
		       'discarded', now() FROM organizations WHERE org = $2`, text, c.org); err != nil {
		t.Fatal(err)
	}
	return c, agent
}

// erased erases a text, and checks that the erasure is complete.
func (c *client) erased(text string) (e erase.Erasure) {
	c.t.Helper()
	got := c.must("POST", "/v1/erasures", fmt.Sprintf(`{"texts":[%s],"reason":"asked to"}`, quoted(text)))
	if err := json.Unmarshal([]byte(got), &e); err != nil {
		c.t.Fatal(err)
	}
	if e.Status != erase.Completed || e.Texts != nil {
		c.t.Fatalf("got %s", got)
	}
	return e
}

// knownName matches the name of a place, in a form that a caller can look up.
var knownName = regexp.MustCompile(`^(consumer .+ of agent |)(agent|api|archive|block|child|compaction|conv|flush|` +
	`handover|identity|job|key|memfile|message|org|passage|replay|run|source|file|step|tool|tree|view)-[0-9a-f-]{36}`)

// Each spelling of a text is erased from each column of each table. Columns that later versions add are searched too.
func TestAnErasureLeavesNoOccurrenceInAnyColumn(t *testing.T) {
	t.Parallel()
	for i, text := range spellings {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			c, agent := planted(t, text)
			if before := c.stored("qzx7741"); len(before) < 20 {
				t.Fatalf("the text is planted in %d places only: %q", len(before), before)
			}
			positions := c.must("GET", "/v1/agents/"+agent+"/events?limit=1000", "")
			e := c.erased(secret)
			if left := c.stored("qzx7741"); len(left) > 0 {
				t.Errorf("left: %.2000q", left)
			}
			for _, table := range []string{"messages", "passages", "files", "block_versions", "memory_file_versions",
				"working_memories", "run_items", "agents", "folders", "prompt_parts", "river_job", "archives",
				"identities", "conversations", "tools"} {
				if e.Report.Found[table] == 0 {
					t.Errorf("the report lacks %s: %v", table, e.Report.Found)
				}
			}
			if e.Report.Summaries == 0 || len(e.Report.Left) > 0 {
				t.Errorf("the report: %+v", e.Report)
			}
			for _, p := range e.Report.Places {
				if !strings.HasPrefix(p.Where, "river_job.") && !knownName.MatchString(p.Of) {
					t.Errorf("the report names a row of %s %q", p.Where, p.Of)
				}
			}
			preview := c.must("POST", "/v1/erasures/preview", fmt.Sprintf(`{"texts":[%s]}`, quoted(secret)))
			if !strings.Contains(preview, `"found":{}`) || !strings.Contains(preview, `"left":{}`) {
				t.Errorf("the check: got %s", preview)
			}
			c.worksAfter(agent, positions)
		})
	}
}

// worksAfter checks an agent's order of messages, prompt and searches after an erasure.
func (c *client) worksAfter(agent, events string) {
	c.t.Helper()
	path := "/v1/agents/" + agent
	after := c.must("GET", path+"/events?limit=1000", "")
	if n, expected := strings.Count(after, `"seq"`), strings.Count(events, `"seq"`); n < expected {
		c.t.Errorf("%d events, before %d", n, expected)
	}
	if got := c.must("GET", path+"/messages?limit=200", ""); !strings.Contains(got, "I am [erased]") {
		c.t.Errorf("no gap is marked: %.3000s", got)
	}
	c.must("GET", path+"/prompt", "")
	if got := c.must("GET", path+"/memory-search?query=weather", ""); !strings.Contains(got, `"kind":"message"`) {
		c.t.Errorf("a search: got %s", got)
	}
	if got := c.must("GET", path+"/archival-memory/search?query=Berlin", ""); !strings.Contains(got, "She is [erased]") {
		c.t.Errorf("the passage: got %s", got)
	}
}

// An erased message keeps its place and its call. Its text is gone from the message, its summary, runs, prompts and
// forks.
func TestAMessageIsErasedWhole(t *testing.T) {
	t.Parallel()
	c, agent := planted(t, secret)
	c.must("POST", "/v1/conversations/default/fork?agent_id="+agent, "")
	path := "/v1/agents/" + agent
	var found struct {
		Hits []struct{ Place struct{ ID, Role string } }
	}
	if err := json.Unmarshal([]byte(c.must("GET", path+"/memory-search?query=quartz+line&kinds=message", "")),
		&found); err != nil {
		t.Fatal(err)
	}
	for _, h := range found.Hits {
		got := c.must("POST", "/v1/erasures", fmt.Sprintf(`{"message_id":%q}`, h.Place.ID))
		if !strings.Contains(got, `"status":"completed"`) {
			t.Fatalf("%s: got %s", h.Place.ID, got)
		}
		shown := c.must("GET", "/v1/messages/"+h.Place.ID, "")
		if strings.Contains(shown, "qzx7741") || !strings.Contains(shown, "This message was erased.") {
			t.Errorf("%s shows %s", h.Place.ID, shown)
		}
	}
	left := c.stored("I am "+secret, "line 5999")
	if len(found.Hits) < 3 || len(left) > 0 {
		t.Errorf("%d erased, left: %.3000q", len(found.Hits), left)
	}
	c.must("GET", path+"/prompt", "")
	if got := c.call("POST", "/v1/erasures", `{"message_id":"message-123e4567-e89b-42d3-8456-426614174000"}`); got.Code !=
		404 {
		t.Errorf("no such message: got %d %s", got.Code, got.Text)
	}
}

// An agent asks for an erasure, and an operator decides. Nothing is erased before the decision.
func TestAnAgentAsksForAnErasure(t *testing.T) {
	t.Parallel()
	c, agent := planted(t, secret)
	ask := func() string {
		c.tool(agent, "request_erasure", fmt.Sprintf(`{"texts":[%s],"reason":"asked to"}`, quoted(secret)))
		var list []erase.Erasure
		if err := json.Unmarshal([]byte(c.must("GET", "/v1/erasures?limit=1", "")), &list); err != nil {
			t.Fatal(err)
		}
		if list[0].Status != erase.Pending || list[0].RequestedBy.Agent != agent || len(list[0].Texts) != 1 {
			t.Fatalf("got %+v", list[0])
		}
		return "/v1/erasures/" + list[0].ID
	}
	denied := ask()
	before := len(c.stored("qzx7741"))
	if got := c.must("POST", denied+"/deny", ""); !strings.Contains(got, `"texts":null`) {
		t.Errorf("denied: got %s", got)
	}
	if after := len(c.stored("qzx7741")); after != before-1 { // the place in the request itself
		t.Errorf("in %d places after a denial, before in %d", after, before)
	}
	approved := ask()
	if got := c.must("POST", approved+"/approve", ""); !strings.Contains(got, `"status":"completed"`) {
		t.Errorf("approved: got %s", got)
	}
	if left := c.stored("qzx7741"); len(left) > 0 {
		t.Errorf("left: %.2000q", left)
	}
	for _, path := range []string{denied, approved} {
		if got := c.call("POST", path+"/approve", ""); got.Code != 409 {
			t.Errorf("again: got %d %s", got.Code, got.Text)
		}
	}
}

func TestErasuresRefuseWhatTheyCannotErase(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	for _, body := range []string{`{}`, `{"texts":[]}`, `{"texts":["a"]}`, `{"texts":["  "]}`, `{"texts":["erased"]}`,
		`{"texts":["abc"],"message_id":"message-123e4567-e89b-42d3-8456-426614174000"}`,
		`{"texts":["Ann Lee"],"agent_id":"agent-123e4567-e89b-42d3-8456-426614174000"}`,
		`{"texts":["Ann"],"whole_word":true}`} {
		for _, path := range []string{"/v1/erasures", "/v1/erasures/preview"} {
			if got := c.call("POST", path, body); got.Code != 422 {
				t.Errorf("%s %s: got %d %s", path, body, got.Code, got.Text)
			}
		}
	}
}

// An erasure does not touch other organizations.
func TestAnErasureIsOfOneOrganization(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	alice, bob := c.as("alice"), c.as("bob")
	for _, o := range []*client{alice, bob} {
		o.made("/v1/blocks", fmt.Sprintf(`{"label":"l","value":%s}`, quoted(secret)))
		o.capture(o.made("/v1/agents", `{"name":"a"}`), fmt.Sprintf(`{"messages":[{"role":"user","content":%s}]}`,
			quoted(secret)))
	}
	before := bob.stored("qzx7741")
	alice.erased(secret)
	if left := alice.stored("qzx7741"); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if got := bob.stored("qzx7741"); len(got) != 3 || !slices.Equal(got, before) {
		t.Errorf("bob's places are %q, want the 3 of before", got)
	}
}

// If a server stops in the middle of an erasure, another server continues it without loss. Summaries of messages that
// the first server changed are made again.
func TestAnErasureGoesOnAfterAKill(t *testing.T) {
	t.Parallel()
	c, _ := plantedIn(newErasingClient(t), secret)
	c.own().Erasures.InBackground = true
	id := c.made("/v1/erasures", fmt.Sprintf(`{"texts":[%s]}`, quoted(secret)))
	for n := 5; ; n *= 2 {
		ctx, cancel := context.WithCancel(t.Context())
		store := *c.server.Erasures
		stops := &stopping{DB: c.pool, stop: cancel}
		stops.after.Store(int64(n))
		store.DB = stops
		ended, err := store.Run(ctx)
		cancel()
		if err == nil && ended >= 1 && strings.Contains(c.must("GET", "/v1/erasures/"+id, ""), `"completed"`) {
			break
		}
		if n > 1_000_000 {
			t.Fatalf("it does not end: %v", err)
		}
		if _, err := c.pool.Exec(t.Context(), `UPDATE erasures SET claimed_at = NULL WHERE org = $1`,
			c.org); err != nil {
			t.Fatal(err)
		}
	}
	got := c.must("GET", "/v1/erasures/"+id, "")
	if !strings.Contains(got, `"status":"completed"`) || strings.Contains(got, `"remade_summaries":0`) {
		t.Errorf("got %s", got)
	}
	if left := c.stored("qzx7741"); len(left) > 0 {
		t.Errorf("left: %.2000q", left)
	}
}

// runsErasures is held by a test that calls Erasures.Run, because that goes over all organizations.
var runsErasures sync.Mutex

// newErasingClient does the same as newServerClient, for tests that call Erasures.Run. It uses the other database,
// where no other erasures run, and only one such test runs at a time.
func newErasingClient(t *testing.T) *client {
	t.Helper()
	c := newElsewhereServerClient(t)
	runsErasures.Lock()
	t.Cleanup(func() {
		c.exec(`DELETE FROM erasures WHERE org = $1`, c.org)
		runsErasures.Unlock()
	})
	return c
}

// If an erasure's server is silent, the API says so, and after 20 seconds another server takes the erasure over. If the
// server says that it is working, the erasure stays with it.
func TestAnErasureOfAStoppedServerIsTakenOver(t *testing.T) {
	t.Parallel()
	c, _ := plantedIn(newErasingClient(t), secret)
	c.own().Erasures.InBackground = true
	id := c.made("/v1/erasures", fmt.Sprintf(`{"texts":[%s]}`, quoted(secret)))
	silentFor := func(age string) {
		if _, err := c.pool.Exec(t.Context(), `
			UPDATE erasures SET claimed_at = now() - $1::interval WHERE org = $2`, age, c.org); err != nil {
			t.Fatal(err)
		}
	}
	run := func() string {
		if _, err := c.server.Erasures.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		return c.must("GET", "/v1/erasures/"+id, "")
	}
	silentFor("0 seconds")
	if got := run(); !strings.Contains(got, `"status":"running"`) || strings.Contains(got, "stopped_servers") {
		t.Errorf("at work: %s", got)
	}
	silentFor("11 seconds")
	got := c.must("GET", "/v1/erasures/"+id, "")
	if !strings.Contains(got, `"at_work":{"stopped_servers":1}`) || strings.Contains(got, `"status":"completed"`) {
		t.Errorf("silent for 11 seconds: %s", got)
	}
	run()
	embedtest.Eventually(t, "it is done by another server, when the jobs of before have ended", func() bool {
		silentFor("21 seconds")
		got := run()
		return strings.Contains(got, `"status":"completed"`) && !strings.Contains(got, "stopped_servers")
	})
}

// stopping is a database of a server that stops after some statements.
type stopping struct {
	db.DB
	after atomic.Int64
	stop  func()
}

func (s *stopping) count() {
	if s.after.Add(-1) == 0 {
		s.stop()
	}
}

func (s *stopping) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	s.count()
	return s.DB.Query(ctx, sql, args...)
}

func (s *stopping) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	s.count()
	return s.DB.Exec(ctx, sql, args...)
}

func (s *stopping) Begin(ctx context.Context) (pgx.Tx, error) {
	s.count()
	return s.DB.Begin(ctx)
}

// Everything that was written before an erasure began is erased even though others write meanwhile; otherwise the
// report says that the erasure is not complete. Another erasure erases what they wrote meanwhile.
func TestWritesDuringAnErasureAreErasedOrReported(t *testing.T) {
	t.Parallel()
	c, agent := planted(t, secret)
	var rounds atomic.Int64 // rounds of writes that have ended
	begun, answered := make(chan struct{}), make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := 1; ; i++ {
			text := fmt.Sprintf("round %02d: %s", i, secret)
			c.call("POST", "/v1/agents/"+agent+"/messages/capture",
				fmt.Sprintf(`{"messages":[{"role":"user","content":%s}]}`, quoted(text)))
			c.call("POST", "/v1/agents/"+agent+"/archival-memory", fmt.Sprintf(`{"text":%s}`, quoted(text)))
			c.call("GET", "/v1/agents/"+agent+"/prompt", "")
			if rounds.Store(int64(i)); i == 4 {
				close(begun)
			}
			select {
			case <-answered:
				return
			default:
			}
		}
	})
	<-begun
	completedRounds := rounds.Load()
	got := c.must("POST", "/v1/erasures", fmt.Sprintf(`{"texts":[%s]}`, quoted(secret)))
	close(answered)
	writing.Wait()
	if strings.Contains(got, `"completed"`) {
		for _, left := range c.stored("qzx7741") {
			var round int64
			if index := strings.LastIndex(left, "round "); index >= 0 {
				_, _ = fmt.Sscanf(left[index:], "round %d", &round)
			}
			if round <= completedRounds {
				t.Errorf("it is complete, and left what was written before: %.300q", left)
			}
		}
	}
	c.erased(secret)
	if left := c.stored("qzx7741"); len(left) > 0 {
		t.Errorf("left: %.2000q", left)
	}
}

// A prompt that was assembled before an erasure, and would be stored after it, is assembled anew.
func TestAPromptDoesNotOutliveAnErasure(t *testing.T) {
	t.Parallel()
	c, agent := planted(t, secret)
	late := &meanwhile{Pool: c.pool, do: func() {
		if got := c.must("POST", "/v1/erasures", fmt.Sprintf(`{"texts":[%s]}`, quoted(secret))); !strings.Contains(got,
			`"completed"`) {
			t.Errorf("the erasure: %s", got)
		}
	}}
	stores := *c.server.Agents
	stores.DB = late
	p, err := stores.NextPrompt(t.Context(), c.org, memoryagent.PromptTarget{AgentID: agent})
	if err != nil || late.begun < 2 {
		t.Fatalf("after %d transactions: %v", late.begun, err)
	}
	if strings.Contains(string(p.Request), "qzx7741") {
		t.Errorf("the prompt has what was erased: %s", p.Request)
	}
	if left := c.stored("qzx7741"); len(left) > 0 {
		t.Errorf("left: %.2000q", left)
	}
}

// meanwhile is a database in which something is done before the transaction that stores a prompt begins.
type meanwhile struct {
	*pgxpool.Pool
	do    func()
	begun int
}

func (m *meanwhile) Begin(ctx context.Context) (pgx.Tx, error) {
	if m.begun++; m.begun == 1 {
		m.do()
	}
	return m.Pool.Begin(ctx)
}
