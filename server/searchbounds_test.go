package server_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// Searches take the last day of the calendar as an end, and the first one as a start.
func TestSearchesTakeTheEndsOfTheCalendar(t *testing.T) {
	t.Parallel()
	c := newIdleClient(t)
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

// What is stored with the last day of the calendar is shown again.
func TestPassagesMayHoldToTheEndOfTheCalendar(t *testing.T) {
	t.Parallel()
	c := newIdleClient(t)
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
