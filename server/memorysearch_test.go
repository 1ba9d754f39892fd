package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/files"
	memoryfile "github.com/loci-memory/loci/memory/file"
	memorysearch "github.com/loci-memory/loci/memory/search"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server"
)

// remembering returns an agent with a text in each memory. Each text contains the word zebra.
func remembering(c *client) (agent string) {
	c.t.Helper()
	folder := c.made("/v1/folders", `{"name":"docs"}`)
	agent = c.made("/v1/agents", fmt.Sprintf(`{"name":"Ada","folder_ids":[%q],"memory_blocks":[{"label":"human",
		"value":"Likes tea.\nOwns a zebra."}],"tools":["search_memory","memory_files","expand","conversation_search",
		"archival_memory_search","open_files","update_working_memory"]}`, folder))
	if c.done != nil {
		c.uploaded(folder, "animals.md", strings.Repeat("A horse.\n", 30)+"The zebra has stripes.\n")
	}
	c.must("POST", "/v1/agents/"+agent+"/archival-memory", `{"text":"The zebra lives in Berlin."}`)
	c.capture(agent, `{"messages":[{"role":"user","content":"Feed the zebra at noon."},
		{"role":"assistant","content":"Noted."}]}`)
	for _, args := range []string{
		`{"command":"create","path":"/memories/zoo.md","file_text":"The zebra's vet is Dr. Stein.\n"}`,
		`{"command":"create","path":"/memories/MEMORY.md","file_text":"# Index\n- zebra: see /memories/zoo.md\n"}`,
	} {
		c.tool(agent, "memory_files", args)
	}
	c.tool(agent, "update_working_memory", `{"changes":[{"field":"task","text":"Move the zebra"}]}`)
	return agent
}

func (c *client) searchMemory(agent, query string) (found server.MemorySearch) {
	c.t.Helper()
	got := c.must("GET", "/v1/agents/"+agent+"/memory-search?"+query, "")
	if err := json.Unmarshal([]byte(got), &found); err != nil {
		c.t.Fatal(err)
	}
	return found
}

