package tool_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/memory/block"
)

// withBlock attaches a new block to the agent of a world.
func (w world) withBlock(t *testing.T, n block.New) {
	t.Helper()
	blocks := &block.Store{DB: w.pool}
	b, err := blocks.Create(t.Context(), w.org, block.OperatorAuthor, n)
	if err == nil {
		err = blocks.Attach(t.Context(), w.org, w.agent.ID, b.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The tool memory speaks Anthropic's dialect about memory files, and Letta's about blocks.
func TestMemoryWorksOnBlocksAndFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.withBlock(t, block.New{Label: "human", Value: "Name: Ada\nLikes: tea", Limit: 60})
	calls := []string{
		`{"command":"view","path":"/memories"}`,
		`{"command":"view"}`,
		`{"command":"create","path":"/memories/notes.md","file_text":"one\ntwo\n"}`,
		`{"command":"view","path":"/memories/notes.md","view_range":[2,2]}`,
		`{"command":"str_replace","path":"/memories/notes.md","old_str":"two","new_str":"2"}`,
		`{"command":"str_replace","path":"/memories/notes.md","old_string":"one","new_string":"1"}`,
		`{"command":"insert","path":"/memories/notes.md","insert_line":0,"insert_text":"# Notes"}`,
		`{"command":"insert","path":"notes.md","insert_text":"last"}`,
		`{"command":"rename","old_path":"/memories/notes.md","new_path":"/memories/old/notes.md"}`,
		`{"command":"view","path":"/memories"}`,
		`{"command":"delete","path":"/memories/old"}`,
		`{"command":"create","path":"/memories/plan.md","file_text":"x","description":"the plan"}`,
		// Blocks, by their labels, also with /memories/ before them.
		`{"command":"view","path":"human"}`,
		`{"command":"view","path":"/memories/human"}`,
		`{"command":"str_replace","path":"/memories/human","old_str":"tea","new_str":"coffee"}`,
		`{"command":"str_replace","path":"human","old_string":"Ada","new_string":"Ada L."}`,
		`{"command":"insert","path":"human","insert_text":"Born: 1815","insert_line":1}`,
		`{"command":"create","path":"prefs","description":"what she likes","file_text":"quiet"}`,
		`{"command":"create","path":"goals","file_text":"Rest."}`,
		`{"command":"rename","path":"goals","description":"what to do"}`,
		`{"command":"rename","old_path":"goals","new_path":"aims"}`,
		`{"command":"delete","path":"/memories/prefs"}`,
		// Names that are nearly right.
		`{"command":"create","file_path":"/memories/a.md","content":"a"}`,
		`{"command":"insert","path":"/memories/a.md","new_string":"b"}`,
		`{"command":"str_replace","path":"aims","old_text":"Rest","replacement":"Work"}`,
		// Mistakes, and what to do about them.
		`{"command":"create","path":"/memories/human","file_text":"x"}`,
		`{"command":"create","path":"plan.md","file_text":"x"}`,
		`{"command":"str_replace","path":"/memories/none.md","old_str":"x","new_str":"y"}`,
		`{"command":"str_replace","path":"nobody","old_string":"x","new_string":"y"}`,
		`{"command":"delete","path":"/memories/none"}`,
		`{"command":"rename","old_path":"aims","new_path":"/memories/aims.md"}`,
		`{"command":"delete","path":"/memories"}`,
		`{"command":"read","path":"/memories"}`,
		`{"command":"view","path":"human","view_range":[5,9]}`,
		`{"command":"delete","path":"human","old_str":"tea"}`,
		`{"command":"insert","path":"human","insert_text":""}`,
		`{"command":"create","path":"/memories/b.md"}`,
		`{"command":"view","path":"/etc/passwd"}`,
		`{}`,
		`{"path":"human"}`,
	}
	var all [][2]string
	for _, c := range calls {
		all = append(all, [2]string{"memory", c})
	}
	checkGolden(t, "memory_tool", w.transcript(t, all...))
}

// An agent made for Letta means a block by a path that names nothing yet, as Letta does.
func TestMemoryOfAnAgentMadeForLettaCreatesBlocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agent.Settings.MadeFor = agent.ForLetta
	for _, c := range [][2]string{
		{`{"command":"create","path":"/memories/prefs","file_text":"quiet"}`, "Created the core memory block `prefs`"},
		{`{"command":"insert","path":"/memories/prefs","insert_text":"calm"}`, "block `prefs` (version 2"},
		{`{"command":"view","path":"/memories/prefs"}`, "     2\tcalm"},
	} {
		if got := w.run(t, "memory", c[0]); got.IsError || !strings.Contains(got.Text, c[1]) {
			t.Errorf("%s: %q, want %q in it", c[0], got.Text, c[1])
		}
	}
}

// No answer of the tool leads a model in a circle: what an error names exists, and the call that it names succeeds.
func TestWhatAnErrorOfMemoryNamesCanBeDone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.withBlock(t, block.New{Label: "human", Value: "Ada"})
	w.run(t, "memory", `{"command":"create","path":"/memories/plan.md","file_text":"plan"}`)
	for _, c := range []struct{ wrong, says, then string }{
		{`{"command":"str_replace","path":"/memories/person","old_str":"Ada","new_str":"Eve"}`, "human",
			`{"command":"str_replace","path":"human","old_str":"Ada","new_str":"Eve"}`},
		{`{"command":"view","path":"plans"}`, "path=/memories", `{"command":"view","path":"/memories"}`},
		{`{"command":"create","path":"/memories/human","file_text":"x"}`, "/memories/human.md",
			`{"command":"create","path":"/memories/human.md","file_text":"x"}`},
		{`{"command":"create","path":"plan.md","file_text":"x"}`, "path=/memories/plan.md",
			`{"command":"str_replace","path":"/memories/plan.md","old_string":"plan","new_string":"x"}`},
	} {
		if got := w.run(t, "memory", c.wrong); !got.IsError || !strings.Contains(got.Text, c.says) {
			t.Errorf("%s: %q (error %t), want %q in it", c.wrong, got.Text, got.IsError, c.says)
		}
		if got := w.run(t, "memory", c.then); got.IsError {
			t.Errorf("%s, as the error says: %q", c.then, got.Text)
		}
	}
}

