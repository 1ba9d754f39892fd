package server_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/loci-memory/loci/embed/rank"
	memorysearch "github.com/loci-memory/loci/memory/search"
	"github.com/loci-memory/loci/server/rest"
)

// searchRequest is a search of one of the routes.
type searchRequest struct{ method, target, body string }

// searches returns the same search on all routes that search agents' memories. If offset is 0, it is left out.
func searches(agent, tree, query string, offset int) (all []searchRequest) {
	inQuery, inBody := "", ""
	if offset > 0 {
		inQuery, inBody = fmt.Sprint("&offset=", offset), fmt.Sprint(`,"offset":`, offset)
	}
	asked := "?query=" + url.QueryEscape(query)
	body := fmt.Sprintf(`{"query":%q,"limit":100%s}`, query, inBody)
	all = []searchRequest{
		{"GET", "/v1/agents/" + agent + "/archival-memory/search" + asked + "&top_k=100" + inQuery, ""},
		{"POST", "/v1/passages/search", body},
		{"POST", "/v1/messages/search", body},
		{"POST", "/v1/agents/messages/search", body},
	}
	if offset == 0 {
		all = append(all, searchRequest{"GET", "/v1/agents/" + agent + "/memory-search" + asked, ""},
			searchRequest{"GET", "/v1/memory-trees/" + tree + "/search" + asked, ""})
	}
	return all
}

// told returns the warnings and notes of an answer.
func (c *client) told(r searchRequest) string {
	c.t.Helper()
	got := c.call(r.method, r.target, r.body)
	if got.Code != 200 {
		c.t.Fatalf("%s %s: got %d %s", r.method, r.target, got.Code, got.Text)
	}
	said := got.Header().Get(rest.WarningsHeader)
	for _, field := range []string{`"warnings":`, `"note":`} {
		if _, after, ok := strings.Cut(got.Text, field); ok {
			said += after
		}
	}
	return said
}

// treeOf returns the id of an agent's tree of memory files.
func (c *client) treeOf(agent string) string {
	c.t.Helper()
	id, _ := fields(c.t, c.must("GET", "/v1/agents/"+agent+"/memory-tree", ""))["id"].(string)
	return id
}

// A search ranks at most 200 rows by words. If there may be more, the last page says so, and no other page does.
func TestTheLastPageSaysThatOnlyTheBestAreRanked(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := remembering(c)
	var texts, messages []string
	for i := range 210 {
		texts = append(texts, fmt.Sprintf(`{"text":"harbour log %d"}`, i))
		messages = append(messages, fmt.Sprintf(`{"role":"user","content":"harbour log %d"}`, i))
	}
	archives := c.list("/v1/archives?agent_id=" + agent)
	archive, _ := archives[0]["id"].(string)
	c.must("POST", "/v1/archives/"+archive+"/passages/batch", `{"passages":[`+strings.Join(texts, ",")+`]}`)
	c.capture(agent, `{"messages":[`+strings.Join(messages, ",")+`]}`)
	const remark = "Only the best are ranked"
	for _, tt := range []struct {
		query  string
		offset int
		says   bool
	}{{"harbour", 0, false}, {"harbour", 50, false}, {"harbour", 150, true}, {"harbour", 210, true},
		{"zebra", 0, false}, {"zebra", 10, false}} {
		for _, r := range searches(agent, c.treeOf(agent), tt.query, tt.offset) {
			if said := c.told(r); strings.Contains(said, remark) != tt.says {
				t.Errorf("%s %s %s: says %q", r.method, r.target, r.body, said)
			}
		}
		for _, name := range []string{"archival_memory_search", "conversation_search"} {
			limit := "limit"
			if name == "archival_memory_search" {
				limit = "top_k"
			}
			got := c.tool(agent, name, fmt.Sprintf(`{"query":%q,%q:100,"offset":%d}`, tt.query, limit, tt.offset))
			if strings.Contains(got, remark) != tt.says {
				t.Errorf("%s %q from %d on: %s", name, tt.query, tt.offset, got[max(0, len(got)-500):])
			}
		}
	}
}

// A query with only stop words finds nothing. All searches explain this in the same words.
func TestSearchesSayThatAQueryHasOnlyStopWords(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := remembering(c)
	tree := c.treeOf(agent)
	for query, says := range map[string]bool{"what is it that we do": true, "?!": true, "zebra": false,
		"giraffe": false} {
		for _, r := range searches(agent, tree, query, 0) {
			if said := c.told(r); strings.Contains(said, rank.WordlessRemark) != says {
				t.Errorf("%s %s %s: says %q", r.method, r.target, r.body, said)
			}
		}
		for _, name := range []string{"archival_memory_search", "conversation_search", "search_memory",
			"semantic_search_files"} {
			got := c.tool(agent, name, fmt.Sprintf(`{"query":%q}`, query))
			if strings.HasPrefix(got, rank.WordlessRemark) != says {
				t.Errorf("%s %q: %s", name, query, got)
			}
		}
	}
}

