package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/store"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/tenant/apikey"
)

// worked returns a body with turns in which an agent called a tool. Each call has a result of some lines; the turns are
// numbered from first.
func worked(first, turns, lines int) string {
	var all []map[string]any
	for i := range turns {
		id := fmt.Sprintf("call-%d", first+i)
		all = append(all, map[string]any{"role": "user", "content": fmt.Sprintf("Question %d", first+i)},
			map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{"id": id,
				"type": "function", "function": map[string]string{"name": "read", "arguments": `{"path":"/a"}`}}}},
			map[string]any{"role": "tool", "tool_call_id": id, "content": result(first+i, lines)},
			map[string]any{"role": "assistant", "content": fmt.Sprintf("Answer %d", first+i)})
	}
	raw, _ := json.Marshal(map[string]any{"messages": all})
	return string(raw)
}

// result returns a call's result with some lines.
func result(n, lines int) string {
	var b strings.Builder
	for line := range lines {
		fmt.Fprintf(&b, "result %d line %d of a file that was read\n", n, line)
	}
	return b.String()
}

// pruned returns the changes that a policy made in an agent's default conversation, oldest first.
func (c *client) pruned(agent string) []store.Compaction {
	c.t.Helper()
	var list, pruned []store.Compaction
	if err := json.Unmarshal([]byte(c.must("GET", "/v1/agents/"+agent+"/compactions?order=asc", "")), &list); err != nil {
		c.t.Fatal(err)
	}
	for _, k := range list {
		if k.Trigger == plan.Pruned {
			pruned = append(pruned, k)
		}
	}
	return pruned
}

const snips = `{"preset":"four-layers","steps":{"snip":{"max_chars":500}}}`

