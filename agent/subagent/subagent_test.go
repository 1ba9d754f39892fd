package subagent_test

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/agent/subagent"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/compaction"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/memory/block"
	memoryfile "github.com/loci-memory/loci/memory/file"
	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/recall"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// fixture is an agent that hands out tasks. No server runs its sub-agents.
type fixture struct {
	testing.TB
	org    db.Org
	store  *subagent.Store
	parent agent.Agent
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	pool, org := dbtest.Org(t)
	documents, err := files.New(pool, files.Options{Limits: agent.LimitsOf})
	if err != nil {
		t.Fatal(err)
	}
	log := recall.New(pool, recall.Options{})
	agents := &agent.Store{DB: pool, Files: documents, Recall: log, Blocks: &block.Store{DB: pool},
		Archival:    archival.New(pool, archival.Options{}),
		Working:     &working.Store{DB: pool, Recall: log, Files: documents},
		MemoryFiles: memoryfile.New(pool, memoryfile.Options{}), Compaction: compaction.New(pool, log)}
	tools := tool.New(tool.Memories{Files: documents, Recall: log, Blocks: agents.Blocks, Archival: agents.Archival,
		Agents: agents, Working: agents.Working, MemoryFiles: agents.MemoryFiles, Child: subagent.LogOf(pool)})
	agents.Tools = tools.Definitions
	store := &subagent.Store{DB: pool, Agents: agents, Loop: loop.New(loop.Loop{DB: pool, Agents: agents, Recall: log,
		Tools: tools, Log: slog.New(slog.DiscardHandler)})}
	tools.Subagents = store.ForTool()
	f := &fixture{TB: t, org: org, store: store}
	f.parent, err = agents.Create(t.Context(), org, agent.New{Name: "Ada",
		Settings: agent.Settings{Tools: []string{"expand", "core_memory_append", "start_subagent"}}})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// ask asks the parent for a sub-agent.
func (f *fixture) ask(change func(*subagent.New)) (subagent.Child, error) {
	n := subagent.New{ParentID: f.parent.ID, Conversation: recall.DefaultConversation, Mode: subagent.Blank,
		Task: "Count the ships."}
	if change != nil {
		change(&n)
	}
	return f.store.Create(f.Context(), f.org, n)
}

func (f *fixture) create(change func(*subagent.New)) subagent.Child {
	f.Helper()
	c, err := f.ask(change)
	if err != nil {
		f.Fatal(err)
	}
	return c
}

// messages returns the texts of a conversation, without its system prompt.
func (f *fixture) messages(agentID, conversation string) (texts []string) {
	f.Helper()
	c, err := f.store.Agents.Recall.Conversation(f.Context(), f.org, agentID, conversation)
	if err != nil {
		f.Fatal(err)
	}
	list, err := f.store.Agents.Recall.Between(f.Context(), f.org, c, 2, 1_000)
	if err != nil {
		f.Fatal(err)
	}
	for _, m := range list {
		texts = append(texts, string(m.Role)+": "+m.Text())
	}
	return texts
}

func (f *fixture) say(agentID string, parts ...recall.Part) {
	f.Helper()
	role := recall.Assistant
	if _, err := f.store.Agents.Recall.Append(f.Context(), f.org, agentID, recall.DefaultConversation,
		[]recall.Draft{{Role: role, Content: parts}}); err != nil {
		f.Fatal(err)
	}
}

func text(s string) recall.Part { return recall.Part{Type: recall.Text, Text: s} }

func TestRequestsForSubagents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		n       subagent.New
		refused string
	}{
		{"blank", subagent.New{Mode: subagent.Blank, Task: "t"}, ""},
		{"a mode that is unknown", subagent.New{Mode: "twin", Task: "t"}, "mode"},
		{"no task", subagent.New{Mode: subagent.Blank, Task: " \n"}, "task is empty"},
		{"the longest task", subagent.New{Mode: subagent.Blank, Task: strings.Repeat("ä", 100_000)}, ""},
		{"a longer task", subagent.New{Mode: subagent.Blank, Task: strings.Repeat("ä", 100_001)}, "more than 100000"},
		{"a fork", subagent.New{Mode: subagent.Fork, Task: "t"}, ""},
		{"a fork with grants", subagent.New{Mode: subagent.Fork, Task: "t", Grants: subagent.Grants{Default: true}},
			"a fork has"},
		{"a fork with a model", subagent.New{Mode: subagent.Fork, Task: "t", Grants: subagent.Grants{Model: new("m")}},
			"a fork has"},
		{"a brief with files", subagent.New{Mode: subagent.Brief, Task: "t", Grants: subagent.Grants{Files: []string{"a"}}},
			""},
		{"a blank with files", subagent.New{Mode: subagent.Blank, Task: "t", Grants: subagent.Grants{Files: []string{"a"}}},
			"mode brief"},
	} {
		err := c.n.Check()
		if c.refused == "" && err != nil || c.refused != "" && (!errors.Is(err, db.ErrInvalid) ||
			!strings.Contains(err.Error(), c.refused)) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.refused)
		}
	}
}

