package server_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// Searches accept the calendar's last day as an end, and its first day as a start.
func TestSearchesTakeTheEndsOfTheCalendar(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := remembering(c)
	for _, span := range [][2]string{{"0001-01-01T00:00:00+14:00", "9999-12-31"},
		{"0001-01-01", "9999-12-31T23:59:59Z"}} {
		start, end := url.QueryEscape(span[0]), url.QueryEscape(span[1])
		body := fmt.Sprintf(`{"query":"zebra","start_date":%q,"end_date":%q}`, span[0], span[1])
		search := "GET /v1/agents/" + agent + "/archival-memory/search?query=zebra"
		for target, body := range map[string]string{
			search + "&start_datetime=" + start + "&end_datetime=" + end:          "",
			search + "&as_of=" + end:                                              "",
			"POST /v1/passages/search":                                            body,
			"POST /v1/messages/search":                                            body,
			"POST /v1/agents/messages/search":                                     body,
			"GET /v1/agents/" + agent + "/archival-memory?as_of=" + end:           "",
			"GET /v1/agents/" + agent + "/memory-search?query=zebra&as_of=" + end: "",
		} {
			method, path, _ := strings.Cut(target, " ")
			if got := c.call(method, path, body); got.Code != 200 || !strings.Contains(got.Text, "zebra") {
				t.Errorf("%s %s: got %d %s, want what is about the zebra", target, body, got.Code, got.Text)
			}
		}
		for name, args := range map[string]string{
			"archival_memory_search": fmt.Sprintf(`{"query":"zebra","start_datetime":%q,"end_datetime":%q}`, span[0], span[1]),
			"conversation_search":    fmt.Sprintf(`{"query":"zebra","start_date":%q,"end_date":%q}`, span[0], span[1]),
		} {
			if got := c.tool(agent, name, args); !strings.Contains(got, "zebra") || strings.Contains(got, "Invalid") {
				t.Errorf("%s %s: got %s", name, args, got)
			}
		}
	}
}

// A passage that is valid until the calendar's last day can be read again.
func TestPassagesMayHoldToTheEndOfTheCalendar(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"timezone":"Pacific/Kiritimati"}`)
	c.must("POST", "/v1/agents/"+agent+"/archival-memory",
		`{"text":"It holds for good.","valid_until":"9999-12-31","created_at":"9999-12-31T23:59:59-12:00"}`)
	got := c.must("GET", "/v1/agents/"+agent+"/archival-memory", "")
	for _, want := range []string{`"valid_until":"9999-12-30T23:59:59.999999Z"`,
		`"created_at":"9999-12-30T23:59:59.999999Z"`} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	got = c.must("GET", "/v1/agents/"+agent+"/archival-memory/search?query=holds", "")
	if !strings.Contains(got, "for good") {
		t.Errorf("got %s, want the passage", got)
	}
}

// An empty tag is a filter like any other, and nothing has it.
func TestAnEmptyTagOfASearchFindsNothing(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := remembering(c)
	c.must("POST", "/v1/agents/"+agent+"/archival-memory", `{"text":"The zebra has a tag.","tags":["x",""]}`)
	for _, tt := range []struct {
		tags, match string
		finds       bool
	}{{`[""]`, "any", false}, {`[""]`, "all", false}, {`["","x"]`, "any", true}, {`["x",""]`, "all", false},
		{`["x"]`, "all", true}, {`[]`, "all", true}} {
		asked := ""
		for tag := range strings.SplitSeq(strings.Trim(tt.tags, "[]"), ",") {
			if tag != "" {
				asked += "&tags=" + strings.Trim(tag, `"`)
			}
		}
		body := fmt.Sprintf(`{"query":"zebra","tags":%s,"tag_match_mode":%q}`, tt.tags, tt.match)
		for search, got := range map[string]string{
			"a listing": c.must("POST", "/v1/passages/search",
				fmt.Sprintf(`{"tags":%s,"tag_match_mode":%q}`, tt.tags, tt.match)),
			"a search": c.must("POST", "/v1/passages/search", body),
			"a search of an agent": c.must("GET", "/v1/agents/"+agent+"/archival-memory/search?query=zebra&tag_match_mode="+
				tt.match+asked, ""),
			"the tool": c.tool(agent, "archival_memory_search", body),
		} {
			if strings.Contains(got, "The zebra has a tag.") != tt.finds {
				t.Errorf("%s of the tags %s, %s of them: got %s", search, tt.tags, tt.match, got)
			}
		}
	}
}

// If a search names an agent and an archive, it searches only the archive, which must be attached to the agent.
func TestASearchOfAnAgentAndAnArchiveIsOfThatArchive(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "")
	archives := map[string]string{}
	for _, name := range []string{"first", "second", "foreign"} {
		archives[name] = c.made("/v1/archives", fmt.Sprintf(`{"name":%q}`, name))
		c.must("POST", "/v1/archives/"+archives[name]+"/passages", fmt.Sprintf(`{"text":"The zebra of the %s."}`, name))
		if name != "foreign" {
			c.must("PATCH", "/v1/agents/"+agent+"/archives/attach/"+archives[name], "")
		}
	}
	for _, query := range []string{`,"query":"zebra"`, ""} {
		got := c.must("POST", "/v1/passages/search", fmt.Sprintf(`{"agent_id":%q,"archive_id":%q%s}`, agent,
			archives["second"], query))
		if !strings.Contains(got, "of the second") || strings.Contains(got, "of the first") {
			t.Errorf("the second archive: got %s", got)
		}
		for _, archive := range []string{archives["foreign"], "archive-00000000-0000-4000-8000-000000000000"} {
			body := fmt.Sprintf(`{"agent_id":%q,"archive_id":%q%s}`, agent, archive, query)
			if got := c.call("POST", "/v1/passages/search", body); got.Code != 404 {
				t.Errorf("%s: got %d %s, want 404", body, got.Code, got.Text)
			}
		}
	}
}

// If a search starts after its end, the answer says why it finds nothing, with or without a query.
func TestSearchesSayThatTheyStartAfterTheirEnd(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := remembering(c)
	for _, query := range []string{"zebra", ""} {
		for span, says := range map[[2]string]bool{{"2026-02-01", "2026-01-31"}: true, {"2026-02-01", "2026-02-01"}: false,
			{"2026-02-01", ""}: false} {
			body := fmt.Sprintf(`{"query":%q,"start_date":%q,"end_date":%q}`, query, span[0], span[1])
			for _, r := range []searchRequest{
				{"GET", fmt.Sprintf("/v1/agents/%s/archival-memory/search?query=%s&start_datetime=%s&end_datetime=%s", agent,
					query, span[0], span[1]), ""},
				{"POST", "/v1/passages/search", body},
				{"POST", "/v1/messages/search", body},
				{"POST", "/v1/agents/messages/search", body},
			} {
				if said := c.told(r); strings.Contains(said, "which is after its end") != says {
					t.Errorf("%s %s %s: says %q", r.method, r.target, r.body, said)
				}
			}
		}
	}
	got := c.call("POST", "/v1/agents/"+agent+"/tools/archival_memory_search/run",
		`{"args":{"query":"zebra","start_datetime":"2026-02-01","end_datetime":"2026-01-31"}}`)
	if !strings.Contains(got.Text, "no passage can be between them") {
		t.Errorf("archival_memory_search: got %d %s", got.Code, got.Text)
	}
}