// A policy edits messages once, before a prompt. The edits are listed with their steps, lead to the whole text, and can
// be reverted for good.
func TestAPolicyEditsBeforeAPrompt(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"Ada","compaction_settings":{"policy":`+snips+`}}`)
	c.capture(agent, worked(1, 3, 100))
	prompt := "/v1/agents/" + agent + "/prompt"
	first := c.must("GET", prompt, "")
	if strings.Contains(first, "result 1 line 50 ") || !strings.Contains(first, "result 1 line 0 ") ||
		!strings.Contains(first, "expand") {
		t.Fatalf("the prompt: %s", first)
	}
	if again := c.must("GET", prompt, ""); again != first {
		t.Errorf("the next prompt differs:\n%s\n%s", first, again)
	}
	prunings := c.pruned(agent)
	if len(prunings) != 1 || prunings[0].Policy == nil || *prunings[0].Policy != "four-layers (changed)" ||
		len(prunings[0].Steps) != 1 || prunings[0].Steps[0].Step != "snip" || prunings[0].Steps[0].Edits != 3 ||
		prunings[0].Steps[0].Tokens <= 0 ||
		prunings[0].TokensAfter >= prunings[0].TokensBefore || prunings[0].Summary != nil {
		t.Fatalf("pruned: %+v", prunings)
	}
	seq := c.seqOf(agent, "result 1 line 0 ")
	if got := c.tool(agent, "expand", fmt.Sprintf(`{"id":"%d"}`, seq)); !strings.Contains(got, "result 1 line 50 ") {
		t.Errorf("expanded: %s", got)
	}
	c.must("POST", "/v1/agents/"+agent+"/compactions/"+prunings[0].ID+"/revert", "")
	if got := c.must("GET", prompt, ""); !strings.Contains(got, "result 1 line 50 ") {
		t.Errorf("reverted, the prompt: %s", got)
	}
	if got := c.pruned(agent); len(got) != 1 || got[0].RevertedAt == nil {
		t.Errorf("after the reversal: %+v", got)
	}
	c.capture(agent, worked(4, 1, 100))
	if got := c.must("GET", prompt, ""); strings.Contains(got, "result 4 line 50 ") ||
		!strings.Contains(got, "result 1 line 50 ") {
		t.Errorf("a later result: %s", got)
	}
}

// seqOf returns the seq of the message with a text.
func (c *client) seqOf(agent, text string) int64 {
	c.t.Helper()
	var seq int64
	err := c.pool.QueryRow(c.t.Context(), `
		SELECT m.seq FROM messages m JOIN agents a ON a.org = m.org AND a.key = m.agent_key
		WHERE a.id = $1 AND strpos(m.content::text, $2) > 0
		ORDER BY m.seq LIMIT 1`, agent, text).Scan(&seq)
	if err != nil {
		c.t.Fatal(err)
	}
	return seq
}

// A pruning and a compaction can be reverted in either order, and nothing is lost.
func TestEditsAndCompactionsAreRevertedInAnyOrder(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"the edits first", "the compaction first"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t)
			agent := c.made("/v1/agents", `{"name":"Ada","context_window_limit":32000,
				"compaction_settings":{"policy":`+snips+`}}`)
			base := "/v1/agents/" + agent
			c.capture(agent, worked(1, 3, 30))
			c.must("GET", base+"/prompt", "")
			compacted := c.compact(base+"/summarize", `{"compaction_settings":{"mode":"all"}}`)
			c.capture(agent, worked(4, 1, 30))
			c.must("GET", base+"/prompt", "")
			prunings := c.pruned(agent)
			if len(prunings) != 2 {
				t.Fatalf("pruned: %+v", prunings)
			}
			order := []string{prunings[1].ID, compacted.Compaction.ID, prunings[0].ID}
			if name == "the compaction first" {
				order = []string{compacted.Compaction.ID, prunings[0].ID, prunings[1].ID}
			}
			for _, id := range order {
				c.must("POST", base+"/compactions/"+id+"/revert", "")
			}
			got := c.must("GET", base+"/prompt", "")
			for n := 1; n <= 4; n++ {
				if want := fmt.Sprintf("result %d line 15 ", n); !strings.Contains(got, want) {
					t.Errorf("%q is not in the prompt: %s", want, got)
				}
			}
			reply := c.call("POST", base+"/compactions/"+prunings[0].ID+"/revert", "")
			if reply.Code != 409 || !strings.Contains(reply.Text, "reverted already") {
				t.Errorf("reverted twice: %d %s", reply.Code, reply.Text)
			}
		})
	}
}

// At each place where a policy can be set, an unknown policy is refused, and the error names it.
func TestABadPolicyIsRefused(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"Ada"}`)
	conversation := c.made("/v1/conversations?agent_id="+agent, `{}`)
	body := `{"compaction_settings":{"policy":"nobody"}}`
	for _, r := range [][2]string{{"POST", "/v1/agents"}, {"PATCH", "/v1/agents/" + agent},
		{"POST", "/v1/conversations?agent_id=" + agent}, {"PATCH", "/v1/conversations/" + conversation},
		{"POST", "/v1/agents/" + agent + "/summarize"}, {"POST", "/v1/conversations/" + conversation + "/compact"}} {
		if got := c.call(r[0], r[1], body); got.Code != 422 || !strings.Contains(got.Text, `no policy \"nobody\"`) {
			t.Errorf("%s %s: %d %s", r[0], r[1], got.Code, got.Text)
		}
	}
}

