package tool_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/compaction"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/memory/block"
	memoryfile "github.com/loci-memory/loci/memory/file"
	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/recall"
)

// newTalk returns an agent in New York without files that has talked in its default conversation and in another. The id
// of the other is returned.
func newTalk(t *testing.T) (w world, conversation string) {
	t.Helper()
	pool, org := dbtest.Org(t)
	log := recall.New(pool, recall.Options{})
	store, err := files.New(pool, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	blocks, passages := &block.Store{DB: pool}, archival.New(pool, archival.Options{})
	states := &working.Store{DB: pool, Recall: log, Files: store}
	agents := &agent.Store{DB: pool, Files: store, Recall: log, Blocks: blocks, Archival: passages, Working: states,
		MemoryFiles: memoryfile.New(pool, memoryfile.Options{}),
		Compaction:  compaction.New(pool, log)}
	a, err := agents.Create(t.Context(), org, agent.New{Name: "talker", Timezone: "America/New_York"})
	if err != nil {
		t.Fatal(err)
	}
	w = world{org, tool.New(tool.Memories{Files: store, Recall: log, Blocks: blocks, Archival: passages,
		Working: states, MemoryFiles: memoryfile.New(pool, memoryfile.Options{})}), store, log, pool, a, agents}
	w.say(t, recall.DefaultConversation,
		draft(recall.User, "2024-03-01T23:30:00-05:00", recall.Part{Type: recall.Text, Text: "Where is the zebra report?"}),
		draft(recall.Assistant, "2024-03-02T00:10:00-05:00", recall.Part{Type: recall.ToolCall, CallID: "c", Name: "find",
			Input: `{"what":"zebra report"}`}),
		draft(recall.Tool, "2024-03-02T00:11:00-05:00", recall.Part{Type: recall.ToolReturn, CallID: "c",
			Text: "zebra report: /srv/reports/zebra.pdf"}),
		draft(recall.Assistant, "2024-03-02T00:12:00-05:00", recall.Part{Type: recall.Text, Text: "It is in /srv/reports."}))
	other, err := log.CreateConversation(t.Context(), org, a.ID, recall.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	w.say(t, other.ID, draft(recall.User, "2024-03-05T12:00:00-05:00", recall.Part{Type: recall.Text,
		Text: "A zebra again."}),
		draft(recall.Tool, "2024-03-05T12:01:00-05:00", recall.Part{Type: recall.ToolReturn, CallID: "lost",
			Text: "nobody asked"}))
	return w, other.ID
}

func draft(role recall.Role, at string, parts ...recall.Part) recall.Draft {
	said, err := time.Parse(time.RFC3339, at)
	if err != nil {
		panic(err)
	}
	return recall.Draft{Role: role, Content: parts, CreatedAt: &said}
}

func (w world) say(t *testing.T, conversation string, drafts ...recall.Draft) {
	t.Helper()
	if _, err := w.said.Append(t.Context(), w.org, w.agent.ID, conversation, drafts); err != nil {
		t.Fatal(err)
	}
}

// These parts differ from run to run: ids, and how long ago something happened.
var (
	ids  = regexp.MustCompile(`(message|conv|clip)-[0-9a-f-]{36}`)
	agos = regexp.MustCompile(`\d+[smhd] ago`)
)

func masked(s string) string {
	return agos.ReplaceAllString(ids.ReplaceAllString(s, "$1-…"), "… ago")
}

func TestAnAgentSearchesItsConversations(t *testing.T) {
	t.Parallel()
	w, conversation := newTalk(t)
	var b strings.Builder
	for _, args := range []string{
		`{"query": "zebra pdf", "limit": 1}`,
		`{"query": "zebra", "roles": ["tool"]}`,
		`{"query": "zebra", "roles": ["user"], "limit": 1}`,
		`{"query": "zebra", "conversation_id": "` + conversation + `"}`,
		`{"query": "zebra", "conversation_id": "default", "roles": "user"}`,
		`{"query": "zebra", "start_date": "2024-03-01", "end_date": "2024-03-01"}`,
		`{"query": "zebra", "end_date": "2024-02-28"}`,
		`{"query": "what is it that we do"}`,
		`{"query": "giraffe"}`,
		`{"query": "zebra", "offset": 50}`,
		`{"limit": 2}`,
		`{"query": "zebra", "conversation_id": "conv-123e4567-e89b-42d3-8456-426614174000"}`,
		`{"around": "message-123e4567-e89b-42d3-8456-426614174000"}`,
	} {
		got := w.run(t, "conversation_search", args)
		b.WriteString(masked("conversation_search "+args+"\n"+got.Text) + "\n\n")
	}
	checkGolden(t, "conversations", strings.TrimSpace(b.String()))
}

func TestWhatIsSearchedIsWhatTheModelDoesNotSee(t *testing.T) {
	t.Parallel()
	w, _ := newTalk(t)
	const said, seen = "Where is the zebra report?", "zebra report: /srv/reports"
	if got := w.run(t, "conversation_search", `{"query": "zebra"}`); !strings.Contains(got.Text, said) ||
		!strings.Contains(got.Text, seen) {
		t.Errorf("before any summary something is left out:\n%s", got.Text)
	}
	if _, err := w.pool.Exec(t.Context(), `
		UPDATE conversations SET first_visible = 3 WHERE org = $1 AND is_default`, w.org); err != nil {
		t.Fatal(err)
	}
	got := w.run(t, "conversation_search", `{"query": "zebra"}`)
	if !strings.Contains(got.Text, said) || strings.Contains(got.Text, seen) ||
		!strings.Contains(got.Text, "A zebra again.") {
		t.Errorf("of what was summarised and of other conversations something is missing, or of what is seen something "+
			"found:\n%s", got.Text)
	}
}

func TestConversationsAreTheOrganizations(t *testing.T) {
	t.Parallel()
	w, _ := newTalk(t)
	mine := regexp.MustCompile(`message-[0-9a-f-]{36}`).FindString(w.run(t, "conversation_search",
		`{"query": "zebra"}`).Text)
	for _, call := range [][2]string{
		{"conversation_search", `{"query": "zebra"}`},
		{"conversation_search", `{"around": "` + mine + `"}`},
		{"expand", `{"id": "` + mine + `"}`},
	} {
		got, err := w.tools.Run(t.Context(), tool.Caller{Org: 2, Agent: w.agent}, call[0], []byte(call[1]))
		if err != nil || !got.IsError || strings.Contains(got.Text, "report") {
			t.Errorf("%s in another organization: %+v, %v", call[0], got, err)
		}
	}
}

func TestExpandThroughTheTool(t *testing.T) {
	t.Parallel()
	w, _ := newTalk(t)
	text := strings.Repeat("a line of the result\n", 3000)
	w.say(t, recall.DefaultConversation, draft(recall.Assistant, "2024-03-06T00:00:00Z",
		recall.Part{Type: recall.ToolCall, CallID: "d", Name: "read"}),
		draft(recall.Tool, "2024-03-06T00:00:01Z", recall.Part{Type: recall.ToolReturn, CallID: "d", Text: text + "zebra\n"}))
	found := w.run(t, "conversation_search", `{"limit": 1, "roles": ["tool"]}`)
	around := w.run(t, "conversation_search", `{"around": "`+
		regexp.MustCompile(`message-[0-9a-f-]{36}`).FindString(found.Text)+`", "before": 0}`)
	id := regexp.MustCompile(`clip-[0-9a-f-]{36}`).FindString(around.Text)
	var b strings.Builder
	for _, args := range []string{
		`{"id": "` + id + `", "offset": 1995, "limit": 60}`,
		`{"id": "` + id + `", "offset": 62990}`,
		`{"id": "` + id + `", "pattern": "^zebra$"}`,
		`{"id": "` + id + `", "pattern": "line", "limit": 50}`,
		`{"id": "` + id + `", "pattern": "giraffe"}`,
		`{"id": "` + id + `", "pattern": "("}`,
		`{"id": "` + id + `", "offset": 70000}`,
		`{"id": "` + id + `", "offset": -1}`,
		`{"id": "clip-123e4567-e89b-42d3-8456-426614174000"}`,
		`{"id": "message-123e4567-e89b-42d3-8456-426614174000"}`,
		`{"id": "position 3"}`,
	} {
		got := w.run(t, "expand", args)
		b.WriteString(masked("expand "+args+"\n"+got.Text) + "\n\n")
	}
	checkGolden(t, "expand", strings.TrimSpace(b.String()))
}