// A sub-agent has the parent's tools, or the tools that it is given. It cannot be given what the parent lacks.
func TestASubagentHasToolsOfItsParent(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, c := range []struct {
		only, want []string
	}{
		{nil, []string{"core_memory_append", "expand", "start_subagent"}},
		{[]string{"expand"}, []string{"expand"}},
		{[]string{}, nil},
	} {
		child := f.create(func(n *subagent.New) { n.OnlyTools = c.only })
		a, err := f.store.Agents.Agent(t.Context(), f.org, child.AgentID)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(slices.Values(a.Settings.Tools)); !slices.Equal(got, c.want) {
			t.Errorf("with %v: got the tools %v, want %v", c.only, got, c.want)
		}
	}
	for name, change := range map[string]func(*subagent.New){
		"tool":   func(n *subagent.New) { n.OnlyTools = []string{"grep_files"} },
		"block":  func(n *subagent.New) { n.Blocks = []subagent.Grant{{ID: "none"}} },
		"folder": func(n *subagent.New) { n.Folders = []string{"none"} },
		"file":   func(n *subagent.New) { n.Mode, n.Files = subagent.Brief, []string{"none/a.txt"} },
	} {
		if _, err := f.ask(change); !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("a %s that the parent lacks: got %v, want ErrInvalid", name, err)
		}
	}
	if list, err := f.store.List(t.Context(), f.org, subagent.Filter{}, db.Page{}); err != nil || len(list) != 3 {
		t.Errorf("refused requests left %d sub-agents, %v, want 3", len(list), err)
	}
}

// An agent has at most 32 sub-agents at work, and sub-agents are at most 4 deep.
func TestSubagentsAreBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	deep := f.create(nil)
	for depth := 2; depth <= subagent.MaxDepth; depth++ {
		if deep.Depth != depth-1 {
			t.Fatalf("a sub-agent is %d deep, want %d", deep.Depth, depth-1)
		}
		parent := deep.AgentID
		deep = f.create(func(n *subagent.New) { n.ParentID = parent })
	}
	if _, err := f.ask(func(n *subagent.New) { n.ParentID = deep.AgentID }); !errors.Is(err, db.ErrInvalid) ||
		!strings.Contains(err.Error(), "would be 5 deep") {
		t.Errorf("5 deep: got %v, want ErrInvalid", err)
	}
	for range subagent.MaxWorking - 2 {
		f.create(nil)
	}
	last := f.create(nil)
	if _, err := f.ask(nil); !errors.Is(err, db.ErrTooMany) || !strings.Contains(err.Error(), "32 sub-agents") {
		t.Errorf("the 33rd: got %v, want ErrTooMany", err)
	}
	if _, err := f.store.Cancel(t.Context(), f.org, f.parent.ID, last.ID); err != nil {
		t.Fatal(err)
	}
	f.create(nil)
}

// A request that is sent again gets the same sub-agent, unless it asks for something else.
func TestARepeatedRequest(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	otid := "o-1"
	first := f.create(func(n *subagent.New) { n.OTID = &otid })
	if again := f.create(func(n *subagent.New) { n.OTID = &otid }); again.ID != first.ID {
		t.Errorf("the same request made %s, then %s", first.ID, again.ID)
	}
	for name, change := range map[string]func(*subagent.New){
		"another task": func(n *subagent.New) { n.OTID, n.Task = &otid, "Count the cars." },
		"another mode": func(n *subagent.New) { n.OTID, n.Mode = &otid, subagent.Brief },
	} {
		if _, err := f.ask(change); !errors.Is(err, db.ErrConflict) {
			t.Errorf("%s: got %v, want ErrConflict", name, err)
		}
	}
	if other := f.create(nil); other.ID == first.ID {
		t.Error("a request without an otid got the same sub-agent")
	}
}

