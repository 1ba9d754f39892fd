package tool_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/loci-memory/loci/agent"
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

// small is an agent with prompts, in a small window, and all the tools that change what stands in them.
type small struct {
	world
	agents *agent.Store
}

func newSmall(t *testing.T, window int) small {
	t.Helper()
	pool, org := dbtest.Org(t)
	documents, err := files.New(pool, files.Options{Limits: agent.LimitsOf})
	if err != nil {
		t.Fatal(err)
	}
	log := recall.New(pool, recall.Options{})
	agents := &agent.Store{DB: pool, MemoryFiles: memoryfile.New(pool, memoryfile.Options{}), Files: documents,
		Recall: log, Blocks: &block.Store{DB: pool}, Archival: archival.New(pool, archival.Options{}),
		Working: &working.Store{DB: pool, Recall: log, Files: documents}, Compaction: compaction.New(pool, log)}
	tools := tool.New(tool.Memories{Files: documents, Recall: log, Blocks: agents.Blocks, Archival: agents.Archival,
		Working: agents.Working, MemoryFiles: agents.MemoryFiles, Agents: agents})
	agents.Tools = tools.Definitions
	a, err := agents.Create(t.Context(), org, agent.New{Name: "small", WindowLimit: &window,
		Settings: agent.Settings{Tools: []string{agent.DefaultTools, tool.UpdateWorkingMemory}},
		Blocks:   []block.New{{Label: "human"}, {Label: "persona"}}})
	if err != nil {
		t.Fatal(err)
	}
	return small{world{org: org, tools: tools, store: documents, said: log, pool: pool, agent: a}, agents}
}

// prompt returns the next prompt, which must fit.
func (s small) prompt(t *testing.T) string {
	t.Helper()
	p, err := s.agents.NextPrompt(t.Context(), s.org, agent.PromptTarget{AgentID: s.agent.ID})
	if err != nil {
		t.Fatalf("no prompt can be made: %v", err)
	}
	return string(p.Request)
}

// Whatever a model writes into what always stands in its prompt, a prompt with room for messages can be made. A refused
// call changes nothing, and says what is too large.
func TestNoCallMakesThePromptImpossible(t *testing.T) {
	t.Parallel()
	for _, window := range []int{4_096, 8_192, 16_384} {
		s := newSmall(t, window)
		long := func(n int) string { return strings.TrimSpace(strings.Repeat("zebra walks ", n/12)) }
		refusedCalls := 0
		for i := range 12 {
			for _, call := range [][2]string{
				{"memory", `{"command":"insert","path":"human","insert_text":"` + long(window/3) + `"}`},
				{"memory", fmt.Sprintf(`{"command":"create","path":"b%d","description":"%s","file_text":"%s"}`, i, long(60),
					long(window/4))},
				{"memory", fmt.Sprintf(`{"command":"create","path":"c%d","description":"%s"}`, i, long(window))},
				{"memory", fmt.Sprintf(`{"command":"create","path":"/memories/MEMORY.md","file_text":"%s"}`, long(4_900))},
				{"update_working_memory", `{"changes":[{"field":"decisions","text":"` + fmt.Sprint(i) + long(window/8) + `"}]}`},
			} {
				if got := s.run(t, call[0], call[1]); got.IsError {
					refusedCalls++
					if !strings.Contains(got.Text, "othing was changed") && !strings.Contains(got.Text, "would break its rules") &&
						!strings.Contains(got.Text, "exists already") {
						t.Errorf("window %d: %s: %s", window, call[0], got.Text)
					}
				}
			}
		}
		if refusedCalls == 0 {
			t.Errorf("window %d: every call was taken", window)
		}
		room, err := s.agents.Room(t.Context(), s.org, s.agent.ID, "")
		if err != nil || room.Others+room.Core > room.Limit {
			t.Errorf("window %d: room %+v, %v", window, room, err)
		}
		if p := s.prompt(t); strings.Contains(p, "characters are shown.") {
			t.Errorf("window %d: the prompt shows in part what the model wrote: %s", window, p)
		}
	}
}