// A conversation's policy takes precedence over its agent's. Null removes it, and a fork has its original's settings.
func TestTheConversationsPolicyIsNearer(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"Ada","compaction_settings":{"policy":`+snips+`}}`)
	conversation := c.made("/v1/conversations?agent_id="+agent,
		`{"compaction_settings":{"policy":{"steps":{"snip":null}},"goal":0.5}}`)
	c.capture(agent, `{"conversation_id":"`+conversation+`",`+worked(1, 2, 100)[1:])
	prompt := func(id string) string { return c.must("GET", "/v1/agents/"+agent+"/prompt?conversation_id="+id, "") }
	if got := prompt(conversation); !strings.Contains(got, "result 1 line 50 ") {
		t.Errorf("the conversation leaves the step out: %s", got)
	}
	fork := c.made("/v1/conversations/"+conversation+"/fork", "")
	if got := prompt(fork); !strings.Contains(got, "result 1 line 50 ") {
		t.Errorf("the fork: %s", got)
	}
	c.must("PATCH", "/v1/conversations/"+conversation, `{"compaction_settings":{"policy":null}}`)
	if got := c.must("GET", "/v1/conversations/"+conversation, ""); !strings.Contains(got,
		`"compaction_settings":{"goal":0.5}`) {
		t.Errorf("the conversation: %s", got)
	}
	if got := prompt(conversation); strings.Contains(got, "result 1 line 50 ") {
		t.Errorf("the agent's policy: %s", got)
	}
	c.must("PATCH", "/v1/conversations/"+fork, `{"compaction_settings":null}`)
	if got := c.must("GET", "/v1/conversations/"+fork, ""); strings.Contains(got, "compaction_settings") {
		t.Errorf("the fork: %s", got)
	}
}

// A step may name a policy for its next prompt.
func TestAPolicyOfOneStep(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"Ada"}`)
	c.capture(agent, worked(1, 2, 100))
	step := "/v1/agents/" + agent + "/step"
	if got := c.must("POST", step, `{"messages":[{"role":"user","content":"On."}],"policy":null}`); !strings.Contains(got,
		"result 1 line 50 ") {
		t.Errorf("without a policy: %s", got)
	}
	got := c.must("POST", step, `{"messages":[{"role":"user","content":"And on."}],"policy":`+snips+`}`)
	if strings.Contains(got, "result 1 line 50 ") || strings.Count(got, `"x"`) > 0 {
		t.Errorf("with a policy: %s", got)
	}
	if all := c.pruned(agent); len(all) != 1 || all[0].Policy == nil {
		t.Errorf("the edits: %+v", all)
	}
}

// Policies are listed with their steps. An organization's policy applies to its agents, and changes are listed with
// their places.
func TestPoliciesOverREST(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"Ada"}`)
	base := "/v1/agents/" + agent
	if got := c.must("GET", "/v1/policies", ""); !strings.Contains(got, `"four-layers"`) ||
		!strings.Contains(got, `"max_chars"`) {
		t.Errorf("the policies: %s", got)
	}
	if got := c.must("GET", "/v1/policies/four-layers", ""); !strings.Contains(got, `"stage":"enter"`) {
		t.Errorf("the policy: %s", got)
	}
	if got := c.call("GET", "/v1/policies/nobody", ""); got.Code != 404 {
		t.Errorf("no policy: %d %s", got.Code, got.Text)
	}
	if got := c.must("GET", base+"/policy", ""); !strings.Contains(got, `"letta","set_by":"","steps":[{"step":"`) {
		t.Errorf("without a policy: %s", got)
	}
	c.must("PUT", "/v1/admin/policy", `{"policy":`+snips+`}`)
	c.must("PATCH", base, `{"compaction_settings":{"policy":{"steps":{"snip":{"head_share":0.5}}}}}`)
	got := c.must("GET", base+"/policy", "")
	for _, want := range []string{`"policy":"four-layers (changed)"`, `"set_by":"organization"`, `"origin":"agent"`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in the policy in force: %s", want, got)
		}
	}
	changes := c.must("GET", "/v1/admin/policy/changes", "")
	if !strings.Contains(changes, `"place":"organization"`) || !strings.Contains(changes, `"place":"agent"`) {
		t.Errorf("the changes: %s", changes)
	}
	born := c.made("/v1/agents", `{"name":"b","compaction_settings":{"policy":"claude-code"}}`)
	talk := c.made("/v1/conversations?agent_id="+born, `{"compaction_settings":{"policy":"four-layers"}}`)
	changes = c.must("GET", "/v1/admin/policy/changes", "")
	for _, want := range []string{`"place":"agent","agent_id":"` + born + `"`, `"conversation_id":"` + talk + `"`} {
		if !strings.Contains(changes, want) {
			t.Errorf("%s, which was created with a policy, is not in the changes: %s", want, changes)
		}
	}
	if events := c.must("GET", base+"/events?limit=100", ""); !strings.Contains(events, `"policy_changed"`) {
		t.Errorf("the events: %s", events)
	}
	for _, bad := range []string{`{"policy":"nobody"}`, `{"policy":{"steps":{"blur":{}}}}`} {
		if got := c.call("PUT", "/v1/admin/policy", bad); got.Code != 422 {
			t.Errorf("%s: %d %s", bad, got.Code, got.Text)
		}
	}
	c.capture(agent, worked(1, 1, 100))
	if _, err := c.server.Agents.Stats(t.Context(), c.org, agent, 15); err != nil {
		t.Fatal(err)
	}
	stats := c.must("GET", base+"/stats", "")
	if !strings.Contains(stats, `"category":"tool_results","messages":1`) {
		t.Errorf("the statistics: %s", stats)
	}
	c.must("PUT", "/v1/admin/policy", `{"policy":null}`)
	if got := c.must("GET", "/v1/admin/policy", ""); !strings.Contains(got, `"policy":null`) {
		t.Errorf("taken back: %s", got)
	}
}