// Each hit names its place. The tool call and the path that it names both read on from there.
func TestOneSearchFindsWhatAllMemoriesHold(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := remembering(c)
	var kinds []memorysearch.Kind
	for _, h := range c.searchMemory(agent, "query=where+is+the+zebra").Hits {
		kinds = append(kinds, h.Kind)
		if strings.Contains(h.Text, "Noted.") { // the neighbour of a matching message also counts as a hit
			continue
		}
		if !strings.Contains(h.Text, "zebra") {
			t.Errorf("%s: got the text %q", h.Kind, h.Text)
		}
		if got := c.must("GET", h.Path, ""); !strings.Contains(got, "zebra") && h.Kind != memorysearch.File {
			t.Errorf("%s: GET %s shows %s", h.Kind, h.Path, got)
		}
		if h.Call == nil {
			if h.Kind != memorysearch.Block {
				t.Errorf("%s has no call", h.Kind)
			}
			continue
		}
		args, err := json.Marshal(h.Call.Arguments)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.tool(agent, h.Call.Tool, string(args)); !strings.Contains(got, "zebra") &&
			h.Kind != memorysearch.WorkingMemory && // its evidence is the newest message
			h.Kind != memorysearch.File { // an opened file is in the prompt
			t.Errorf("%s: %s %s shows %s", h.Kind, h.Call.Tool, args, got)
		}
	}
	slices.Sort(kinds)
	if want := slices.Sorted(slices.Values(memorysearch.Kinds)); !slices.Equal(slices.Compact(kinds), want) {
		t.Errorf("found %q, want %q", kinds, want)
	}
	got := c.tool(agent, "search_memory", `{"query":"zebra vet","kinds":["memory_file","block"],"limit":2}`)
	for _, want := range []string{"Found 2 places for query: 'zebra vet' in memory_file and block",
		"=== memory file /memories/zoo.md (lines 1-1)",
		`To read on, call: memory_files(command="view", path="/memories/zoo.md")`} {
		if !strings.Contains(got, want) {
			t.Errorf("the tool's result lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "Berlin") || strings.Contains(got, "noon") {
		t.Errorf("other kinds are shown:\n%s", got)
	}
}

func TestOneSearchRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := remembering(c)
	for _, query := range []string{"", "query=", "query=%20", "query=a&kinds=dreams", "query=a&limit=0",
		"query=a&limit=51"} {
		if got := c.call("GET", "/v1/agents/"+agent+"/memory-search?"+query, ""); got.Code != 422 && got.Code != 400 {
			t.Errorf("%q: got %d %s", query, got.Code, got.Text)
		}
	}
	if got := c.searchMemory(agent, "query=giraffe").Hits; len(got) != 0 {
		t.Errorf("a word that nothing has: got %v", got)
	}
	if got := c.searchMemory(agent, "query=zebra&kinds=message&kinds=passage&limit=1").Hits; len(got) != 1 ||
		got[0].Kind != memorysearch.Passage && got[0].Kind != memorysearch.Message {
		t.Errorf("one hit of two kinds: got %v", got)
	}
}

// No part of a search waits for a second connection. Otherwise all searches could wait for each other.
func TestOneSearchNeedsOneConnection(t *testing.T) {
	t.Parallel()
	pool, err := db.Connect(t.Context(), dbtest.SharedURL(t)+"&pool_max_conns=1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	c := serverClientOn(t, pool, dbtest.NewOrg(t, pool))
	if got := c.searchMemory(remembering(c), "query=zebra").Hits; len(got) < 5 {
		t.Errorf("got %d hits: %v", len(got), got)
	}
}

// A tool that is restricted to its conversation shows nothing of other conversations.
func TestOneSearchIsConfinedAsItsAgentIs(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := remembering(c)
	other := c.made("/v1/conversations?agent_id="+agent, `{}`)
	c.must("PATCH", "/v1/agents/"+agent, `{"recall_scope":"conversation"}`)
	const query = `{"args":{"query":"zebra","kinds":["message","working_memory"]},"conversation_id":%q}`
	run := "/v1/agents/" + agent + "/tools/search_memory/run"
	if got := c.must("POST", run, fmt.Sprintf(query, other)); strings.Contains(got, "noon") ||
		strings.Contains(got, "Move") {
		t.Errorf("from another conversation: got %s", got)
	}
	if got := c.must("POST", run, fmt.Sprintf(query, "default")); !strings.Contains(got, "Move") {
		t.Errorf("from its own: got %s", got)
	}
}

// If the near layers know the query's place, no vector is requested. Otherwise the search also ranks by meaning.
func TestVectorsAreAskedOnlyWhereNoNearLayerKnowsThePlace(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	fake := embedtest.New(t, 8)
	endpoint := fake.Endpoint(t)
	fake.Use(t, c.pool, endpoint)
	store, err := files.New(c.pool, files.Options{TempDir: t.TempDir(), Endpoint: endpoint})
	if err != nil {
		t.Fatal(err)
	}
	c.own().Recall = recall.New(c.pool, recall.Options{Endpoint: endpoint})
	agent := remembering(c)
	c.tool(agent, "memory_files", `{"command":"create","path":"/memories/a","file_text":"A park.\nBamboo.\n"}`)
	c.own().Tools = tool.New(tool.Memories{Files: store, Recall: c.server.Recall, Blocks: c.server.Blocks,
		Archival: c.server.Archival, Working: c.server.Working, MemoryFiles: c.server.MemoryFiles})
	for _, w := range []struct {
		query, known string
		asks         bool
	}{
		{"what+does+/memories/zoo.md+say", "/memories/zoo.md", false},
		{"zebra+vet+stein", "/memories/zoo.md", false},
		{"what+did+she+say+about+lunch", "", true},
		{"is+it+in+a+park+with+bamboozoo.md", "", true}, // another name that ends in zoo.md
		{"where+is+a+park", "", true},                   // a word that is not the file's name
	} {
		before := fake.Requests.Load()
		got := c.searchMemory(agent, "query="+w.query)
		if requested := fake.Requests.Load() > before; requested != w.asks || got.KnownPlace != w.known {
			t.Errorf("%s: vectors asked: %t, want %t; known %q, want %q", w.query, requested, w.asks, got.KnownPlace, w.known)
		}
	}
}

// A memory file that shares no word with the query is found by meaning, and the hit shows the matching part.
func TestOneSearchFindsMemoryFilesByTheirMeaning(t *testing.T) {
	t.Parallel()
	c := newDatabaseClient(t)
	fake := embedtest.New(t, 1024)
	fake.Same = map[string]string{"bicycle": "velo", "whereabouts": "locked"}
	endpoint := fake.Endpoint(t)
	fake.Use(t, c.pool, endpoint)
	trees := memoryfile.New(c.pool, memoryfile.Options{Endpoint: endpoint})
	c.own().MemoryFiles, c.own().Endpoint = trees, endpoint
	c.own().Tools = tool.New(tool.Memories{Files: c.server.Files, Recall: c.server.Recall, Blocks: c.server.Blocks,
		Archival: c.server.Archival, Working: c.server.Working, MemoryFiles: trees})
	agent := remembering(c)
	c.tool(agent, "memory_files", `{"command":"create","path":"/memories/town.md","file_text":"Velo locked: library.\n"}`)
	embedtest.Work(t, c.pool, trees.Queue(), trees.Queue().Queues())
	embedtest.Eventually(t, "no memory file waits", func() bool {
		n, err := db.One[int](t.Context(), c.pool, `SELECT count(*) FROM memory_files WHERE unembedded`)
		return n == 0 && err == nil
	})
	got := c.searchMemory(agent, "query=bicycle+whereabouts&kinds=memory_file")
	if got.Ranking != "words and meaning" || got.Note != "" || len(got.Hits) == 0 ||
		got.Hits[0].Place.Path != "/memories/town.md" || got.Hits[0].Text != "Velo locked: library." ||
		got.Hits[0].Place.FirstLine != 1 || got.Hits[0].Place.LastLine != 1 {
		t.Errorf("the route: got %+v", got)
	}
	text := c.tool(agent, "search_memory", `{"query":"bicycle whereabouts","limit":1}`)
	if !strings.Contains(text, "=== memory file /memories/town.md (lines 1-1)") {
		t.Errorf("the tool: got\n%s", text)
	}
	found := c.must("GET", "/v1/memory-trees/"+got.Hits[0].Place.TreeID+"/search?query=bicycle+whereabouts&limit=1", "")
	if !strings.Contains(found, "/memories/town.md") || !strings.Contains(found, `"meaning_rank":1`) {
		t.Errorf("the route of the tree: got %s", found)
	}
	for _, route := range []string{"/v1/agents/" + agent + "/memory-search?kinds=memory_file&",
		"/v1/memory-trees/" + got.Hits[0].Place.TreeID + "/search?"} {
		for parameters, found := range map[string]bool{"search_mode=fts": false, "search_mode=vector": true,
			"search_mode=hybrid": true, "search_mode=hybrid&weight=2": true} {
			answer := c.must("GET", route+"query=bicycle+whereabouts&limit=1&"+parameters, "")
			if strings.Contains(answer, "Velo locked") != found {
				t.Errorf("%s%s: got %s, found: want %t", route, parameters, answer, found)
			}
		}
	}
	near := c.searchMemory(agent, "query=bicycle&search_mode=vector&kinds=memory_file&kinds=block&kinds=working_memory")
	for _, h := range near.Hits {
		if h.Kind == memorysearch.Block || h.Kind == memorysearch.WorkingMemory {
			t.Errorf("by meaning: got %+v, which has no vector", h)
		}
	}
}

// All search routes accept the same modes. Without an embedding model, they refuse a search by meaning alone.
func TestAllSearchesHaveTheSameModes(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := remembering(c)
	folder, _ := fields(c.t, c.must("POST", "/v1/folders/", `{"name":"modes"}`))["id"].(string)
	all := append(searches(agent, c.treeOf(agent), "zebra", 0),
		searchRequest{"GET", "/v1/folders/" + folder + "/search?query=zebra", ""})
	for _, r := range all {
		for mode, found := range map[string]bool{"fts": true, "hybrid": true, "vector": false, "words": false} {
			request := r
			if r.method == "GET" {
				request.target += "&search_mode=" + mode
			} else {
				request.body = strings.TrimSuffix(r.body, "}") + `,"search_mode":"` + mode + `"}`
			}
			got := c.call(request.method, request.target, request.body)
			want := "zebra"
			if !found {
				want = "search_mode"
			} else if strings.HasPrefix(r.target, "/v1/folders") { // this folder has no files
				want = "[]"
			}
			if (got.Code == 200) != found || got.Code >= 500 || !strings.Contains(got.Text, want) {
				t.Errorf("%s %s %s: got %d %s, want %q", request.method, request.target, request.body, got.Code, got.Text, want)
			}
		}
		sign := "?"
		if strings.Contains(r.target, "?") {
			sign = "&"
		}
		for weight, want := range map[string]bool{"0.3": true, "3": false, "NaN": false} {
			got := c.call(r.method, r.target+sign+"weight="+weight, r.body)
			if (got.Code == 200) != want || got.Code >= 500 {
				t.Errorf("%s %s with the weight %s: got %d %s, found: want %t", r.method, r.target, weight, got.Code, got.Text,
					want)
			}
		}
	}
}

// Every search explains its ranking if the query asks for it, and only then.
func TestSearchesExplainTheirRanks(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := remembering(c)
	all := c.searchMemory(agent, "query=zebra&explain=true")
	for _, kind := range []memorysearch.Kind{memorysearch.MemoryFile, memorysearch.Passage, memorysearch.Message} {
		if e := all.Explanations[kind]; e == nil || len(e.Terms) == 0 || e.Terms[0].Term != "zebra" || len(e.Arms) == 0 {
			t.Errorf("%s: got %+v", kind, e)
		}
	}
	for _, h := range all.Hits {
		if h.Explanation == nil || h.Score <= 0 || h.Score > 1 {
			t.Errorf("%s: score %v, explained %+v", h.Kind, h.Score, h.Explanation)
		}
	}
	tree := ""
	for _, h := range all.Hits {
		tree += h.Place.TreeID
	}
	if plain := c.must("GET", "/v1/agents/"+agent+"/memory-search?query=zebra", ""); strings.Contains(plain, "explain") {
		t.Errorf("explained without being asked: %s", plain)
	}
	for _, search := range [][3]string{
		{"GET", "/v1/agents/" + agent + "/archival-memory/search?query=zebra", ""},
		{"GET", "/v1/memory-trees/" + tree[:len("tree-")+36] + "/search?query=zebra", ""},
		{"POST", "/v1/passages/search", `{"query":"zebra"}`},
		{"POST", "/v1/messages/search", `{"query":"zebra"}`},
		{"POST", "/v1/agents/messages/search", `{"query":"zebra"}`},
	} {
		path := search[1] + "?explain=true"
		if strings.Contains(search[1], "?") {
			path = search[1] + "&explain=true"
		}
		if got := c.must(search[0], path, search[2]); !strings.Contains(got, `"term":"zebra"`) {
			t.Errorf("%s %s is not explained: %s", search[0], path, got)
		}
		if got := c.must(search[0], search[1], search[2]); strings.Contains(got, `"explain"`) {
			t.Errorf("%s %s is explained without being asked: %s", search[0], search[1], got)
		}
	}
	for tool, note := range map[string]string{"archival_memory_search": "searched for 'zebra'",
		"conversation_search": "searched for 'zebra'", "search_memory": "searched for 'zebra'"} {
		if got := c.tool(agent, tool, `{"query":"zebar"}`); !strings.Contains(got, note) || !strings.Contains(got, "zebra ") {
			t.Errorf("%s does not say what it searched for: %s", tool, got)
		}
	}
	if found := c.searchMemory(agent, "query=stien"); found.SearchedFor != "stein" {
		t.Errorf("stien is searched as %q, want stein", found.SearchedFor)
	}
	got := c.must("POST", "/v1/messages/search", `{"query":"zebar"}`)
	if !strings.Contains(got, `"searched_for":"zebra"`) {
		t.Errorf("messages: %s", got)
	}
}

// On each page, only the first result explains the ranking, so no earlier page has to be read.
func TestTheFirstResultOfEachPageExplainsTheSearch(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := remembering(c)
	for i := range 60 {
		c.must("POST", "/v1/agents/"+agent+"/archival-memory", fmt.Sprintf(`{"text":"harbour log %d"}`, i))
	}
	var messages []string
	for i := range 60 {
		messages = append(messages, fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":"harbour log %d"}],
			"reasoning_content":"harbour thought %[1]d"}`, i))
	}
	c.capture(agent, `{"messages":[`+strings.Join(messages, ",")+`]}`)
	for _, offset := range []int{0, 1, 10, 50} {
		for _, r := range searches(agent, "none", "harbour", offset) {
			if strings.Contains(r.target, "memory-") && !strings.Contains(r.target, "archival-memory") {
				continue // these have one page
			}
			separator := "?"
			if strings.Contains(r.target, "?") {
				separator = "&"
			}
			got := c.must(r.method, r.target+separator+"explain=true", r.body)
			first, rest, _ := strings.Cut(got, `"search":{`)
			if strings.Count(first, `"explain":{`) != 1 || rest == "" || strings.Contains(rest, `"search":{`) {
				t.Errorf("%s %s %s: %d results before the one that explains the search, which %d do", r.method, r.target,
					r.body, strings.Count(first, `"explain":{`)-1, strings.Count(got, `"search":{`))
			}
		}
	}
}
