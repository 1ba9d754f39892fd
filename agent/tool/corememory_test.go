package tool_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/embed/rank"
	"github.com/loci-memory/loci/memory/block"
)

var (
	passageIDs = regexp.MustCompile(`passage-[0-9a-f-]{36}`)
	moments    = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d UTC`)
)

// transcript runs tools one after the other, and writes down what a model reads.
func (w world) transcript(t *testing.T, calls ...[2]string) string {
	t.Helper()
	var b strings.Builder
	for _, c := range calls {
		got, err := w.tools.Run(t.Context(), tool.Caller{Org: w.org, Agent: w.agent}, c[0], json.RawMessage(c[1]))
		if err != nil {
			t.Fatalf("%s %s: %v", c[0], c[1], err)
		}
		fmt.Fprintf(&b, "> %s %s\n", c[0], c[1])
		if got.IsError {
			b.WriteString("(error) ")
		}
		b.WriteString(got.Text + "\n\n")
	}
	text := passageIDs.ReplaceAllString(b.String(), "passage-#")
	return strings.TrimSuffix(moments.ReplaceAllString(text, "TIME"), "\n\n")
}

func TestToolsOfBlocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	blocks := &block.Store{DB: w.pool}
	for _, n := range []block.New{{Label: "human", Value: "Name: Ada\n\tLikes: tea", Limit: 60},
		{Label: "rules", Value: "Be kind.", ReadOnly: true}} {
		b, err := blocks.Create(t.Context(), w.org, block.OperatorAuthor, n)
		if err == nil {
			err = blocks.Attach(t.Context(), w.org, w.agent.ID, b.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	checkGolden(t, "blocks", w.transcript(t,
		[2]string{"core_memory_append", `{"label":"human","content":"12→ }{ <b>"}`},
		[2]string{"core_memory_replace", `{"label":"human","old_content":"tea","new_content":"coffee"}`},
		[2]string{"memory_replace", `{"label":"human","old_string":"\tLikes: coffee","new_string":"\tLikes: water"}`},
		[2]string{"memory_insert", `{"label":"human","new_string":"Born: 1815","insert_line":1}`},
		[2]string{"memory_rethink", `{"label":"plans/today","new_memory":"Rest."}`},
		[2]string{"memory_apply_patch", `{"label":"human","patch":"-Name: Ada\n+Name: Ada L."}`},
		[2]string{"memory_apply_patch",
			`{"label":"","patch":"*** Update Block: plans/today\n*** Move to: plans/week\n-Rest.\n+Work.\n` +
				`*** Add Block: ideas\n+One"}`},
		[2]string{"memory", `{"command":"create","path":"a/b","file_text":"deep","description":"nested"}`},
		[2]string{"memory", `{"command":"str_replace","path":"a/b","old_string":"deep","new_string":""}`},
		[2]string{"memory", `{"command":"insert","path":"/memories/a/b","insert_text":"line"}`},
		[2]string{"memory", `{"command":"rename","old_path":"a/b","new_path":"c"}`},
		[2]string{"memory", `{"command":"rename","path":"c","description":"what it is for"}`},
		[2]string{"memory", `{"command":"delete","path":"c"}`},
		// Mistakes, and what to do about them.
		[2]string{"memory", `{"command":"move"}`},
		[2]string{"memory", `{"command":"insert","path":"ideas"}`},
		[2]string{"memory", `{"command":"delete","path":"rules"}`},
		[2]string{"memory", `{"command":"rename","old_path":"rules","new_path":"none"}`},
		[2]string{"memory", `{"command":"create","path":"ideas"}`},
		[2]string{"memory_rethink", `{"label":"rules","new_memory":"Be rude."}`},
		[2]string{"memory_insert", `{"label":"nobody","new_string":"x"}`},
		[2]string{"memory_insert", `{"label":"human","new_string":"x","insert_line":99}`},
		[2]string{"memory_replace", `{"label":"human","old_string":"zebra","new_string":"x"}`},
		[2]string{"memory_replace", `{"label":"human","old_string":"a","new_string":"x"}`},
		[2]string{"core_memory_append",
			`{"label":"human","content":"this is far too long to be kept in a block of sixty characters"}`},
		[2]string{"core_memory_append", `{"label":"human"}`},
		[2]string{"memory_apply_patch", `{"label":"human","patch":"no change"}`},
	))
}