// The operator can set the policy of all organizations while the server runs; others cannot see it. It takes precedence
// over the policy in the server's settings until it is removed, and each change has its author.
func TestTheOperatorSetsThePolicyOfTheServer(t *testing.T) {
	t.Parallel()
	c := newDatabaseClient(t)
	c.work()
	c.own().Agents.Policy = []byte(`"deck"`)
	agent := c.made("/v1/agents", `{"name":"Ada"}`)
	operator := c.operator()
	admin := c.scoped(apikey.NewKey{Scopes: []string{apikey.Admin}})
	const path = "/v1/admin/policy/server"
	inForce := func() string { return operator.must("GET", "/v1/agents/"+agent+"/policy", "") }
	for _, set := range []struct{ body, want string }{
		{"", `"policy":"deck","set_by":"server"`},
		{`{"policy":{"preset":"pi","steps":{"snip":{"max_chars":700}}}}`, `"policy":"pi (changed)","set_by":"server"`},
		{`{"policy":"four-layers"}`, `"policy":"four-layers","set_by":"server"`},
		{`{"policy":null}`, `"policy":"deck","set_by":"server"`},
	} {
		if set.body != "" {
			if got := operator.must("PUT", path, set.body); got != operator.must("GET", path, "") {
				t.Errorf("%s: answered %s", set.body, got)
			}
		}
		if got := inForce(); !strings.Contains(got, set.want) {
			t.Errorf("%s: in force is %s, want %s", set.body, got, set.want)
		}
	}
	for _, call := range [][3]string{{"GET", path, ""}, {"PUT", path, `{"policy":"pi"}`}, {"GET", path + "/changes", ""}} {
		if got := admin.call(call[0], call[1], call[2]); got.Code != 403 {
			t.Errorf("an organization's admin: %v: got %d %s", call, got.Code, got.Text)
		}
	}
	if got := operator.call("PUT", path, `{"policy":"nobody"}`); got.Code != 422 {
		t.Errorf("no policy: got %d %s", got.Code, got.Text)
	}
	changes := operator.must("GET", path+"/changes", "")
	if n := strings.Count(changes, `"place":"server"`); n != 3 || strings.Contains(changes, `"author":""`) {
		t.Errorf("got %d changes: %s", n, changes)
	}
	if got := operator.call("PUT", "/v1/admin/policy", `{"policy":{"steps":{"full":{}}}}`); got.Code != 422 ||
		!strings.Contains(got.Text, "two steps") {
		t.Errorf("a second cutter beside the server's: got %d %s", got.Code, got.Text)
	}
	operator.must("PUT", "/v1/admin/policy", `{"policy":{"steps":{"dedup":null}}}`)
	if got := inForce(); !strings.Contains(got, `"left_out":[{"step":"dedup","set_by":"organization"}]`) {
		t.Errorf("a step that is left out: %s", got)
	}
}