// A refused edit says how much there is, how much may be used, and what to shorten.
func TestARefusedEditSaysWhatToShorten(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 4_096)
	text := strings.Repeat("zebra ", 400)
	for _, c := range []struct{ call, want string }{
		{`{"command":"insert","path":"human","insert_text":"` + strings.Repeat("zebra ", 600) + `"}`,
			"Exceeds 3276 character limit (requested 3600) of block human, which is a fifth of your window of 4096 tokens"},
		{`{"command":"insert","path":"human","insert_text":"` + text + `"}`, ""},
		{`{"command":"insert","path":"persona","insert_text":"` + text + `"}`, "the block persona (2400 characters, "},
		{`{"command":"view","path":"persona"}`, "is empty"},
	} {
		got := s.run(t, "memory", c.call)
		if got.IsError != (c.want != "" && c.want != "is empty") || !strings.Contains(got.Text, c.want) {
			t.Errorf("%.80s: %q (error %t), want %q in it", c.call, got.Text, got.IsError, c.want)
		}
	}
	if p := s.prompt(t); !strings.Contains(p, `- chars_limit=3276`) {
		t.Errorf("the prompt does not show the limit in this window: %s", p)
	}
}

// What an operator or another agent wrote stays whole, and the prompt shows as much of it as fits, with the call that
// reads on.
func TestWhatIsTooLongForAWindowIsShownInPart(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 4_096)
	blocks, err := s.agents.Blocks.OfAgent(t.Context(), s.org, s.agent.ID)
	if err != nil {
		t.Fatal(err)
	}
	value := ""
	for i := range 3_000 {
		value += fmt.Sprintf("line %d of the block\n", i+1)
	}
	if _, err := s.agents.Blocks.Update(t.Context(), s.org, block.Target{ID: blocks[0].ID, Author: block.OperatorAuthor},
		block.Update{Value: &value}); err != nil {
		t.Fatal(err)
	}
	p := s.prompt(t)
	note := fmt.Sprintf("of %d characters are shown. The window has no room for more. To read on, call: "+
		`memory(command=\"view\", path=\"human\", view_range=[`, utf8.RuneCountInString(value))
	if !strings.Contains(p, note) || !strings.Contains(p, "line 1 of the block") {
		t.Errorf("the prompt lacks %q: %s", note, p)
	}
	var from int
	if _, err := fmt.Sscanf(p[strings.Index(p, "view_range=["):], "view_range=[%d,", &from); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(p, fmt.Sprintf("line %d of the block\\n[", from-1)) {
		t.Errorf("the note names line %d, the prompt: %s", from, p)
	}
	got := s.run(t, "memory", fmt.Sprintf(`{"command":"view","path":"human","view_range":[%d,-1]}`, from))
	if got.IsError || !strings.Contains(got.Text, fmt.Sprintf("\tline %d of the block", from)) {
		t.Errorf("the call that the note names: %.300s", got.Text)
	}
}

// No agent is made, or changed, with a window in which no prompt of it fits.
func TestAWindowThatHoldsNoPromptIsRefused(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 4_096)
	_, err := s.agents.Create(t.Context(), s.org, agent.New{Name: "tiny", WindowLimit: new(1_024)})
	if err == nil || !strings.Contains(err.Error(), "context_window_limit is 1024") {
		t.Fatalf("a window of 1,024: %v", err)
	}
	var least int
	_, named, _ := strings.Cut(err.Error(), "The smallest that it can have is ")
	if _, err := fmt.Sscanf(named, "%d", &least); err != nil {
		t.Fatalf("%v: %v", err, least)
	}
	if _, err := s.agents.Create(t.Context(), s.org, agent.New{Name: "small", WindowLimit: &least}); err != nil {
		t.Errorf("the smallest window, %d: %v", least, err)
	}
	update := agent.Update{}
	update.WindowLimit.Set, update.WindowLimit.Value = true, new(512)
	if _, err := s.agents.Update(t.Context(), s.org, s.agent.ID, update); err == nil {
		t.Error("an agent's window was changed to 512")
	}
}

