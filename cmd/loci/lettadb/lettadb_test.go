package lettadb_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/cmd/loci/lettadb"
	"github.com/loci-memory/loci/compaction"
	"github.com/loci-memory/loci/compaction/store"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/memory/block"
	memoryfile "github.com/loci-memory/loci/memory/file"
	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const (
	org     = db.Org(1)
	ada     = "agent-00000000-0000-4000-8000-000000000001"
	message = "message-00000000-0000-4000-8000-0000000000"
	passage = "passage-00000000-0000-4000-8000-00000000000"
	manuals = "source-00000000-0000-4000-8000-000000000001"
)

// lettas returns the address of a Letta database that all tests share. Imports only read it.
var lettas = sync.OnceValue(func() string {
	t := dbtest.Program()
	dsn := dbtest.EmptyURL(t)
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for _, name := range []string{"schema.sql", "rows.sql"} {
		sql, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), string(sql)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return dsn
})

// target is a Loci database that receives an import.
type target struct {
	*lettadb.Importer
	t    *testing.T
	pool *pgxpool.Pool
}

func newTarget(t *testing.T, pool *pgxpool.Pool) target {
	t.Helper()
	store, err := files.New(pool, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	messages := recall.New(pool, recall.Options{})
	agents := &agent.Store{DB: pool, Files: store, Recall: messages, Blocks: &block.Store{DB: pool},
		Archival: archival.New(pool, archival.Options{}), Working: &working.Store{DB: pool, Recall: messages, Files: store},
		MemoryFiles: memoryfile.New(pool, memoryfile.Options{Redactor: messages.Redactor}), Tokens: tokens.New(),
		Compaction: compaction.New(pool, messages)}
	hasTool := func(tool string) bool { return tool == "conversation_search" }
	return target{&lettadb.Importer{Agents: agents, Has: hasTool}, t, pool}
}

// counts returns the numbers of rows in the target's tables, without empty tables.
func (w target) counts() map[string]int {
	w.t.Helper()
	owner := dbtest.Owner(w.t, w.pool)
	tables, err := db.All[string](w.t.Context(), owner, `
		SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`)
	if err != nil {
		w.t.Fatal(err)
	}
	counts := map[string]int{}
	for _, table := range tables {
		n, err := db.One[int](w.t.Context(), owner, `SELECT count(*) FROM `+pgx.Identifier{table}.Sanitize())
		if err != nil {
			w.t.Fatal(err)
		}
		if n > 0 {
			counts[table] = n
		}
	}
	return counts
}

// tallies returns a report's numbers by table: rows = imported + present + deleted + left out.
func tallies(report lettadb.Report) map[string]string {
	all := map[string]string{}
	for _, t := range report.Tables {
		all[t.Name] = fmt.Sprintf("%d = %d + %d + %d + %d", t.Rows, t.Imported, t.Present, t.Deleted, t.LeftOut)
	}
	return all
}

func sums(report lettadb.Report) (all []string) {
	for _, t := range report.Tables {
		all = append(all, t.Name+" "+t.SHA256)
	}
	return all
}

var imported = map[string]string{
	"organizations": "3 = 1 + 1 + 1 + 0", "block": "4 = 3 + 0 + 1 + 0", "block_history": "2 = 2 + 0 + 0 + 0",
	"sources": "1 = 1 + 0 + 0 + 0", "files": "5 = 4 + 0 + 0 + 1", "archives": "1 = 1 + 0 + 0 + 0",
	"archival_passages": "5 = 4 + 0 + 0 + 1", "tools": "4 = 1 + 1 + 0 + 2", "agents": "3 = 2 + 0 + 1 + 0",
	"agents_tags": "1 = 1 + 0 + 0 + 0", "blocks_agents": "3 = 3 + 0 + 0 + 0", "sources_agents": "1 = 1 + 0 + 0 + 0",
	"archives_agents": "1 = 1 + 0 + 0 + 0", "tools_agents": "4 = 2 + 0 + 0 + 2", "conversations": "2 = 1 + 0 + 1 + 0",
	"messages": "12 = 10 + 0 + 1 + 1", "files_agents": "2 = 2 + 0 + 0 + 0", "identities": "1 = 1 + 0 + 0 + 0",
	"identities_agents": "1 = 1 + 0 + 0 + 0", "identities_blocks": "1 = 0 + 0 + 0 + 1",
}

// A dry run stores nothing and reports what an import then does. A second import finds everything present.
func TestAnImportStoresWhatItsDryRunSays(t *testing.T) {
	t.Parallel()
	source, loci := lettas(), newTarget(t, dbtest.New(t))
	empty := loci.counts()
	dry, err := loci.Import(t.Context(), source, true)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(empty, loci.counts()); diff != "" {
		t.Errorf("a dry run changed the numbers of rows (-before +after):\n%s", diff)
	}
	report, err := loci.Import(t.Context(), source, false)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(imported, tallies(report)); diff != "" {
		t.Errorf("tables (-want +got):\n%s\n%s", diff, strings.Join(report.Notes, "\n"))
	}
	if diff := cmp.Diff(tallies(dry), tallies(report)); diff != "" {
		t.Errorf("the import is not what the dry run says (-dry +import):\n%s", diff)
	}
	if diff := cmp.Diff([]lettadb.Others{
		{Table: "groups", Rows: 1, Why: "Loci runs no groups of agents."},
		{Table: "mcp_server", Rows: 1, Why: "Loci calls no MCP servers."},
		{Table: "source_passages", Rows: 3, Why: "Files are split into passages again, with the numbers of their lines."},
		{Table: "users", Rows: 1, Why: "Loci has API keys: make some with 'loci keys create'."}}, report.NoHome); diff != "" {
		t.Errorf("what has no home (-want +got):\n%s", diff)
	}
	for _, want := range []string{
		"tool web_lookup: left out. It is a tool of an MCP server: give it to agents with client_tools, and run it there.",
		"tools_agents of agent " + ada + ": tool-00000000-0000-4000-8000-000000000004: left out. Loci has no tool web_lookup",
	} {
		if !slices.Contains(report.Notes, want) {
			t.Errorf("no note says %q, but\n%s", want, strings.Join(report.Notes, "\n"))
		}
	}
	afterFirst := loci.counts()
	second, err := loci.Import(t.Context(), source, false)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(afterFirst, loci.counts()); diff != "" {
		t.Errorf("a second import changed the numbers of rows (-before +after):\n%s", diff)
	}
	for _, table := range second.Tables {
		if table.Imported > 0 {
			t.Errorf("a second import stores %d rows of %s", table.Imported, table.Name)
		}
	}
	if diff := cmp.Diff(sums(dry), sums(second)); diff != "" {
		t.Errorf("the checksums of the same rows differ:\n%s", diff)
	}
	loci.check()
	t.Run("an interrupted import goes on", func(t *testing.T) { interruptedImportGoesOn(t, afterFirst) })
}

// check checks what the import stored.
func (w target) check() {
	w.t.Run("an agent has its settings, without those that Loci refuses", func(t *testing.T) {
		a, err := w.Agents.Agent(t.Context(), org, ada)
		if err != nil {
			t.Fatal(err)
		}
		if a.Name != "Ada Lovelace" || a.System != "You are Ada." || *a.Model != "openai/gpt-4o" || *a.WindowLimit != 32000 ||
			a.Timezone != "UTC" || a.MaxFilesOpen != nil || a.ViewChars != nil || !slices.Equal(a.Tags, []string{"math"}) {
			t.Errorf("agent is %+v", a)
		}
		rules := string(a.Settings.ToolRules)
		if !strings.Contains(rules, "roll_die") || strings.Contains(rules, "send_message") ||
			a.Settings.CompactionSettings != nil || a.MadeFor() != agent.ForLetta ||
			!slices.Equal(a.Settings.Tools, []string{"conversation_search"}) || len(a.Attached) != 1 ||
			a.Settings.Prompt == nil || a.Settings.Prompt.Results != agent.LettaResults {
			t.Errorf("settings are %+v, rules %s, tools %v", a.Settings, rules, a.Attached)
		}
		want := `{"enable_reasoner":true,"max_output_tokens":777,"reasoning":{"reasoning_effort":"high"},"temperature":0.25}`
		if got := string(a.Settings.ModelSettings); !sameJSON(t, got, want) {
			t.Errorf("model settings are %s, want %s", got, want)
		}
	})
	w.t.Run("blocks have their checkpoints as versions", func(t *testing.T) {
		list, err := w.Agents.Blocks.Versions(t.Context(), org, "block-00000000-0000-4000-8000-000000000001", 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		var values []string
		for _, v := range list {
			values = append(values, fmt.Sprintf("%d %s %d", v.Version, v.Value, v.Limit))
		}
		want := []string{"3 Ada, born 1815 14", "2 Ada, born 1816 14", "1 Ada 5"}
		if !slices.Equal(values, want) {
			t.Errorf("versions are %q, want %q", values, want)
		}
	})
	w.t.Run("the model sees what it saw", w.checkView)
	w.t.Run("passages keep their vectors, without the padding", w.checkPassages)
	w.t.Run("thoughts and envelopes are what they are", w.checkParts)
	w.t.Run("files are their texts", func(t *testing.T) {
		list, err := w.Agents.Files.ExportFiles(t.Context(), org, manuals)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, f := range list {
			names = append(names, fmt.Sprintf("%s %d", f.Name, f.SizeBytes))
		}
		want := []string{"guide_(2).md 11", "guide.md 23", "guide_(1).md 15", "report.pdf.txt 20", "stuck.txt 25"}
		if !slices.Equal(names, want) {
			t.Errorf("files are %q, want %q", names, want)
		}
	})
}

func (w target) checkView(t *testing.T) {
	view := w.viewOf(t, recall.DefaultConversation)
	var visible []string
	for _, m := range view {
		visible = append(visible, fmt.Sprintf("%s %s", m.Role, strings.TrimPrefix(m.ID, message)))
	}
	if want := []string{"system 01", "summary 07", "user 03", "assistant 08", "tool 09"}; !slices.Equal(visible, want) {
		t.Fatalf("the view is %q, want %q", visible, want)
	}
	if r := view[4].Content[0]; r.Text != "it broke" || !r.IsError || r.Envelope != nil {
		t.Errorf("a result with an envelope that can be made again is %+v", r)
	}
	if text := view[2].Content[0].Text; text != "nul: ␀ and half an emoji: \uFFFD" {
		t.Errorf("a text is %q", text)
	}
	if a, b := view[3].Content[0].Approval, view[4].Content[0].Approval; a != recall.Asked || b != recall.Approved {
		t.Errorf("the call is %q and its result is %q", a, b)
	}
	c, err := w.Agents.Recall.Conversation(t.Context(), org, ada, recall.DefaultConversation)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Agents.Compaction.LoadView(t.Context(), org, c, store.PromptOverhead{}); err != nil {
		t.Errorf("the view with its summary: %v", err)
	}
	view = w.viewOf(t, "conv-00000000-0000-4000-8000-000000000001")
	if len(view) != 2 || view[1].Content[0].Text != "of cards" {
		t.Errorf("the other conversation's view is %+v", view)
	}
}

// checkParts checks messages that the model does not see any more.
func (w target) checkParts(t *testing.T) {
	called, err := w.Agents.Recall.Message(t.Context(), org, message+"04")
	if err != nil {
		t.Fatal(err)
	}
	want := []recall.Part{{Type: recall.Reasoning, Native: true, Text: "think"},
		{Type: recall.Text, Kind: recall.InnerThought, Text: "A die will do."},
		{Type: recall.Text, Kind: recall.InnerThought, Text: "Six."},
		{Type: recall.ToolCall, CallID: "c1", Name: "roll_die", Input: `{"sides": 6}`}}
	if diff := cmp.Diff(want, called.Content); diff != "" {
		t.Errorf("an answer with a call (-want +got):\n%s", diff)
	}
	returned, err := w.Agents.Recall.Message(t.Context(), org, message+"05")
	if err != nil {
		t.Fatal(err)
	}
	want = []recall.Part{{Type: recall.ToolReturn, CallID: "c1", Text: `{"rolled": [4]}`,
		Envelope: &recall.Envelope{Time: "2024-05-01 12:00:07 PM CEST+0200", Raw: true}}}
	if diff := cmp.Diff(want, returned.Content); diff != "" {
		t.Errorf("its result (-want +got):\n%s", diff)
	}
}

// sameJSON reports whether two texts are the same JSON.
func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if err := errors.Join(json.Unmarshal([]byte(a), &x), json.Unmarshal([]byte(b), &y)); err != nil {
		t.Fatalf("read %s and %s: %v", a, b, err)
	}
	return cmp.Equal(x, y)
}

func (w target) viewOf(t *testing.T, conversation string) []recall.Message {
	t.Helper()
	c, err := w.Agents.Recall.Conversation(t.Context(), org, ada, conversation)
	if err != nil {
		t.Fatal(err)
	}
	view, err := w.Agents.Recall.View(t.Context(), org, c)
	if err != nil {
		t.Fatal(err)
	}
	return view
}

func (w target) checkPassages(t *testing.T) {
	type row struct {
		ID       string `db:"id"`
		Tags     string `db:"tags"`
		Vector   string `db:"vector"`
		Provider string `db:"provider"`
	}
	rows, err := db.All[row](t.Context(), w.pool, `
		SELECT 'passage-' || p.id AS id, p.tags::text, coalesce(v.embedding::text, '') AS vector,
		       coalesce(s.provider, '') AS provider
		FROM passages p LEFT JOIN passage_vectors v ON v.org = $1 AND v.passage_key = p.key
		LEFT JOIN embedding_spaces s ON s.id = v.space_id
		WHERE p.org = $1 AND 'passage-' || p.id = ANY ($2)
		ORDER BY p.created_at, p.key`, org, []string{passage + "1", passage + "2", passage + "3", passage + "5"})
	if err != nil {
		t.Fatal(err)
	}
	want := []row{{passage + "1", "{engine,mill}", "[0.60009766,0,0.7998047]", "http://embed/v1"},
		{passage + "2", "{}", "", ""},
		{passage + "3", "{}", "", ""}, {passage + "5", "{}", "", ""}}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("passages (-want +got):\n%s", diff)
	}
}

