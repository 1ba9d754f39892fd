package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
)

// inOrder returns the ids of a list in the list's order.
func (c *client) inOrder(path string) []string {
	c.t.Helper()
	var list []struct{ ID string }
	if err := json.Unmarshal([]byte(c.must("GET", path, "")), &list); err != nil {
		c.t.Fatal(err)
	}
	ids := []string{}
	for _, item := range list {
		ids = append(ids, item.ID)
	}
	return ids
}

// An agent shows how its newest run ended. Lists can be sorted and filtered by that time, whole or page by page.
func TestAgentsTellOfTheirLastRun(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	first, idle := r.agent, r.made("/v1/agents", `{"name":"idle"}`)
	second := r.made("/v1/agents", `{"name":"second"}`)
	alsoIdle := r.made("/v1/agents", `{"name":"idle too"}`)
	if got := fields(t, r.must("GET", "/v1/agents/"+first, "")); got["last_run_completion"] != nil ||
		got["last_run_duration_ms"] != nil || got["last_stop_reason"] != nil {
		t.Errorf("before a run: got %v", got)
	}
	for _, agent := range []string{second, first} {
		r.model.Says(modeltest.Answer{Text: "Well."})
		r.must("POST", "/v1/agents/"+agent+"/messages", hello)
	}
	r.model.Says(modeltest.Answer{Calls: []modeltest.Call{noteCall()}})
	run := fields(t, r.must("POST", r.path(), `{"input":"Note it","max_steps":1}`))["run_id"]
	var last struct {
		Completion string `json:"last_run_completion"`
		Duration   int64  `json:"last_run_duration_ms"`
		StopReason string `json:"last_stop_reason"`
	}
	if err := json.Unmarshal([]byte(r.must("GET", "/v1/agents/"+first, "")), &last); err != nil {
		t.Fatal(err)
	}
	shown := fields(t, r.must("GET", fmt.Sprint("/v1/runs/", run), ""))
	if last.Completion != shown["completed_at"] || last.StopReason != "max_steps" ||
		last.Duration < 0 || last.Duration != int64(shown["total_duration_ns"].(float64)/1e6+0.5) {
		t.Errorf("got %+v of the run %v", last, shown)
	}
	byRun := "/v1/agents?order_by=last_run_completion"
	for query, want := range map[string][]string{
		"":                                              {first, second, alsoIdle, idle},
		"&order=asc":                                    {idle, alsoIdle, second, first},
		"&last_stop_reason=max_steps":                   {first},
		"&last_stop_reason=end_turn":                    {second},
		"&last_stop_reason=error":                       {},
		"&limit=1&after=" + first:                       {second},
		"&limit=2&after=" + second:                      {alsoIdle, idle},
		"&limit=1&after=" + alsoIdle:                    {idle},
		"&limit=2&before=" + idle:                       {second, alsoIdle},
		"&limit=2&order=asc&after=" + idle:              {alsoIdle, second},
		"&ascending=true":                               {idle, alsoIdle, second, first},
		"&order=asc&after=" + idle + "&before=" + first: {alsoIdle, second},
	} {
		if got := r.inOrder(byRun + query); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", query, got, want)
		}
	}
	for reason, want := range map[string]string{"max_steps": "1", "cancelled": "0", "": "4"} {
		if got := r.must("GET", "/v1/agents/count?last_stop_reason="+reason, ""); strings.TrimSpace(got) != want {
			t.Errorf("agents that stopped for %s: got %s, want %s", reason, got, want)
		}
	}
}

