package server_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// factState is what an answer says about the time in which a passage or a memory file is valid.
type factState struct {
	ID           string
	Text         string
	Content      string
	ValidFrom    *time.Time `json:"valid_from"`
	ValidUntil   *time.Time `json:"valid_until"`
	SupersededBy *string    `json:"superseded_by"`
	Ended        bool
}

// factsOf returns the texts that each route for finding passages shows, by route. The routes get some parameters.
func (c *client) factsOf(agent, query, body string) map[string][]string {
	c.t.Helper()
	base := "/v1/agents/" + agent
	found := map[string][]string{}
	add := func(route string, facts ...factState) {
		texts := []string{}
		for _, f := range facts {
			texts = append(texts, f.Text+f.Content)
		}
		slices.Sort(texts)
		found[route] = texts
	}
	decode := func(text string, v any) {
		if err := json.Unmarshal([]byte(text), v); err != nil {
			c.t.Fatalf("%v: %s", err, text)
		}
	}
	var list []factState
	decode(c.must("GET", base+"/archival-memory?"+query, ""), &list)
	add("list", list...)
	var results struct{ Results []factState }
	decode(c.must("GET", base+"/archival-memory/search?query=Ada+lives&"+query, ""), &results)
	add("search", results.Results...)
	var hits []struct{ Passage factState }
	decode(c.must("POST", "/v1/passages/search", `{"query":"Ada lives","agent_id":"`+agent+`"`+body+`}`), &hits)
	var passages []factState
	for _, h := range hits {
		passages = append(passages, h.Passage)
	}
	add("search of the organization", passages...)
	var all struct{ Hits []factState }
	decode(c.must("GET", base+"/memory-search?query=Ada+lives&kinds=passage&"+query, ""), &all)
	add("search of all memories", all.Hits...)
	return found
}

// expectFacts checks that each route shows some texts, sorted.
func (c *client) expectFacts(agent, query, body string, want ...string) {
	c.t.Helper()
	for route, got := range c.factsOf(agent, query, body) {
		if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
			c.t.Errorf("%s with %s (-want +got):\n%s", route, query, diff)
		}
	}
}

func (c *client) passage(method, target, body string) (f factState) {
	c.t.Helper()
	text := c.must(method, target, body)
	if err := json.Unmarshal([]byte(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")), &f); err != nil {
		c.t.Fatalf("%v: %s", err, text)
	}
	return f
}

// A fact that has ended, or has not begun, is shown only if the request asks for it.
func TestEndedPassagesAreShownOnRequest(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"Ada","timezone":"Asia/Tokyo"}`)
	base := "/v1/agents/" + agent + "/archival-memory"
	oslo := c.passage("POST", base, `{"text":"Ada lives in Oslo","valid_from":"2020-01-01","valid_until":"2021-12-31"}`)
	rome := c.passage("POST", base, `{"text":"Ada lives in Rome","valid_from":"2022-01-01T00:00","supersedes":"`+
		oslo.ID+`"}`)
	c.passage("POST", base, `{"text":"Ada lives on Mars","valid_from":"2999-01-01T00:00:00Z"}`)
	if want := "2021-12-31T15:00:00Z"; oslo.ValidUntil.Format(time.RFC3339) != want ||
		rome.ValidFrom.Format(time.RFC3339) != want {
		t.Errorf("in the agent's timezone: until %v, from %v, want %s", oslo.ValidUntil, rome.ValidFrom, want)
	}
	c.expectFacts(agent, "", "", "Ada lives in Rome")
	c.expectFacts(agent, "as_of=2021-06-01", `,"as_of":"2021-06-01"`, "Ada lives in Oslo")
	c.expectFacts(agent, "as_of=2019-06-01", `,"as_of":"2019-06-01"`)
	c.expectFacts(agent, "as_of=2999-06-01", `,"as_of":"2999-06-01"`, "Ada lives in Rome", "Ada lives on Mars")
	c.expectFacts(agent, "ended=true", `,"ended":true`, "Ada lives in Oslo", "Ada lives in Rome", "Ada lives on Mars")

	var list []factState
	if err := json.Unmarshal([]byte(c.must("GET", base+"?ended=true", "")), &list); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(f factState) bool { return f.ID == oslo.ID })
	if was := list[i]; !was.Ended || was.SupersededBy == nil || *was.SupersededBy != rome.ID {
		t.Errorf("the old one: %+v", was)
	}
	if got := c.must("GET", "/v1/agents/"+agent+"/context", ""); !strings.Contains(got, "1 passages are stored") {
		t.Errorf("the prompt counts others than what holds: %s", got)
	}
	shown := c.tool(agent, "archival_memory_search", `{"query":"Ada lives","as_of":"2021-06-01"}`)
	contains(t, "the tool's hit", shown, "ended 2022-01-01 00:00 JST", "superseded by "+rome.ID, "Oslo")
	if current := c.tool(agent, "archival_memory_search", `{"query":"Ada lives"}`); strings.Contains(current, "Oslo") {
		t.Errorf("the tool shows what ended:\n%s", current)
	}
}