// interruptedImportGoesOn checks that an import that is stopped anywhere can continue, and then has stored the same as
// an uninterrupted one.
func interruptedImportGoesOn(t *testing.T, complete map[string]int) {
	source, loci := lettas(), newTarget(t, dbtest.New(t))
	stopped := 0
	for {
		ctx, stop := context.WithCancel(t.Context())
		steps := 0
		loci.Progress = func(string, int) {
			if steps++; steps == 2 {
				stop()
			}
		}
		_, err := loci.Import(ctx, source, false)
		stop()
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if stopped++; stopped > 100 {
			t.Fatal("the import makes no progress")
		}
	}
	if stopped < 3 {
		t.Errorf("the import was interrupted %d times", stopped)
	}
	if diff := cmp.Diff(complete, loci.counts()); diff != "" {
		t.Errorf("numbers of rows (-whole +interrupted):\n%s", diff)
	}
	loci.check()
}

func TestImportsRefuseOtherDatabases(t *testing.T) {
	t.Parallel()
	pool, _ := dbtest.Org(t)
	loci := newTarget(t, pool)
	_, err := loci.Import(t.Context(), dbtest.URLOf(pool), false)
	if _, isNotLetta := errors.AsType[*lettadb.NotLettaError](err); !isNotLetta {
		t.Errorf("the import of another database: %v", err)
	}
	if _, err := loci.Import(t.Context(), "mysql://letta", false); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("the import of no address: %v", err)
	}
	for _, dsn := range []string{"host=127.0.0.1 password = s3cretpw port=x", "nonsense s3cretpw"} {
		_, err := loci.Import(t.Context(), dsn, false)
		if !errors.Is(err, db.ErrInvalid) || strings.Contains(err.Error(), "s3cretpw") {
			t.Errorf("the import of %q: %v", dsn, err)
		}
	}
	loci.Org = "default"
	if _, err := loci.Import(t.Context(), lettas(), false); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("the import of two organizations into one: %v", err)
	}
}