// In each search, a query may have at most rank.MaxQueryChars characters. A query of exactly that length is answered.
func TestQueriesAreBounded(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := remembering(c)
	tree := c.treeOf(agent)
	longest := strings.Repeat("é", rank.MaxQueryChars)
	refusal := "query has 32001 characters; a search takes at most 32000"
	for _, r := range searches(agent, tree, longest, 0) {
		c.must(r.method, r.target, r.body)
	}
	for _, r := range searches(agent, tree, longest+"e", 0) {
		if got := c.call(r.method, r.target, r.body); got.Code != 422 && got.Code != 400 ||
			!strings.Contains(got.Text, refusal) {
			t.Errorf("%s %.60s: got %d %s", r.method, r.target, got.Code, got.Text)
		}
	}
	for _, name := range []string{"archival_memory_search", "conversation_search", "search_memory",
		"semantic_search_files"} {
		got := c.call("POST", "/v1/agents/"+agent+"/tools/"+name+"/run", fmt.Sprintf(`{"args":{"query":%q}}`, longest+"e"))
		if !strings.Contains(got.Text, refusal) || !strings.Contains(got.Text, `"error"`) {
			t.Errorf("%s: got %.300s", name, got.Text)
		}
	}
}

// A text with a NUL is refused in a query string, as in a body.
func TestAQueryStringWithANULIsRefused(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := remembering(c)
	for _, target := range []string{"/v1/agents/" + agent + "/memory-search?query=zebra%00",
		"/v1/agents/" + agent + "/archival-memory/search?query=zebra%00",
		"/v1/agents/" + agent + "/archival-memory/search?query=zebra&tags=a&tags=%00",
		"/v1/memory-trees/" + c.treeOf(agent) + "/search?query=%FF", "/v1/agents?name=a%00"} {
		if got := c.call("GET", target, ""); got.Code != 422 || !strings.Contains(got.Text, "the text has a NUL") {
			t.Errorf("%s: got %d %s", target, got.Code, got.Text)
		}
	}
}

// Without an endpoint for vectors, a search by meaning is refused, and never silently ranked by words.
func TestASearchByMeaningNeedsAnEndpoint(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	for _, route := range []string{"/v1/messages/search", "/v1/agents/messages/search", "/v1/tools/search"} {
		got := c.call("POST", route, `{"query":"rain","search_mode":"vector"}`)
		if got.Code != 400 || !strings.Contains(got.Text, "there is no embedding model") {
			t.Errorf("%s: got %d %s", route, got.Code, got.Text)
		}
		c.must("POST", route, `{"query":"rain","search_mode":"hybrid"}`)
	}
}

// A query with a misspelt word finds the block and the entry in working memory that contain the word, even if no other
// memory does.
func TestAMisspeltWordFindsABlock(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"Ada","tools":["search_memory","update_working_memory"],
		"memory_blocks":[{"label":"plans","value":"The budget of the offsite is 900 euros."}]}`)
	c.must("POST", "/v1/agents/"+agent+"/archival-memory", `{"text":"The offsite is in Oslo."}`)
	c.capture(agent, `{"messages":[{"role":"user","content":"Hello."},{"role":"assistant","content":"Hi."}]}`)
	c.tool(agent, "update_working_memory", `{"changes":[{"field":"task","text":"Review invoices"}]}`)
	for _, tt := range []struct {
		query, spelling string
		kind            memorysearch.Kind
	}{
		{"budgte+offsite", "budget offsite", memorysearch.Block},
		{"budgte", "budget", memorysearch.Block},
		{"invoces", "invoices", memorysearch.WorkingMemory},
		{"budget", "", memorysearch.Block},
	} {
		got := c.searchMemory(agent, "query="+tt.query)
		found := map[memorysearch.Kind]bool{}
		for _, h := range got.Hits {
			found[h.Kind] = true
		}
		if got.SearchedFor != tt.spelling || !found[tt.kind] {
			t.Errorf("%s: searched for %q and found %v; want %q and a %s", tt.query, got.SearchedFor, got.Hits, tt.spelling,
				tt.kind)
		}
	}
	if got := c.tool(agent, "search_memory", `{"query":"budgte"}`); !strings.Contains(got, "searched for 'budget'") ||
		!strings.Contains(got, "900 euros") {
		t.Errorf("the tool: %s", got)
	}
	c.must("POST", "/v1/agents/"+agent+"/archival-memory", `{"text":"Budgte is how Tom writes it."}`)
	if got := c.searchMemory(agent, "query=budgte"); got.SearchedFor != "" || len(got.Hits) != 1 ||
		got.Hits[0].Kind != memorysearch.Passage {
		t.Errorf("where a passage has the word as it is written: searched for %q and found %v", got.SearchedFor, got.Hits)
	}
}