// Conversations are sorted by their newest runs if the caller asks for it.
func TestConversationsAreOrderedByTheirLastRun(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	var made []string
	for range 4 {
		made = append(made, r.made("/v1/conversations?agent_id="+r.agent, ""))
	}
	for _, i := range []int{2, 1} {
		r.model.Says(modeltest.Answer{Text: "Well."})
		r.must("POST", "/v1/conversations/"+made[i]+"/messages", `{"input":"Hello","streaming":false}`)
	}
	r.captured(r.agent, made[0], `{"messages":[{"role":"user","content":"Later"}]}`)
	list := "/v1/conversations?agent_id=" + r.agent + "&order_by="
	for query, want := range map[string][]int{
		"last_run_completion":                          {1, 2, 3, 0},
		"last_run_completion&limit=2&after=" + made[2]: {3, 0},
		"last_run_completion&order=asc&limit=3":        {0, 3, 2, 1},
		"last_message_at&limit=2":                      {0, 1},
	} {
		var ids []string
		for _, i := range want {
			ids = append(ids, made[i])
		}
		if strings.HasSuffix(query, "limit=3") {
			ids = ids[:3]
		}
		if got := r.inOrder(list + query); !slices.Equal(got, ids) {
			t.Errorf("%s: got %v, want %v of %v", query, got, ids, made)
		}
	}
}

// A program that runs agents by itself can set how an agent's last run ended.
func TestAProgramSetsTheLastRun(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	path := "/v1/agents/" + c.made("/v1/agents", "")
	got := fields(t, c.must("PATCH", path, `{"last_run_completion":"2026-01-31T18:05:00Z","last_run_duration_ms":1200,
		"last_stop_reason":"end_turn"}`))
	if got["last_run_completion"] != "2026-01-31T18:05:00Z" || got["last_run_duration_ms"] != 1200.0 ||
		got["last_stop_reason"] != "end_turn" {
		t.Errorf("got %v", got)
	}
	again := fields(t, c.must("PATCH", path, `{"last_run_completion":null,"last_stop_reason":null}`))
	if again["last_run_completion"] != got["last_run_completion"] || again["last_stop_reason"] != "end_turn" {
		t.Errorf("after null: got %v", again["last_stop_reason"])
	}
	for _, body := range []string{`{"last_stop_reason":"bored"}`, `{"last_run_completion":"yesterday"}`,
		`{"last_run_duration_ms":"long"}`, `{"last_run_duration_ms":-1}`} {
		if got := c.call("PATCH", path, body); got.Code != 422 {
			t.Errorf("%s: got %d %s", body, got.Code, got.Text)
		}
	}
}

// Until they are answered, an agent and its lists show the calls that wait for the client, whoever made them.
func TestAgentsShowTheirPendingApproval(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"run", "capture"} {
		r := newRunner(t, askingAgent)
		r.made("/v1/agents", "")
		pending := func(object map[string]any) string {
			p, _ := object["pending_approval"].(map[string]any)
			var calls []string
			all, _ := p["tool_calls"].([]any)
			for _, c := range all {
				calls = append(calls, fmt.Sprint(c.(map[string]any)["tool_call_id"]))
			}
			return strings.Join(calls, " ")
		}
		check := func(when, want string) {
			t.Helper()
			if got := pending(fields(t, r.must("GET", "/v1/agents/"+r.agent, ""))); got != want {
				t.Errorf("%s, %s: got %q, want %q", way, when, got, want)
			}
			var list []map[string]any
			if err := json.Unmarshal([]byte(r.must("GET", "/v1/agents?order=asc", "")), &list); err != nil {
				t.Fatal(err)
			}
			if got := pending(list[0]); got != want || list[1]["pending_approval"] != nil {
				t.Errorf("%s, %s: a list has %q, want %q", way, when, got, want)
			}
		}
		check("before", "")
		if way == "run" {
			r.asks()
		} else {
			r.must("POST", r.path()+"/capture", `{"messages":[{"role":"user","content":"Hello"},
				{"role":"assistant","tool_calls":[{"id":"i","type":"function","function":{"name":"memory_insert",
				"arguments":"{\"label\":\"human\",\"new_string\":\"Tea.\"}"}},`+ownCall("w")+`]}]}`)
		}
		check("asked", "i w")
		r.send(approvals("o1", denyI))
		check("one denied", "w")
		r.model.Says(modeltest.Answer{Text: "Well."})
		r.send(approvals("o2", resultW))
		check("answered", "")
	}
}