// A call that lacks the new text deletes nothing: only an empty text deletes.
func TestACallThatLacksANewTextDeletesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := func(name, args string) error {
		got, err := w.tools.Run(t.Context(), tool.Caller{Org: w.org, Agent: w.agent}, name, json.RawMessage(args))
		if got.IsError {
			return errors.New(got.Text)
		}
		return err
	}
	for _, c := range [][2]string{{"memory_rethink", `{"label":"kept","new_memory":"precious text"}`},
		{"memory_files", `{"command":"create","path":"/memories/kept.md","file_text":"precious text"}`}} {
		if err := run(c[0], c[1]); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range [][2]string{
		{"memory_rethink", `{"label":"kept"NEW}`},
		{"core_memory_replace", `{"label":"kept","old_content":"precious"NEW}`},
		{"memory_replace", `{"label":"kept","old_string":"precious"NEW}`},
		{"memory", `{"command":"str_replace","path":"kept","old_string":"precious"NEW}`},
		{"memory_files", `{"command":"str_replace","path":"/memories/kept.md","old_str":"precious"NEW}`},
	} {
		field := map[string]string{"memory_rethink": "new_memory", "core_memory_replace": "new_content",
			"memory_files": "new_str"}[c[0]]
		if field == "" {
			field = "new_string"
		}
		for _, absent := range []string{"", `,"` + field + `":null`} {
			err := run(c[0], strings.Replace(c[1], "NEW", absent, 1))
			if err == nil || !strings.Contains(err.Error(), "needs the argument "+field) {
				t.Errorf("%s without %s: %v", c[0], field, err)
			}
		}
		if err := run(c[0], strings.Replace(c[1], "NEW", `,"`+field+`":""`, 1)); err != nil {
			t.Errorf("%s with an empty %s: %v", c[0], field, err)
		}
		if c[0] != "memory_files" {
			if err := run("memory_rethink", `{"label":"kept","new_memory":"precious text"}`); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A command refuses arguments that it does not take, so a call that asks for two things does neither. Empty arguments
// count as absent.
func TestACommandRefusesTheArgumentsOfOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := func(name, args string) string { return w.run(t, name, args).Text }
	run("memory_rethink", `{"label":"kept","new_memory":"precious text"}`)
	run("memory_files", `{"command":"create","path":"/memories/kept.md","file_text":"precious text"}`)
	for _, c := range []struct{ args, says string }{
		{`{"command":"delete","path":"/memories/kept.md","old_path":"/memories/other.md"}`,
			"does not take old_path; it takes path"},
		{`{"command":"delete","path":"/memories/kept.md","file_text":"keep this"}`, "does not take file_text"},
		{`{"command":"view","path":"/memories","insert_line":3,"new_path":"/memories/x"}`,
			"does not take insert_line, new_path"},
		{`{"command":"insert","path":"/memories/kept.md","insert_line":0,"insert_text":"a","valid_until":"2030-01-01"}`,
			"does not take valid_until"},
	} {
		if got := run("memory_files", c.args); !strings.Contains(got, c.says) {
			t.Errorf("%s: %s", c.args, got)
		}
	}
	if got := run("memory", `{"command":"delete","path":"kept","new_string":"keep this"}`); !strings.Contains(got,
		"does not take new_string; it takes path") {
		t.Error(got)
	}
	for _, c := range [][2]string{
		{"memory", `{"command":"rename","old_path":"kept","new_path":"renamed","old_string":"","insert_line":0}`},
		{"memory_files", `{"command":"view","path":"/memories/kept.md","file_text":"","view_range":[],"old_path":null}`},
	} {
		if got := run(c[0], c[1]); strings.Contains(got, "does not take") {
			t.Errorf("%s: %s", c[0], got)
		}
	}
	if got := run("memory_files", `{"command":"view","path":"/memories/kept.md"}`); !strings.Contains(got,
		"1\tprecious text") || strings.Contains(got, "2\t") {
		t.Errorf("the file is now %q", got)
	}
}

// If a long text contains a passage twice, the result names it once. For an unknown id, the error says where ids are
// found.
func TestPassagesAreNamedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := func(name, args string) string { return w.run(t, name, args).Text }
	got := run("archival_memory_insert", `{"content":"`+strings.Repeat("x", 60_000)+`"}`)
	seen := map[string]bool{}
	for _, id := range passageIDs.FindAllString(got, -1) {
		if seen[id] {
			t.Errorf("%s is named twice: %s", id, got)
		}
		seen[id] = true
	}
	if !strings.Contains(got, fmt.Sprintf("as %d passages", len(seen))) || len(seen) < 2 {
		t.Errorf("%d passages: %s", len(seen), got)
	}
	const unknown = `{"id":"passage-123e4567-e89b-42d3-8456-426614174000"`
	for name, rest := range map[string]string{"archival_memory_update": `,"content":"x"}`, "archival_memory_delete": `}`} {
		if got := run(name, unknown+rest); !strings.Contains(got, "shows the ids of passages") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A label may look like a path. A command only ever changes the block that it names.
func TestALabelThatLooksLikeAPathIsItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	blocks := &block.Store{DB: w.pool}
	for _, n := range []block.New{{Label: "/memories/foo", Value: "an operator's"}, {Label: "foo", Value: "short"}} {
		b, err := blocks.Create(t.Context(), w.org, block.OperatorAuthor, n)
		if err == nil {
			err = blocks.Attach(t.Context(), w.org, w.agent.ID, b.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	results := w.transcript(t,
		[2]string{"memory", `{"command":"delete","path":"/memories/foo"}`},
		[2]string{"memory_rethink", `{"label":"/memories/foo","new_memory":"the short one"}`},
		[2]string{"memory_rethink", `{"label":"/memories/new","new_memory":"made"}`},
		[2]string{"memory", `{"command":"delete","path":"/memories/new"}`})
	all, err := blocks.OfAgent(t.Context(), w.org, w.agent.ID)
	if err != nil || len(all) != 1 || all[0].Label != "foo" || all[0].Value != "the short one" {
		t.Errorf("the blocks are %+v, %v, after\n%s", all, err, results)
	}
}

func TestToolsOfArchivalMemory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.transcript(t, [2]string{"archival_memory_insert",
		`{"content":"Ada's flight leaves at 9.","tags":["travel","ada"]}`})
	got, err := w.tools.Run(t.Context(), tool.Caller{Org: w.org, Agent: w.agent},
		"archival_memory_search", json.RawMessage(`{"query":"flight"}`))
	if err != nil {
		t.Fatal(err)
	}
	id := passageIDs.FindString(got.Text)
	checkGolden(t, "archival", first+"\n\n"+w.transcript(t,
		[2]string{"archival_memory_insert", `{"content":"Ada's flight leaves at 9."}`},
		[2]string{"archival_memory_insert", `{"content":"Bob likes\ntea.","tags":"bob"}`},
		[2]string{"archival_memory_search", `{"query":"when does the flight leave"}`},
		[2]string{"archival_memory_search", `{"query":"likes tea","tags":["bob","none"],"tag_match_mode":"any"}`},
		[2]string{"archival_memory_search", `{"query":"likes tea","tags":["bob","none"],"tag_match_mode":"all"}`},
		[2]string{"archival_memory_search", `{"query":"flight","end_datetime":"2001-01-01"}`},
		[2]string{"archival_memory_update", `{"id":"` + id + `","content":"Ada's flight leaves at 10."}`},
		[2]string{"archival_memory_search", `{"query":"","top_k":2}`},
		[2]string{"archival_memory_delete", `{"id":"` + id + `"}`},
		[2]string{"archival_memory_delete", `{"id":"` + id + `"}`},
		[2]string{"archival_memory_search", `{"query":"zebra"}`},
		[2]string{"archival_memory_search", `{"query":"tea","offset":50}`},
		[2]string{"archival_memory_search", `{"query":"","tags":"none"}`},
		// Mistakes, and what to do about them.
		[2]string{"archival_memory_insert", `{}`},
		[2]string{"archival_memory_update", `{"id":"passage-1"}`},
		[2]string{"archival_memory_search", `{"query":"x","top_k":0}`},
		[2]string{"archival_memory_search", `{"query":"x","tag_match_mode":"some"}`},
		[2]string{"archival_memory_search", `{"query":"x","start_datetime":"soon"}`},
	))
}

// The result of a search says by what it was ranked.
func TestPassagesText(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	hit := archival.Hit{Passage: archival.Passage{ID: "passage-1", Text: "The velo is locked behind the library.",
		Tags:       []string{"bike"},
		HappenedAt: noon.Add(-time.Hour)}, Score: 0.75, MeaningRank: 1}
	var b strings.Builder
	for _, c := range []struct {
		name  string
		found archival.Results
	}{
		{"by words and by meaning", archival.Results{Hits: []archival.Hit{hit}, ByMeaning: true}},
		{"without an endpoint", archival.Results{Hits: []archival.Hit{hit}}},
		{"while the endpoint is down", archival.Results{Hits: []archival.Hit{hit},
			Remarks: rank.Remarks{Note: "The embeddings endpoint did not answer, so this was ranked by words alone."}}},
		{"the last of those that are ranked", archival.Results{Hits: []archival.Hit{hit}, ByMeaning: true,
			Remarks: rank.Remarks{Cut: true}}},
		{"nothing, for a query of stop words", archival.Results{Remarks: rank.Remarks{Wordless: true}}},
		{"nothing, in an archive that is empty", archival.Results{ByMeaning: true}},
		{"nothing, without an endpoint", archival.Results{}},
	} {
		got, err := tool.PassagesText(`{"query": "where is my bicycle"}`, c.found, noon)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("# " + c.name + "\n" + got + "\n\n")
	}
	checkGolden(t, "archival_ranked", strings.TrimSpace(b.String()))
}

// Text that was copied from a view, with the numbers of its lines, is found without them.
func TestLineNumbersOfAViewAreLeftOut(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 8_192)
	s.agent.Settings.Tools = nil
	s.run(t, "memory", `{"command":"insert","path":"human","insert_text":"tea\ncake\nbread\ntea"}`)
	s.run(t, "memory", `{"command":"create","path":"/memories/n.md","file_text":"tea\ncake\nbread\ntea"}`)
	edited := 0
	for _, c := range []struct{ call, want string }{
		{`"old":"     2\tcake","new":"pie"`, "2\tpie\n"},
		{`"old":"2\tpie\n     3\tbread","new":"2\tscone\n3\tbun"`, "2\tscone\n     3\tbun"},
		{`"old":"one\n     3\tbun","new":"ones\nbuns"`, "2\tscones\n     3\tbuns"},
		{`"old":"1\ttea","new":"x"`, "error"},
		{`"old":"     7\tcoffee","new":"x"`, "error It begins with line numbers, which only the view has: leave them out."},
	} {
		for tl, form := range map[string]string{
			"memory":              `{"command":"str_replace","path":"human","old_string":%[1]s,"new_string":%[2]s}`,
			"memory_files":        `{"command":"str_replace","path":"/memories/n.md","old_str":%[1]s,"new_str":%[2]s}`,
			"memory_replace":      `{"label":"persona","old_string":%[1]s,"new_string":%[2]s}`,
			"core_memory_replace": `{"label":"persona","old_content":%[1]s,"new_content":%[2]s}`,
		} {
			if strings.Contains(form, "persona") {
				s.run(t, "memory_rethink", `{"label":"persona","new_memory":""}`)
				s.run(t, "memory_rethink", `{"label":"persona","new_memory":"`+map[int]string{0: `tea\ncake\nbread\ntea`,
					1: `tea\npie\nbread\ntea`, 2: `tea\nscone\nbun\ntea`}[min(edited, 2)]+`"}`)
			}
			old, text, _ := strings.Cut(strings.TrimPrefix(c.call, `"old":`), `,"new":`)
			got := s.run(t, tl, fmt.Sprintf(form, old, text))
			want, isError := strings.CutPrefix(c.want, "error")
			if isError && tl == "core_memory_replace" && want == "" {
				continue // it replaces every occurrence
			}
			if got.IsError != isError || !strings.Contains(got.Text, strings.TrimSpace(want)) {
				t.Errorf("%s %s: %q (error %t), want %q", tl, c.call, got.Text, got.IsError, c.want)
			}
		}
		edited++
	}
}

// Blocks and files keep their line ends, whatever those of the text are that a tool adds, and get no empty lines.
func TestMemoriesKeepTheirLineEnds(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 8_192)
	s.agent.Settings.Tools = nil
	for _, end := range []string{`\n`, `\r\n`} {
		other := map[string]string{`\n`: `\r\n`, `\r\n`: `\n`}[end]
		for tl, form := range map[string]string{
			"core_memory_append":  `{"label":"%s","content":"x%[2]sy%[2]s"}`,
			"core_memory_replace": `{"label":"%s","old_content":"a%[2]sb","new_content":"x%[2]sy"}`,
			"memory_insert":       `{"label":"%s","new_string":"x%[2]sy%[2]s"}`,
			"memory_replace":      `{"label":"%s","old_string":"a%[2]sb","new_string":"x%[2]sy"}`,
			"memory_rethink":      `{"label":"%s","new_memory":"x%[2]sy%[2]sz"}`,
			"memory_apply_patch":  `{"label":"%s","patch":"-a%[2]s+x%[2]s+y%[2]s"}`,
			"memory":              `{"command":"insert","path":"%s","insert_text":"x%[2]sy%[2]s","insert_line":1}`,
		} {
			label := "b_" + tl
			s.run(t, "memory_rethink", `{"label":"`+label+`","new_memory":""}`)
			s.run(t, "memory_rethink", `{"label":"`+label+`","new_memory":"a`+end+`b`+end+`"}`)
			if got := s.run(t, tl, fmt.Sprintf(form, label, other)); got.IsError {
				t.Errorf("%s with %s into %s: %s", tl, other, end, got.Text)
			}
			blocks, err := s.agents.Blocks.OfAgent(t.Context(), s.org, s.agent.ID)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range blocks {
				crlf, all := strings.Count(b.Value, "\r\n"), strings.Count(b.Value, "\n")
				if want := map[string]int{`\n`: 0, `\r\n`: all}[end]; b.Label == label &&
					(crlf != want || !strings.Contains(b.Value, "x") || strings.Contains(strings.ReplaceAll(b.Value, "\r", ""),
						"\n\n")) {
					t.Errorf("%s with %s into %s: %q", tl, other, end, b.Value)
				}
			}
			s.run(t, "memory", `{"command":"delete","path":"`+label+`"}`)
		}
		path := "/memories/n" + strings.ReplaceAll(end, `\`, "") + ".md"
		s.run(t, "memory_files", `{"command":"create","path":"`+path+`","file_text":"a`+end+`b`+end+`"}`)
		s.run(t, "memory_files", `{"command":"insert","path":"`+path+`","insert_text":"x`+other+`y`+other+`"}`)
		s.run(t, "memory_files", `{"command":"overwrite","version":2,"path":"`+path+`","file_text":"q`+other+`r`+other+`"}`)
		tree, err := s.agents.MemoryFiles.OfAgent(t.Context(), s.org, s.agent.ID)
		if err != nil {
			t.Fatal(err)
		}
		f, err := s.agents.MemoryFiles.File(t.Context(), s.org, tree.ID, path)
		want := strings.NewReplacer(`\r`, "\r", `\n`, "\n").Replace("q" + end + "r" + end)
		if err != nil || f.Content != want {
			t.Errorf("a file with %s: %q, %v, want %q", end, f.Content, err, want)
		}
	}
}