// What a view shows is bounded by the window, and says how to read on, until all is read.
func TestViewsAreBoundedByTheWindow(t *testing.T) {
	t.Parallel()
	const window = 4_096
	s := newSmall(t, window)
	var lines []string
	for i := range 1_000 {
		lines = append(lines, fmt.Sprintf("line %d of a long text", i+1))
	}
	text := strings.Join(lines, "\\n")
	s.run(t, "memory", `{"command":"create","path":"/memories/long.md","file_text":"`+text+`"}`)
	s.run(t, "memory", `{"command":"create","path":"/memories/line.md","file_text":"`+strings.Repeat("x", 9_000)+`"}`)
	blocks := s.agents.Blocks
	b, err := blocks.Create(t.Context(), s.org, block.OperatorAuthor, block.New{Label: "long",
		Value: strings.Join(lines, "\n")})
	if err == nil {
		err = blocks.Attach(t.Context(), s.org, s.agent.ID, b.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/memories/long.md", "long"} {
		next, calls := 1, 0
		for next > 0 {
			got := s.run(t, "memory", fmt.Sprintf(`{"command":"view","path":"%s","view_range":[%d,-1]}`, path, next))
			if n := utf8.RuneCountInString(got.Text); got.IsError || n > window ||
				!strings.Contains(got.Text, fmt.Sprintf("\tline %d of a long text", next)) {
				t.Fatalf("%s from line %d: %d characters: %.200s", path, next, n, got.Text)
			}
			from := next
			if _, rest, ok := strings.Cut(got.Text, "view_range=["); !ok {
				next = 0
			} else if _, err := fmt.Sscanf(rest, "%d", &next); err != nil || next <= from {
				t.Fatalf("%s: after line %d go on at %d: %v", path, from, next, err)
			}
			calls++
		}
		if calls < 5 {
			t.Errorf("%s was read in %d calls", path, calls)
		}
	}
	got := s.run(t, "memory", `{"command":"view","path":"/memories/line.md"}`)
	if n := utf8.RuneCountInString(got.Text); n > window || !strings.Contains(got.Text, "the line has 9000 characters") {
		t.Errorf("a long line: %d characters: %.200s", n, got.Text)
	}
}

// What open_files says about where a view stops is what the prompt shows.
func TestOpenFilesNamesTheLineWhereThePromptStops(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 4_096)
	s.attach(t, "long.txt", strings.Repeat("a line of this long document\n", 400))
	s.attach(t, "other.txt", strings.Repeat("another line of a document\n", 400))
	compared := 0
	for _, call := range []string{`{"file_requests":["long.txt"]}`, `{"file_requests":["f/other.txt","long.txt"]}`,
		`{"file_requests":[{"file_name":"f/long.txt","line":101,"length":200}]}`,
		`{"file_requests":["long.txt"],"include_content":true}`} {
		got := s.run(t, "open_files", call)
		if n := utf8.RuneCountInString(got.Text); n > 4_096 {
			t.Errorf("%s: the result has %d characters", call, n)
		}
		if strings.Contains(call, "include_content") {
			continue // its result names where the result itself stops
		}
		p := s.prompt(t)
		for _, view := range strings.Split(p, `<file status=\"open\" name=\"`)[1:] {
			name, view, _ := strings.Cut(view, `\"`)
			view, _, _ = strings.Cut(view, "</file>")
			_, next, cut := strings.Cut(view, "NOTE: ")
			var line int
			for _, form := range []string{"To go on, open line %d", "Go on at line %d"} {
				if at := strings.Index(next, form[:len(form)-2]); at >= 0 {
					_, _ = fmt.Sscanf(next[at:], form, &line)
				}
			}
			if cut && strings.Contains(got.Text, name) {
				compared++
			}
			said := fmt.Sprintf("The view of %s stops before line %d.", name, line)
			var limit int
			if _, after, ok := strings.Cut(next, "cut at its limit of "); ok {
				_, _ = fmt.Sscanf(after, "%d", &limit)
			}
			if cut && !strings.Contains(view, fmt.Sprintf(`chars_limit=%d\n`, limit)) {
				t.Errorf("%s: the view is cut at %d characters: %s", call, limit, view)
			}
			if cut && strings.Contains(got.Text, name) && !strings.Contains(got.Text, said) {
				t.Errorf("%s: the prompt says %q, the result %q", call, next, got.Text)
			}
		}
	}
	if compared < 4 {
		t.Errorf("only %d views were cut", compared)
	}
}