// A path and arguments that do not belong together never make or rename the other kind of memory.
func TestMemoryNeverMixesBlocksAndFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.withBlock(t, block.New{Label: "human", Value: "Ada"})
	for _, c := range []struct{ name, call, want, file, block string }{
		{"a path without its slash is that of a file", `{"command":"create","path":"memories/q","file_text":"q"}`,
			"Created /memories/q", "/memories/q", ""},
		{"so is one that begins with a dot", `{"command":"create","path":"./memories/r.md","file_text":"r"}`,
			"Created /memories/r.md", "/memories/r.md", ""},
		{"the root without its slash is viewed", `{"command":"view","path":"memories"}`, "/memories has 2 files", "", ""},
		{"capitals mean the root", `{"command":"view","path":"/Memories/r.md"}`, "/memories/r.md has 1 line", "", ""},
		{"a name with an ending is no label", `{"command":"create","path":"plan.txt","file_text":"p"}`,
			"For a memory file, give path=/memories/plan.txt.", "", ""},
		{"nor is one with a space", `{"command":"create","path":"my plan","file_text":"p"}`,
			"For a memory file, give path=/memories/my plan.", "", ""},
		{"a label in capitals is the block's", `{"command":"view","path":"Human"}`, "block `human`", "", ""},
		{"and makes no second block", `{"command":"create","path":"HUMAN","file_text":"x"}`,
			"There is a core memory block human already", "", ""},
		{"a description does not make a block", `{"command":"create","path":"/memories/s","file_text":"s","description":"d"}`,
			"leave description out; for a core memory block, give path=s.", "", ""},
		{"as the answer says, a block", `{"command":"create","path":"s","file_text":"s","description":"d"}`,
			"Created the core memory block `s`", "", "s"},
		{"a file is not renamed to a block's name",
			`{"command":"rename","old_path":"memories/q","new_path":"/memories/human"}`,
			"such as /memories/human.md", "", ""},
		{"as the answer says, it is", `{"command":"rename","old_path":"memories/q","new_path":"/memories/human.md"}`,
			"Renamed /memories/q", "/memories/human.md", ""},
		{"a block is not renamed to a file", `{"command":"rename","old_path":"s","new_path":"/memories/t"}`,
			"give new_path=t.", "", ""},
		{"as the answer says, it gets a label", `{"command":"rename","old_path":"s","new_path":"t"}`,
			"has the label `t` now", "", "t"},
		{"a file gets no description", `{"command":"rename","path":"/memories/human.md","description":"d"}`,
			"A memory file has no description", "", ""},
	} {
		got := w.run(t, "memory", c.call)
		if !strings.Contains(got.Text, c.want) {
			t.Errorf("%s: %q, want %q in it", c.name, got.Text, c.want)
		}
		if c.file != "" {
			if got := w.run(t, "memory", `{"command":"view","path":"`+c.file+`"}`); !strings.HasPrefix(got.Text, c.file) {
				t.Errorf("%s: %q, want the file", c.name, got.Text)
			}
		}
		if got := w.run(t, "memory", `{"command":"view","path":"`+c.block+`"}`); c.block != "" &&
			!strings.HasPrefix(got.Text, "The core memory block `"+c.block+"`") {
			t.Errorf("%s: %q, want the block", c.name, got.Text)
		}
	}
}

// Calls of small models, with names, types and arguments that are nearly right, run.
func TestCallsThatAreNearlyRightRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.withBlock(t, block.New{Label: "human", Value: "Ada\nTea"})
	for _, c := range []struct{ name, args, want string }{
		{"memory_insert", `{"block_label":"human","content":"Born in 1815","line":"1"}`, "Born in 1815"},
		{"memory", `{"action":"view","path":"human"}`, "Born in 1815"},
		{"Memories", `{"cmd":"view","label":"human"}`, "Born in 1815"},
		{"memoryReplace", `{"path":"human","old":"Tea","new":"Coffee"}`, "Coffee"},
		{"Memory-Insert", `"{\"label\":\"human\",\"new_string\":\"Sails.\"}"`, "Sails."},
		{"archival_memory_insert", `{"text":"Ada sails on Sundays.","tag":"ada"}`, "Archived as passage-"},
		{"search_memory", `{"question":"who sails","top_k":"3","mode":"fast"}`, "Note: mode was not used"},
		{"conversation_search", `{"q":"sails","n":2}`, "No messages found"},
		{"update_working_memory", `{"updates":{"field":"task","text":"Sail"}}`, "task"},
		{"update_working_memory", `{"field":"next","text":"Tack"}`, "] Tack"},
		{"update_working_memory", `{"task":"Sail home","decisions":["No spinnaker","Reef early"]}`, "] Reef early"},
		{"archival_memory_search", `{"query":"sails","limit":1}`, "Found 1 passage"},
	} {
		got, err := w.tools.Run(t.Context(), tool.Caller{Org: w.org, Agent: w.agent}, c.name, json.RawMessage(c.args))
		if err != nil || got.IsError || !strings.Contains(got.Text, c.want) {
			t.Errorf("%s %s: %q, %v, want %q in it", c.name, c.args, got.Text, err, c.want)
		}
	}
}
