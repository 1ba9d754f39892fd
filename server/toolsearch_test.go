package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/server/rest"
)

// foundTool is a tool that a search found.
type foundTool struct {
	Tool        struct{ Name string }
	Text        string  `json:"embedded_text"`
	Score       float64 `json:"combined_score"`
	WordsRank   *int    `json:"fts_rank"`
	MeaningRank *int    `json:"vector_rank"`
}

func (c *client) searchTools(body string) (found []foundTool, names []string) {
	c.t.Helper()
	if err := json.Unmarshal([]byte(c.must("POST", "/v1/tools/search", body)), &found); err != nil {
		c.t.Fatal(err)
	}
	for _, f := range found {
		names = append(names, f.Tool.Name)
	}
	return found, names
}

// Built-in and custom tools can be found by words and, if there is an endpoint for vectors, by meaning.
func TestToolsAreSearched(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	for name, about := range map[string]string{"weather": "Tells the rain and the sun of a place",
		"ship": "Sends a parcel"} {
		c.made("/v1/tools", fmt.Sprintf(`{"tags":["t-%s"],"json_schema":{"name":%q,"description":%q,
			"parameters":{"type":"object","properties":{}}}}`, name, name, about))
	}
	found, names := c.searchTools(`{"query":"rain"}`)
	if !slices.Equal(names, []string{"weather"}) || found[0].WordsRank == nil || *found[0].WordsRank != 1 ||
		found[0].MeaningRank != nil || found[0].Score <= 0 || found[0].Text == "" {
		t.Errorf("by words: %+v", found)
	}
	explained := c.must("POST", "/v1/tools/search?explain=true", `{"query":"a place with rain"}`)
	for _, part := range []string{`"explain":{"terms":["place","rain"],"words":1`, `"search":{"terms":[{"term":"`,
		`"arms":[{"arm":"words","rows":`} {
		if !strings.Contains(explained, part) {
			t.Errorf("explained without %s: %s", part, explained)
		}
	}
	if _, names := c.searchTools(`{"query":"search the archival memory"}`); len(names) == 0 ||
		names[0] != "archival_memory_search" {
		t.Errorf("built-in tools: %q", names)
	}
	for body, want := range map[string]int{
		`{"tool_types":["custom"]}`: 2, `{"tags":["t-ship"],"query":null}`: 1, `{"limit":3}`: 3,
		`{"query":"rain","tool_types":["letta_core"]}`: 0, `{"query":"zzz"}`: 0} {
		if found, _ := c.searchTools(body); len(found) != want {
			t.Errorf("%s: found %d, want %d", body, len(found), want)
		}
	}
	for body, want := range map[string]int{
		`{"query":"rain","search_mode":"vector"}`: 400, `{"query":"` + strings.Repeat("rain ", 6_401) + `"}`: 400,
		`{"limit":0}`: 422, `{"search_mode":"best"}`: 422, `{"tool_types":["x"]}`: 400} {
		if got := c.call("POST", "/v1/tools/search", body); got.Code != want {
			t.Errorf("%s: got %d %s, want %d", body, got.Code, got.Text, want)
		}
	}
	fake := embedtest.New(t, 512)
	fake.Same = map[string]string{"drizzle": "rain"}
	c.own().Endpoint = fake.Endpoint(t)
	fake.Use(t, c.pool, c.server.Endpoint)
	for _, mode := range []string{"vector", "hybrid"} {
		found, names := c.searchTools(`{"query":"drizzle","search_mode":"` + mode + `","limit":1}`)
		if !slices.Equal(names, []string{"weather"}) || found[0].MeaningRank == nil || *found[0].MeaningRank != 1 {
			t.Errorf("by meaning (%s): %+v", mode, found)
		}
	}
	before := fake.Requests.Load()
	_, byWords := c.searchTools(`{"query":"drizzle","search_mode":"fts"}`)
	if len(byWords) > 0 || fake.Requests.Load() > before {
		t.Errorf("by words alone: %q", byWords)
	}
	fake.Down.Store(true)
	if _, names := c.searchTools(`{"query":"rain"}`); !slices.Equal(names, []string{"weather"}) {
		t.Errorf("while the endpoint is down: %q", names)
	}
	got := c.call("POST", "/v1/tools/search", `{"query":"rain","search_mode":"vector"}`)
	if warned := got.Header().Get(rest.WarningsHeader); !strings.Contains(warned, "ranked by words alone") {
		t.Errorf("while the endpoint is down, a search by meaning warns of %q", warned)
	}
	if _, names := c.as("other").searchTools(`{"query":"rain"}`); len(names) > 0 {
		t.Errorf("another organization: %q", names)
	}
}