// If an update changes nothing that the system prompt shows, the system prompt stays the same, byte for byte, and so
// does a provider's cache.
func TestUpdatesOfOtherThingsLeaveTheSystemPrompt(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"Ada"}`)
	base := "/v1/agents/" + agent
	c.exec(`UPDATE agents SET system_changed_at = '2026-01-02 03:04:05Z', updated_at = '2026-01-02 03:04:05Z'
		WHERE org = $1`, c.org)
	compiled := func() string { return c.must("POST", base+"/recompile?dry_run=true", "") }
	before := compiled()
	if !strings.Contains(before, "last recompiled: 2026-01-02 03:04:05 AM UTC+0000") {
		t.Fatalf("the system prompt: %s", before)
	}
	for _, body := range []string{`{"compaction_settings":{"policy":"deck","trigger":0.8}}`, `{"tags":["a"]}`,
		`{"description":"d"}`, `{"metadata":{"a":1}}`, `{"hidden":true}`, `{"name":"Eve"}`} {
		c.must("PATCH", base, body)
		if got := compiled(); got != before {
			t.Errorf("%s changed the system prompt to %s", body, got)
		}
	}
	c.must("PATCH", base, `{"system":"Begin."}`)
	if got := compiled(); strings.Contains(got, "2026-01-02") {
		t.Errorf("another system prompt has the old time: %s", got)
	}
}

// A preview has the tool that a policy brings, as the agent has it once the policy is set.
func TestAPreviewHasTheToolsOfThePolicy(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	for _, body := range []string{`{"name":"a"}`, `{"name":"a","tools":["expand"]}`} {
		agent := c.made("/v1/agents", body)
		c.greet(agent, "default")
		base := "/v1/agents/" + agent
		tokens := func(target string) (n int) {
			var p struct{ Tokens struct{ Total int } }
			if err := json.Unmarshal([]byte(c.must("GET", target, "")), &p); err != nil {
				t.Fatal(err)
			}
			return p.Tokens.Total
		}
		before := tokens(base + "/prompt?policy=alyx")
		c.must("PATCH", base, `{"compaction_settings":{"policy":"alyx"}}`)
		if actual := tokens(base + "/prompt"); actual != before {
			t.Errorf("%s: the preview has %d tokens, and the prompt %d", body, before, actual)
		}
	}
}

// A preview shows what another policy would send, now and at a position, and stores nothing.
func TestAPreviewOfAPolicyStoresNothing(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"Ada"}`)
	base := "/v1/agents/" + agent
	c.capture(agent, worked(1, 2, 100))
	seq := c.seqOf(agent, "Answer 2")
	c.capture(agent, worked(3, 2, 100))
	before := c.must("GET", base+"/prompt", "")
	atPosition := c.must("GET", base+"/prompt?policy=four-layers&at_seq="+fmt.Sprint(seq), "")
	if strings.Contains(atPosition, "Question 3") || !strings.Contains(atPosition, "Question 2") {
		t.Errorf("at the position: %s", atPosition)
	}
	var previews []struct {
		Policy string
		Tokens struct{ Total int }
		Before int `json:"tokens_before"`
		First  int `json:"first_changed"`
		Steps  []plan.StepCount
		Cost   struct {
			Next  float64 `json:"next_prompt"`
			Later float64 `json:"later_prompt"`
		}
	}
	body := `{"policies":["four-layers",` + snips + `]}`
	raw := c.must("POST", base+"/policies/preview", body)
	if err := json.Unmarshal([]byte(raw), &previews); err != nil || len(previews) != 2 {
		t.Fatal(raw, err)
	}
	unchanged, snipped := previews[0], previews[1]
	if unchanged.First != 0 || unchanged.Tokens.Total != unchanged.Before || snipped.First == 0 ||
		snipped.Tokens.Total >= snipped.Before || snipped.Steps[0].Edits != 4 || snipped.Cost.Later >= unchanged.Cost.Later ||
		snipped.Cost.Next <= snipped.Cost.Later {
		t.Errorf("the previews: %s", raw)
	}
	if got := c.pruned(agent); len(got) != 0 {
		t.Errorf("the previews stored %+v", got)
	}
	if after := c.must("GET", base+"/prompt", ""); after != before {
		t.Errorf("the prompt changed:\n%s\n%s", before, after)
	}
	if got := c.call("GET", base+"/prompt?policy=nobody", ""); got.Code != 422 {
		t.Errorf("a policy that there is none of: %d %s", got.Code, got.Text)
	}
}

// A preview at a position shows the messages up to there, even if the conversation has too many messages to send.
func TestAPreviewAtAPositionOfALongLog(t *testing.T) {
	t.Parallel()
	scale.Long(t)
	c := newClient(t)
	agent := c.made("/v1/agents", `{}`)
	c.capture(agent, `{"messages":[{"role":"user","content":"the first of all"}]}`)
	seq := c.seqOf(agent, "the first of all")
	const item = `{"role":"user","content":"x"}`
	c.capture(agent, `{"messages":[`+strings.Repeat(item+",", plan.MaxMessages-1)+item+`]}`)
	got := c.must("GET", fmt.Sprintf("/v1/agents/%s/prompt?policy=pi&at_seq=%d", agent, seq), "")
	if !strings.Contains(got, "the first of all") || strings.Contains(got, `"x"`) {
		t.Errorf("the prompt at the first message: %.2000s", got)
	}
}