// The first result of a sub-agent comes to its parent's log once. Later results are not taken.
func TestASubagentReturnsOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.create(nil)
	if got := f.messages(c.AgentID, recall.DefaultConversation); len(got) != 1 || got[0] != "user: Count the ships." {
		t.Errorf("the sub-agent is told %q", got)
	}
	if _, err := f.store.Return(t.Context(), f.org, f.parent.ID, c.ID, subagent.Result{}); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("before it said anything: got %v, want ErrInvalid", err)
	}
	if _, err := f.store.Return(t.Context(), f.org, f.parent.ID, c.ID, subagent.Result{Text: new(" ")}); !errors.Is(err,
		db.ErrInvalid) {
		t.Errorf("an empty result: got %v, want ErrInvalid", err)
	}
	f.say(c.AgentID, text("There are"), recall.Part{Type: recall.Reasoning, Text: "hm"}, text("7 ships."))
	returned, err := f.store.Return(t.Context(), f.org, f.parent.ID, c.ID, subagent.Result{})
	if err != nil || returned.Status != subagent.Returned || *returned.Result != "There are\n\n7 ships." ||
		returned.ReturnedAt == nil {
		t.Fatalf("got %+v, %v", returned, err)
	}
	again, err := f.store.Return(t.Context(), f.org, f.parent.ID, c.ID, subagent.Result{Text: new("8"), Failed: true})
	if err != nil || again.Status != subagent.Returned || *again.Result != *returned.Result {
		t.Errorf("a second result: got %+v, %v, want the first", again, err)
	}
	got := f.messages(f.parent.ID, recall.DefaultConversation)
	if len(got) != 1 || !strings.HasPrefix(got[0], "user: ") || !strings.Contains(got[0], "7 ships.") {
		t.Errorf("the parent's log has %q", got)
	}
}

// A cancelled sub-agent keeps the reason, and its result is not taken. Its sub-agents are cancelled, too.
func TestACancelledSubagent(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.create(nil)
	below := f.create(func(n *subagent.New) { n.ParentID = c.AgentID })
	cancelled, err := f.store.Cancel(t.Context(), f.org, f.parent.ID, c.ID)
	if err != nil || cancelled.Status != subagent.Cancelled || *cancelled.Result != "It was cancelled on request." {
		t.Errorf("got %+v, %v", cancelled, err)
	}
	if got, err := f.store.Child(t.Context(), f.org, c.AgentID, below.ID); err != nil ||
		got.Status != subagent.Cancelled {
		t.Errorf("its sub-agent: got %+v, %v, want it cancelled", got, err)
	}
	if _, err := f.store.Return(t.Context(), f.org, f.parent.ID, c.ID, subagent.Result{Text: new("7")}); !errors.Is(err,
		db.ErrConflict) {
		t.Errorf("its result: got %v, want ErrConflict", err)
	}
	if got := f.messages(f.parent.ID, recall.DefaultConversation); len(got) != 0 {
		t.Errorf("the parent's log has %q", got)
	}
}

// Sub-agents are listed by parent, conversation and state. Another agent or organization does not find them.
func TestSubagentsAreFound(t *testing.T) {
	t.Parallel()
	f, other := newFixture(t), newFixture(t)
	a, b := f.create(nil), f.create(nil)
	if _, err := f.store.Cancel(t.Context(), f.org, f.parent.ID, b.ID); err != nil {
		t.Fatal(err)
	}
	below := f.create(func(n *subagent.New) { n.ParentID = a.AgentID })
	for _, c := range []struct {
		name   string
		filter subagent.Filter
		want   []string
	}{
		{"all", subagent.Filter{}, []string{a.ID, b.ID, below.ID}},
		{"of the parent", subagent.Filter{ParentID: f.parent.ID}, []string{a.ID, b.ID}},
		{"of a conversation", subagent.Filter{Conversation: below.ParentConversationID}, []string{below.ID}},
		{"at work", subagent.Filter{Status: subagent.Working}, []string{a.ID, below.ID}},
		{"of nobody", subagent.Filter{ParentID: other.parent.ID}, nil},
	} {
		list, err := f.store.List(t.Context(), f.org, c.filter, db.Page{Ascending: true})
		var got []string
		for _, child := range list {
			got = append(got, child.ID)
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, %v, want %v", c.name, got, err, c.want)
		}
	}
	for name, of := range map[string]*fixture{"another agent's": f, "another organization's": other} {
		parent := other.parent.ID
		if of == f {
			parent = a.AgentID
		}
		if _, err := of.store.Child(t.Context(), of.org, parent, a.ID); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("%s: got %v, want ErrNotFound", name, err)
		}
	}
}