// A PATCH ends a passage, or makes it valid again. An invalid change is refused, and the error names the field.
func TestValidityOfPassagesIsChanged(t *testing.T) {
	t.Parallel()
	c := newClient(t).keyed()
	agent := c.made("/v1/agents", `{"name":"Ada"}`)
	base := "/v1/agents/" + agent + "/archival-memory"
	a := c.passage("POST", base, `{"text":"Ada lives in Oslo"}`)
	b := c.passage("POST", base, `{"text":"Ada lives in Rome"}`)
	if got := c.passage("PATCH", base+"/"+a.ID, `{"valid_until":"2024-05-01T12:00:00+02:00"}`); !got.Ended ||
		got.ValidUntil.Format(time.RFC3339) != "2024-05-01T10:00:00Z" {
		t.Errorf("ended: %+v", got)
	}
	c.expectFacts(agent, "", "", "Ada lives in Rome")
	if got := c.passage("PATCH", base+"/"+a.ID, `{"valid_until":null}`); got.Ended || got.ValidUntil != nil {
		t.Errorf("holds again: %+v", got)
	}
	if got := c.passage("PATCH", base+"/"+a.ID, `{"superseded_by":"`+b.ID+`"}`); !got.Ended || *got.SupersededBy != b.ID {
		t.Errorf("superseded: %+v", got)
	}
	again := c.call("POST", base, `{"text":"Ada lives in Bergen","supersedes":"`+a.ID+`"}`)
	if again.Code != 409 || !strings.Contains(again.Text, `"current":{`) || !strings.Contains(again.Text, b.ID) {
		t.Errorf("superseded twice: got %d %s", again.Code, again.Text)
	}
	other := c.as("other")
	stranger := other.made("/v1/agents", `{"name":"Eve"}`)
	for _, w := range []struct{ name, method, target, body, field string }{
		{"no time", "POST", base, `{"text":"x","valid_until":"soon"}`, "valid_until"},
		{"an empty time", "POST", base, `{"text":"x","valid_from":""}`, "valid_from"},
		{"an unknown zone", "POST", base, `{"text":"x","valid_until":"2024-05-01T12:00:00 Mars/Olympus"}`, "valid_until"},
		{"no such day", "POST", base, `{"text":"x","valid_from":"2024-02-30"}`, "valid_from"},
		{"an end before the beginning", "POST", base, `{"text":"x","valid_from":"2024-05-02","valid_until":"2024-05-01"}`,
			"valid_until"},
		{"no end of what is superseded", "PATCH", base + "/" + a.ID, `{"valid_until":null}`, "valid_until"},
		{"a loop", "PATCH", base + "/" + b.ID, `{"superseded_by":"` + a.ID + `"}`, "superseded_by"},
		{"a passage of nothing", "POST", base, `{"text":"x","supersedes":"passage-1"}`, "supersedes"},
		{"no moment", "GET", base + "?as_of=then", "", "query.as_of"},
		{"no moment of a search", "GET", base + "/search?query=x&as_of=then", "", "query.as_of"},
		{"no moment of all", "POST", "/v1/passages/search", `{"as_of":"then"}`, "body.as_of"},
		{"a moment and everything", "GET", base + "?as_of=2024-05-01&ended=true", "", "query.ended"},
		{"no moment of memory", "GET", "/v1/agents/" + agent + "/memory-search?query=x&as_of=then", "", "query.as_of"},
	} {
		if got := c.call(w.method, w.target, w.body); got.Code != 422 || !strings.Contains(got.Text, w.field) {
			t.Errorf("%s: got %d %s, want a 422 of %s", w.name, got.Code, got.Text, w.field)
		}
	}
	if got := other.call("POST", "/v1/agents/"+stranger+"/archival-memory", `{"text":"x","supersedes":"`+b.ID+
		`"}`); got.Code != 422 || !strings.Contains(got.Text, "supersedes") {
		t.Errorf("another organization's passage: got %d %s", got.Code, got.Text)
	}
	if got := other.must("GET", "/v1/agents/"+stranger+"/archival-memory?ended=true", ""); got != "[]" {
		t.Errorf("a refused insert stored %s", got)
	}
	c.expectFacts(agent, "", "", "Ada lives in Rome")
	if got := c.passage("PATCH", base+"/"+a.ID, `{"superseded_by":null,"valid_until":null}`); got.Ended ||
		got.SupersededBy != nil {
		t.Errorf("no longer superseded: %+v", got)
	}
}