// The overview of a window supposes another policy, another window or a share of the tokens, and stores nothing.
func TestAnOverviewUnderOtherConditions(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	id := c.made("/v1/agents", `{"name":"a","context_window_limit":32000}`)
	for turn := 1; turn <= 20; turn++ {
		c.capture(id, chatter(turn, 1, strings.Repeat("and so it goes on ", 100)))
	}
	base := "/v1/agents/" + id + "/context"
	before := c.must("GET", base, "")
	size := func(query string) (tokens, most float64) {
		t.Helper()
		o := fields(t, c.must("GET", base+query, ""))
		if n := len(o["messages"].([]any)); query != "" && float64(n) > o["num_messages"].(float64) {
			t.Errorf("%s: %d messages are shown of %v", query, n, o["num_messages"])
		}
		return o["context_window_size_current"].(float64), o["context_window_size_max"].(float64)
	}
	whole, _ := size("")
	for query, share := range map[string]float64{"?ratio=1": 1, "?ratio=0.5": 0.5, "?ratio=0.3": 0.3,
		"?window=9000": 9000 * 0.9 / whole, "?policy=pi&window=9000": 9000 * 0.75 / whole} {
		got, most := size(query)
		least := 0.75 // of the share
		if strings.Contains(query, "window") {
			least = 0.33
		}
		if got > share*whole*1.02 || got < share*whole*least {
			t.Errorf("%s: %v tokens of %v", query, got, whole)
		}
		if strings.Contains(query, "window") && most != 9000 {
			t.Errorf("%s: a window of %v", query, most)
		}
	}
	for query, says := range map[string]string{"?ratio=0.5&policy=pi": "query.ratio", "?ratio=2": "query.ratio",
		"?window=10": "query.window", "?window=9000&at_seq=3": "query.at_seq"} {
		c.refuses("GET", base+query, "", 422, says)
	}
	c.refuses("GET", base+"?policy=lettuce", "", 422, "There is no policy")
	if after := c.must("GET", base, ""); after != before {
		t.Error("a question changed the context")
	}
}

// A prompt at an event is the one that was handed out there, byte for byte, also after a change of policy and a
// compaction. One that was not handed out is rebuilt, and says so.
func TestAPromptAtAnEventIsWhatWasSent(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"Ada","context_window_limit":16000}`)
	base := "/v1/agents/" + agent
	sent, growing := map[float64]string{}, 0
	for turn := 1; turn <= 12; turn++ {
		c.capture(agent, chatter(turn, 1, strings.Repeat("and so it goes on ", 90)))
		p := fields(t, c.must("GET", base+"/prompt", ""))
		sent[p["seq"].(float64)] = p["sha256"].(string)
		newest := c.list(base + "/events?order=desc&limit=1")[0]
		if newest["type"] == "prompts_growing" { // it comes behind the prompt, and changes none
			growing++
			sent[newest["seq"].(float64)] = p["sha256"].(string)
		}
	}
	if growing == 0 {
		t.Error("no event came behind a prompt")
	}
	c.must("PATCH", base, `{"compaction_settings":{"policy":"deck"}}`)
	c.must("POST", base+"/summarize", `{}`)
	c.capture(agent, chatter(13, 1, "What now?"))
	for seq, sum := range sent {
		at := fields(t, c.must("GET", fmt.Sprintf("%s/prompt?at_seq=%.0f", base, seq), ""))
		if at["sha256"] != sum || at["rebuilt"] != nil {
			t.Errorf("at %.0f: %v, rebuilt: %v, want %s", seq, at["sha256"], at["rebuilt"], sum)
		}
	}
	at := fields(t, c.must("GET", fmt.Sprintf("%s/prompt?at_seq=%d", base, c.seqOf(agent, "What now?")), ""))
	if at["rebuilt"] != true {
		t.Errorf("a prompt that was not handed out: rebuilt: %v", at["rebuilt"])
	}
}