// The agents of sub-agents, and of theirs, are deleted with their parent; those of others stay.
func TestSubagentsAreDeletedWithTheirParent(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.create(nil)
	below := f.create(func(n *subagent.New) { n.ParentID = a.AgentID })
	if err := f.store.DeleteOf(t.Context(), f.org, f.parent.ID); err != nil {
		t.Fatal(err)
	}
	for id, gone := range map[string]bool{a.AgentID: true, below.AgentID: true, f.parent.ID: false} {
		if _, err := f.store.Agents.Agent(t.Context(), f.org, id); errors.Is(err, db.ErrNotFound) != gone {
			t.Errorf("%s: got %v, gone should be %v", id, err, gone)
		}
	}
}

// The parent's log shows at most 8,000 characters of a result, and how to read the rest.
func TestWhatIsShownOfAResult(t *testing.T) {
	t.Parallel()
	c := subagent.Child{ID: "child-1", Name: "Ada"}
	whole := strings.Repeat("ä", 8_000)
	for _, tt := range []struct {
		name   string
		result subagent.Result
		want   string
	}{
		{"a result", subagent.Result{Text: new("7")}, "The sub-agent child-1 (Ada) returned:\n\n7\n\n[To read its log, " +
			`call: expand(id="child-1")]`},
		{"a failure", subagent.Result{Text: new("7"), Failed: true}, "The sub-agent child-1 (Ada) failed:\n\n7\n\n"},
		{"the longest", subagent.Result{Text: &whole}, whole + "\n\n[To read"},
		{"a longer one", subagent.Result{Text: new(whole + "b")}, whole + "\n[The first 8000 of 8001 characters are shown.]"},
	} {
		if got := c.Shown(tt.result); !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %.300q, want %.300q", tt.name, got, tt.want)
		}
	}
}

func TestNamesOfSubagents(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 181)
	for name, want := range map[string]string{"": "Ada, sub-agent", "Bo": "Bo", long: long[:360]} {
		if got := (subagent.New{Name: name}).NameFor(agent.Agent{Name: "Ada"}); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

// A sub-agent has the parent's approval rules for the tools that it has, and no other rules. Its own model has none of
// the settings of the parent's model.
func TestSettingsOfASubagent(t *testing.T) {
	t.Parallel()
	parent := agent.Agent{Settings: agent.Settings{MadeFor: "m", ModelSettings: []byte(`{"a":1}`),
		CompactionSettings: []byte(`{"b":1}`), ToolRules: []byte(`[{"type":"requires_approval","tool_name":"erase"},
			{"type":"requires_approval","tool_name":"expand"},{"type":"exit_loop","tool_name":"expand"},7]`)}}
	got, err := subagent.SettingsFor(parent, subagent.New{}, []string{"expand"})
	if err != nil || string(got.ToolRules) != `[{"type":"requires_approval","tool_name":"expand"}]` ||
		string(got.ModelSettings) != `{"a":1}` || string(got.CompactionSettings) != `{"b":1}` ||
		got.OpenOnAttach == nil || *got.OpenOnAttach {
		t.Errorf("got %+v with the rules %s, %v", got, got.ToolRules, err)
	}
	got, err = subagent.SettingsFor(parent, subagent.New{Grants: subagent.Grants{Model: new("other"),
		Compaction: []byte(`{"c":1}`)}}, []string{"grep"})
	if err != nil || got.ToolRules != nil || got.ModelSettings != nil || string(got.CompactionSettings) != `{"c":1}` {
		t.Errorf("with its own model: got %+v, %v", got, err)
	}
}

// By default a sub-agent reads the blocks agents, tools and soul of its parent, unless the request says how it has
// them.
func TestDefaultGrants(t *testing.T) {
	t.Parallel()
	has := []block.Block{{ID: "block-1", Label: "SOUL"}, {ID: "block-2", Label: "human"}, {ID: "block-3", Label: "tools"},
		{ID: "block-4", Label: "agents"}}
	n := subagent.New{Grants: subagent.Grants{Blocks: []subagent.Grant{{ID: "human"}, {ID: "tools"}, {ID: "block-4"}}}}
	if got := fmt.Sprint(n.WithDefaults(has)); got != "[{human false} {tools false} {block-4 false}]" {
		t.Errorf("without defaults: got %s", got)
	}
	n.Default = true
	if got := fmt.Sprint(n.WithDefaults(has)); got != "[{human false} {tools false} {block-4 false} {block-1 true}]" {
		t.Errorf("with defaults: got %s", got)
	}
}