// attach adds a file to a folder of the agent.
func (s small) attach(t *testing.T, name, content string) {
	t.Helper()
	folders, err := s.store.AgentFolders(t.Context(), s.org, files.Of(s.agent.ID), db.Page{Ascending: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(folders) == 0 {
		f, err := s.store.CreateFolder(t.Context(), s.org, files.NewFolder{Name: "f"})
		if err != nil {
			t.Fatal(err)
		}
		attachment := files.Attachment{AgentID: s.agent.ID, FolderID: f.ID, Limits: s.agent.Limits()}
		if err := s.store.Attach(t.Context(), s.org, attachment); err != nil {
			t.Fatal(err)
		}
		folders = append(folders, f)
	}
	lines := strings.Count(content, "\n")
	_, err = s.pool.Exec(t.Context(), `
		WITH added AS (
			INSERT INTO files (org, folder_key, name, original_name, media_type, size_bytes, sha256, generation, lines, chars)
			VALUES ($1, $2, $3, $3, 'text/plain', 0, '', 1, $4, $5) RETURNING key)
		INSERT INTO file_segments (file_key, generation, ordinal, org, first_line, lines, continues, text)
		SELECT key, 1, 0, $1, 1, $4, false, $6 FROM added`, s.org, folders[0].Key, name, lines, len(content), content)
	if err != nil {
		t.Fatal(err)
	}
}

// An argument that a tool does not take is named, whatever else comes of the call.
func TestArgumentsThatAToolDoesNotTakeAreNamed(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 8_192)
	for _, tl := range s.tools.Tools() {
		got := s.run(t, tl.Name, `{"command":"view","flavour":"sweet"}`)
		if !strings.Contains(got.Text, "flavour") {
			t.Errorf("%s: %q does not name the argument flavour", tl.Name, got.Text)
		}
	}
	for name, args := range map[string]string{"query_log": `{"types":["message"],"colour":"red"}`,
		"expand": `{"id":"seq 1-2","colour":"red"}`} {
		if got := s.run(t, name, args); !strings.Contains(got.Text, "colour was not used: "+name+" takes ") {
			t.Errorf("%s %s: %q", name, args, got.Text)
		}
	}
}

// No text of a tool has Go's form of a value, repeats a long argument, or tells a model to do what it cannot.
func TestErrorsAreWrittenForAModel(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 8_192)
	long := strings.Repeat("zebra ", 800)
	s.run(t, "memory", `{"command":"insert","path":"human","insert_text":"a\nb\na"}`)
	for _, c := range [][2]string{
		{"memory", `{}`}, {"memory", `{"command":""}`}, {"memory", `{"command":"` + long + `"}`},
		{"memory", `{"command":"view","path":"human","view_range":[9,1]}`},
		{"memory", `{"command":"view","path":"` + long + `"}`},
		{"memory", `{"command":"create","path":"` + strings.Repeat("x", 4_000) + `","file_text":"x"}`},
		{"memory", `{"command":"str_replace","path":"human","old_string":"` + long + `","new_string":"x"}`},
		{"memory", `{"command":"str_replace","path":"human","old_string":"a","new_string":"x"}`},
		{"memory", `{"command":"rename","old_path":"human","new_path":"` + long + `"}`},
		{"memory_files", `{"command":"str_replace","path":"/memories/x.md","old_str":"` + long + `","new_str":"x"}`},
		{"memory_files", `{"command":"view","path":"/memories/` + long + `"}`},
		{"memory_replace", `{"label":"` + long + `","old_string":"x","new_string":"y"}`},
		{"core_memory_replace", `{"label":"human","old_content":"` + long + `","new_content":"y"}`},
		{"core_memory_append", `{"label":"human","content":"` + strings.Repeat(long, 30) + `"}`},
		{"memory_apply_patch", `{"label":"human","patch":"-` + long + `"}`},
		{"update_working_memory", `{"changes":[{"field":"` + long + `","text":"x"}]}`},
		{"update_working_memory", `{"changes":[{"field":"next","text":{"a":[1,{"b":2}]}}]}`},
		{"update_working_memory", `{"changes":[{"field":"decisions","action":"remove","text":"` + long + `"}]}`},
		{"expand", `{"id":"` + long + `"}`}, {"expand", `{"id":{"a":1}}`},
		{"expand", `{"id":"seq 1-2","pattern":"(` + long + `"}`},
		{"query_log", `{"seq":"` + long + `"}`}, {"query_log", `{"type":"` + long + `"}`},
		{"query_log", `{"jq":"` + long + `"}`}, {"query_result", `{"id":"` + long + `","jq":"."}`},
		{"conversation_search", `{"query":"x","roles":"` + long + `"}`},
		{"conversation_search", `{"query":"x","start_date":"` + long + `"}`},
		{"archival_memory_search", `{"query":"x","tag_match_mode":"` + long + `"}`},
		{"archival_memory_update", `{"id":"` + long + `","content":"x"}`},
		{"search_memory", `{"query":"x","kinds":["` + long + `"]}`},
		{"ask_session", `{"session":"` + long + `","question":"x"}`},
	} {
		got := s.run(t, c[0], c[1])
		for _, bad := range []string{"map[", "%!", "[9 1]", "[1 3]", "''", "raise the limit", strings.Repeat("zebra ", 60),
			strings.Repeat("x", 300), "json:", "tool."} {
			if strings.Contains(got.Text, bad) {
				t.Errorf("%s %.100s: %.700q has %.40q", c[0], c[1], got.Text, bad)
			}
		}
	}
}