// An agent's tools end facts that are no longer valid.
func TestToolsSupersedePassages(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"Ada","timezone":"UTC"}`)
	id := func(text string) string { return regexp.MustCompile(`passage-[0-9a-f-]{36}`).FindString(text) }
	oslo := id(c.tool(agent, "archival_memory_insert", `{"content":"Ada lives in Oslo"}`))
	said := c.tool(agent, "archival_memory_insert", fmt.Sprintf(`{"content":"Ada lives in Rome","supersedes":%q,
		"valid_until":"2999-12-30"}`, oslo))
	contains(t, "the insert", said, "supersedes "+oslo)
	c.expectFacts(agent, "", "", "Ada lives in Rome")
	contains(t, "the hit", c.tool(agent, "archival_memory_search", `{"query":"Ada"}`), "until 2999-12-31 00:00 UTC")
	run := fields(t, c.must("POST", "/v1/agents/"+agent+"/tools/archival_memory_insert/run",
		fmt.Sprintf(`{"args":{"content":"Ada lives in Bonn","supersedes":%q}}`, oslo)))
	if run["status"] != "error" || !strings.Contains(fmt.Sprint(run["func_return"]), "superseded by "+id(said)) {
		t.Errorf("superseded twice: %v", run)
	}
	tram := id(c.tool(agent, "archival_memory_insert", `{"content":"Ada lives near the tram"}`))
	contains(t, "an end", c.tool(agent, "archival_memory_update", fmt.Sprintf(`{"id":%q,"valid_until":"2024-05-01"}`,
		tram)), "ended 2024-05-02 00:00 UTC")
	c.expectFacts(agent, "", "", "Ada lives in Rome")
}

// An agent's full file carries the times in which passages are valid, and what superseded them.
func TestValidityIsCarriedByFullFiles(t *testing.T) {
	t.Parallel()
	c, other := newClient(t), newElsewhereClient(t)
	agent := c.made("/v1/agents", `{"name":"Ada"}`)
	base := "/v1/agents/" + agent + "/archival-memory"
	a := c.passage("POST", base, `{"text":"Ada lives in Oslo","valid_from":"2020-01-01"}`)
	b := c.passage("POST", base, `{"text":"Ada lives in Rome","supersedes":"`+a.ID+`"}`)
	file := c.must("GET", "/v1/agents/"+agent+"/export?full=true", "")
	for range 2 { // the second import gives new ids
		ids, _ := other.imported(file)
		all := "/v1/agents/" + ids[0] + "/archival-memory?ended=true&search="
		old, new := other.passage("GET", all+url.QueryEscape("Oslo"), ""), other.passage("GET", all+"Rome", "")
		if !old.Ended || old.SupersededBy == nil || *old.SupersededBy != new.ID || !old.ValidUntil.Equal(*new.ValidFrom) ||
			!new.ValidFrom.Equal(*b.ValidFrom) || old.ValidFrom.Year() != 2020 {
			t.Errorf("imported: %+v and %+v", old, new)
		}
	}
	before := other.tables()
	loop := strings.Replace(file, `"valid_until":null,"superseded_by":null`,
		`"valid_until":"2999-01-01T00:00:00Z","superseded_by":"`+a.ID+`"`, 1)
	endless := regexp.MustCompile(`"valid_until":"[^"]*"`).ReplaceAllString(file, `"valid_until":null`)
	for name, broken := range map[string]string{"a loop": loop, "no end": endless} {
		if got := other.importing(broken); broken == file || got.Code != 400 || !strings.Contains(got.Text, "superseded") {
			t.Errorf("%s: got %d %s", name, got.Code, got.Text)
		}
	}
	if diff := cmp.Diff(before, other.tables()); diff != "" {
		t.Errorf("a refused import wrote rows:\n%s", diff)
	}
}

// If a supersession is undone, the end that it set is removed, too. An end that the fact itself had stays.
func TestASupersessionIsUndone(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	passages := "/v1/agents/" + agent + "/archival-memory"
	add := func(body string) string {
		var added []factState
		c.unmarshal(c.must("POST", passages, body), &added)
		return added[0].ID
	}
	for name, validUntil := range map[string]string{"brought": "", "own": `,"valid_until":"2020-01-02T00:00:00Z"`} {
		old := add(fmt.Sprintf(`{"text":"Boss is Ann, %s"%s}`, name, validUntil))
		add(fmt.Sprintf(`{"text":"Boss is Bob, %s","supersedes":%q}`, name, old))
		var after factState
		c.unmarshal(c.must("PATCH", passages+"/"+old, `{"superseded_by":null}`), &after)
		if after.SupersededBy != nil || (after.ValidUntil != nil) != (validUntil != "") || after.Ended != (validUntil != "") {
			t.Errorf("%s: got %+v", name, after)
		}
	}
	tree := c.made("/v1/memory-trees", `{"name":"t"}`)
	file := "/v1/memory-trees/" + tree + "/file"
	c.must("PUT", file, `{"path":"/memories/old.md","content":"Ann"}`)
	c.must("PUT", file, `{"path":"/memories/new.md","content":"Bob","supersedes":"/memories/old.md"}`)
	var undone factState
	c.unmarshal(c.must("PATCH", file, `{"path":"/memories/old.md","superseded_by":null}`), &undone)
	if undone.SupersededBy != nil || undone.ValidUntil != nil || undone.Ended {
		t.Errorf("the memory file: got %+v", undone)
	}
}