// A wrong command is explained before its arguments, and a usual one of another tool names the one that is meant.
func TestAWrongCommandNamesTheRightOne(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 8_192)
	for args, want := range map[string]string{
		`{"command":"update","label":"human","new_value":"x"}`: "There is no command 'update'; the commands are view, " +
			"create, str_replace, insert, delete and rename; you may mean str_replace.",
		`{"command":"append","path":"human","text":"x"}`: "you may mean insert.",
		`{"command":"frobnicate"}`:                       "delete and rename. Nothing was done.",
		`{"path":"human","what":"x"}`:                    "The argument command is missing",
	} {
		if got := s.run(t, "memory", args); !got.IsError || !strings.Contains(got.Text, want) {
			t.Errorf("%s: %q, want %q in it", args, got.Text, want)
		}
	}
}

// A search in a small window lists every hit that was asked for: its texts get shorter, down to a line each.
func TestSearchesInASmallWindowListEveryHit(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 4_096)
	for i := range 20 {
		s.run(t, "archival_memory_insert", fmt.Sprintf(`{"content":"fact %d: %s the zebra walks %[2]s"}`, i,
			strings.Repeat("in the morning ", 60)))
	}
	for _, c := range []struct {
		name, args string
		want       int
	}{
		{"search_memory", `{"query":"zebra"}`, 10}, {"search_memory", `{"query":"zebra","limit":3}`, 3},
		{"search_memory", `{"query":"zebra","limit":20}`, 20}, {"archival_memory_search", `{"query":"zebra","top_k":20}`, 20},
	} {
		got := s.run(t, c.name, c.args).Text
		if n := strings.Count(got, "=== "); n != c.want || utf8.RuneCountInString(got) > 4_096 ||
			c.want <= 10 && strings.Count(got, "the zebra walks") != c.want || strings.Contains(got, "did not fit") {
			t.Errorf("%s %s: %d hits in %d characters: %s", c.name, c.args, n, utf8.RuneCountInString(got), got)
		}
	}
}

// In a small window no result takes more than a quarter of it, whatever it shows and however much the call asks for. It
// says how to go on, or to ask for less.
func TestNoResultTakesMoreThanItsShareOfTheWindow(t *testing.T) {
	t.Parallel()
	const window = 4_096
	s := newSmall(t, window)
	var rows []string
	for i := range 3_000 {
		rows = append(rows, fmt.Sprintf("zebra row %d", i))
	}
	s.attach(t, "rows.txt", strings.Join(rows, "\n")+"\n")
	s.say(t, recall.DefaultConversation, draft(recall.User, "2024-03-01T00:00:00Z", recall.Part{Type: recall.Text,
		Text: strings.Join(rows, "\n")}))
	for i := range 60 {
		s.say(t, recall.DefaultConversation, draft(recall.User, "2024-03-01T00:00:00Z", recall.Part{Type: recall.Text,
			Text: fmt.Sprintf("%d: the zebra of row %d walks and walks and walks in the morning", i, i)}))
		s.run(t, "archival_memory_insert", fmt.Sprintf(`{"content":"the zebra number %d %s"}`, i,
			strings.Repeat("walks ", 30)))
	}
	for _, c := range []struct{ name, args, more string }{
		{"expand", `{"seq":"1-100"}`, "To read on, call: expand("},
		{"expand", `{"id":"seq 1-100","limit":48000}`, "To read on, call: expand("},
		{"expand", `{"id":"seq 1-100","pattern":"row","limit":48000}`, "To see more lines, call: expand("},
		{"search_memory", `{"query":"zebra","limit":50}`, "did not fit here"},
		{"conversation_search", `{"query":"zebra","limit":50}`, "offset="},
		{"archival_memory_search", `{"query":"zebra","top_k":50}`, "did not fit here"},
		{"grep_files", `{"pattern":"zebra","context_lines":20}`, "offset="},
		{"query_log", `{"limit":500}`, "To see more entries, call: query_log("},
		{"list_files", `{}`, ""},
	} {
		got := s.run(t, c.name, c.args)
		if n := utf8.RuneCountInString(got.Text); got.IsError || n > window+300 || !strings.Contains(got.Text, c.more) {
			t.Errorf("%s %s: %d characters (error %t), want at most %d, with %q: …%.400s", c.name, c.args, n, got.IsError,
				window, c.more, got.Text[max(len(got.Text)-400, 0):])
		}
	}
}
