package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/agent/agenttest"
	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/compaction/llm/llmtest"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/store"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/letta"
)

// chatter returns a body with turns of a user and an agent, numbered from first.
func chatter(first, turns int, text string) string {
	var all []map[string]string
	for i := range turns {
		all = append(all, map[string]string{"role": "user", "content": fmt.Sprintf("Question %d: %s", first+i, text)},
			map[string]string{"role": "assistant", "content": fmt.Sprintf("Answer %d: %s", first+i, text)})
	}
	raw, _ := json.Marshal(map[string]any{"messages": all})
	return string(raw)
}

type compacted struct {
	Summary    string
	Before     int `json:"num_messages_before"`
	After      int `json:"num_messages_after"`
	Plan       plan.Plan
	Compaction *store.Compaction
}

func (c *client) compact(target, body string) compacted {
	c.t.Helper()
	var got compacted
	if err := json.Unmarshal([]byte(c.must("POST", target, body)), &got); err != nil {
		c.t.Fatal(err)
	}
	return got
}

// inContext returns how many messages of an agent's default conversation the model sees.
func (c *client) inContext(agent string) int {
	ids, _ := fields(c.t, c.must("GET", "/v1/agents/"+agent, ""))["message_ids"].([]any)
	return len(ids)
}

func TestCompactingAnAgent(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"Ada","context_window_limit":16000}`)
	c.capture(agent, chatter(1, 20, "the file is /srv/data/plan-7.txt"))
	before := c.inContext(agent)
	base := "/v1/agents/" + agent
	dry := c.compact(base+"/summarize", `{"dry_run":true}`)
	if dry.Compaction != nil || dry.Plan.Evicted == 0 || dry.Before != before || dry.After != before-dry.Plan.Evicted+1 ||
		c.inContext(agent) != before {
		t.Errorf("a dry run: %+v, of %d messages", dry, before)
	}
	result := c.compact(base+"/summarize", `{}`)
	if result.Compaction == nil || result.Before != before || result.After != c.inContext(agent) ||
		result.After >= before || result.Compaction.Trigger != "manual" {
		t.Fatalf("compacted: %+v, of %d messages, and %d are left", result, before, c.inContext(agent))
	}
	if !strings.Contains(result.Summary, "/srv/data/plan-7.txt") {
		t.Errorf("the summary lacks the path that all spoke of: %s", result.Summary)
	}
	var summaries []struct {
		MessageType string         `json:"message_type"`
		Summary     string         `json:"summary"`
		EventType   string         `json:"event_type"`
		Stats       map[string]any `json:"compaction_stats"`
		EventData   map[string]any `json:"event_data"`
	}
	list := c.must("GET", base+"/messages?include_return_message_types=summary_message"+
		"&include_return_message_types=event_message", "")
	if err := json.Unmarshal([]byte(list), &summaries); err != nil || len(summaries) != 2 {
		t.Fatalf("the summary among the messages: %s, %v", list, err)
	}
	if summaries[0].EventType != "compaction" || summaries[0].EventData["trigger"] != "manual" ||
		summaries[1].Summary != result.Summary ||
		summaries[1].Stats["messages_count_before"] != float64(result.Before) ||
		summaries[1].Stats["context_window"] != 16000.0 {
		t.Errorf("the summary among the messages: %s", list)
	}
	// The summarized messages can be read by the range that the summary names, and found by a search.
	name := fmt.Sprintf("seq %d-%d", *result.Compaction.FromSeq, *result.Compaction.ToSeq)
	if got := c.tool(agent, "expand", fmt.Sprintf(`{"id":%q}`, name)); !strings.Contains(got, "Question 1:") ||
		strings.Contains(got, "Answer 20:") {
		t.Errorf("expanded %s: %s", name, got)
	}
	if got := c.must("GET", base+"/expand/"+strings.ReplaceAll(name, " ", "%20"), ""); !strings.Contains(got,
		"Question 1:") {
		t.Errorf("expanded over REST: %s", got)
	}
	if got := c.tool(agent, "conversation_search", `{"query":"question 1 plan"}`); !strings.Contains(got, "Question 1:") {
		t.Errorf("searched: %s", got)
	}
	target := base + "/compactions/" + result.Compaction.ID
	if got := c.must("GET", base+"/compactions", ""); !strings.Contains(got, result.Compaction.ID) ||
		!strings.Contains(got, `"reverted_at":null`) {
		t.Errorf("the list: %s", got)
	}
	if got := c.must("POST", target+"/revert", ""); strings.Contains(got, `"reverted_at":null`) ||
		c.inContext(agent) != before {
		t.Errorf("reverted: %s, and %d messages of %d are in view", got, c.inContext(agent), before)
	}
	if got := c.call("POST", target+"/revert", ""); got.Code != 409 || !strings.Contains(got.Text, "reverted already") {
		t.Errorf("reverted twice: %d %s", got.Code, got.Text)
	}
	if got := c.must("GET", base+"/events?types=compaction&types=compaction_reverted", ""); strings.Count(got,
		result.Compaction.ID) != 2 {
		t.Errorf("the events: %s", got)
	}
}

func TestCompactingAConversation(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"Ada"}`)
	conversation := c.made("/v1/conversations?agent_id="+agent, `{"context_window_limit":12000}`)
	body := strings.Replace(chatter(1, 12, "hello"), `{"messages"`, `{"conversation_id":"`+conversation+`","messages"`, 1)
	c.capture(agent, body)
	c.capture(agent, chatter(1, 3, "in the default one"))
	result := c.compact("/v1/conversations/"+conversation+"/compact",
		`{"compaction_settings":{"mode":"all"},"focus":"the boiler"}`)
	if result.Compaction == nil || result.Compaction.Mode != plan.All ||
		*result.Compaction.ConversationID != conversation || result.Compaction.Window != 12000 {
		t.Errorf("compacted: %+v", result)
	}
	if got := c.inContext(agent); got != 7 {
		t.Errorf("the default conversation has %d messages in view, want 7: it was not compacted", got)
	}
	c.compact("/v1/conversations/default/compact", `{"agent_id":"`+agent+`"}`)
	if got := c.must("GET", "/v1/agents/"+agent+"/compactions?conversation_id="+conversation, ""); strings.Count(got,
		`"id":"compaction-`) != 1 {
		t.Errorf("of the conversation: %s", got)
	}
	if got := c.must("GET", "/v1/agents/"+agent+"/compactions", ""); strings.Count(got, `"id":"compaction-`) != 2 {
		t.Errorf("of the agent: %s", got)
	}
	stored := fields(t, c.must("GET", "/v1/agents/"+agent+"/compactions/"+result.Compaction.ID, ""))
	if stored["focus"] != "the boiler" {
		t.Errorf("the compaction has the focus %v", stored["focus"])
	}
	later := fmt.Sprint(stored["id"])
	other := c.made("/v1/agents", `{"name":"Bob"}`)
	empty := c.made("/v1/conversations?agent_id="+other, "")
	for _, w := range []struct {
		name, method, target, body string
		status                     int
		detail                     string
	}{
		{"a conversation of instructions alone", "POST", "/v1/conversations/" + empty + "/compact", `{}`, 400,
			"the view has no messages"},
		{"no such mode", "POST", "/v1/agents/" + agent + "/summarize", `{"compaction_settings":{"mode":"some"}}`, 400,
			"sliding_window"},
		{"a trigger out of range", "POST", "/v1/agents/" + agent + "/summarize", `{"compaction_settings":{"trigger":0.2}}`,
			400, "0.5"},
		{"settings that are no object", "POST", "/v1/agents/" + agent + "/summarize", `{"compaction_settings":7}`, 422,
			"compaction_settings"},
		{"a compaction of another agent", "GET", "/v1/agents/" + other + "/compactions/" + later, "", 404, "not found"},
		{"an id that is none", "GET", "/v1/agents/" + other + "/compactions/x", "", 422, "compaction_id"},
		{"settings of a new agent", "POST", "/v1/agents", `{"compaction_settings":{"goal":0.89}}`, 400, "goal"},
		{"a setting that there is not", "POST", "/v1/agents", `{"compaction_settings":{"policie":"pi"}}`, 422,
			"body.compaction_settings.policie: there is no such setting; did you mean policy?"},
		{"a setting like no other", "PATCH", "/v1/agents/" + agent, `{"compaction_settings":{"zzz":1}}`, 422,
			"there are clip_chars, goal,"},
		{"a setting of a call", "POST", "/v1/agents/" + agent + "/summarize", `{"compaction_settings":{"Goal":0.5}}`, 422,
			"did you mean goal?"},
		{"a setting of a sub-agent", "POST", "/v1/agents/" + agent + "/children",
			`{"mode":"blank","task":"x","compaction_settings":{"triger":0.8}}`, 422, "did you mean trigger?"},
		{"a focus of two lines", "POST", "/v1/agents/" + agent + "/summarize", `{"focus":"the boiler\nthe lamp"}`, 422,
			"body.focus: it has a line break"},
		{"a prompt under no policy", "GET", "/v1/agents/" + agent + "/prompt?policy=nobody", "", 422, "query.policy"},
		{"a window under no policy", "GET", "/v1/agents/" + agent + "/context?policy=nobody", "", 422, "query.policy"},
		{"changed settings", "PATCH", "/v1/agents/" + agent, `{"compaction_settings":{"sliding_window_percentage":3}}`, 400,
			"sliding_window_percentage"},
	} {
		if got := c.call(w.method, w.target, w.body); got.Code != w.status || !strings.Contains(got.Text, w.detail) {
			t.Errorf("%s: got %d %s, want %d with %q", w.name, got.Code, got.Text, w.status, w.detail)
		}
	}
	// Changing some settings leaves the others unchanged.
	c.must("PATCH", "/v1/agents/"+agent, `{"compaction_settings":{"prompt":"Be brief.","goal":0.5}}`)
	settings := fields(t, c.must("PATCH", "/v1/agents/"+agent,
		`{"compaction_settings":{"clip_chars":null}}`))["compaction_settings"]
	if got := settings.(map[string]any); got["prompt"] != "Be brief." || got["goal"] != 0.5 || got["clip_chars"] != nil ||
		got["mode"] != "sliding_window" {
		t.Errorf("the settings: %v", got)
	}
}

// Appends keep the view within the window without a client's help, turn after turn, and every message stays reachable.
func TestTheWindowNeverOverflows(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"Ada","system":"Be kind.","context_window_limit":16000}`)
	base := "/v1/agents/" + agent
	compactions, mostTokens := 0, 0
	for turn := 1; turn <= 40; turn++ {
		c.capture(agent, chatter(turn, 1, fmt.Sprintf("item-%04d %s", turn, strings.Repeat("and so it goes on ", 60))))
		if err := c.server.Agents.CheckWindow(t.Context(), c.org, agent, "default"); err != nil {
			t.Fatalf("turn %d: %v", turn, err)
		}
		size := fields(t, c.must("GET", base+"/context", ""))["context_window_size_current"].(float64)
		mostTokens = max(mostTokens, int(size))
	}
	var list []store.Compaction
	if err := json.Unmarshal([]byte(c.must("GET", base+"/compactions?limit=100", "")), &list); err != nil {
		t.Fatal(err)
	}
	compactions = len(list)
	if mostTokens > 15200 || compactions < 2 || compactions > 20 {
		t.Errorf("the view had %d tokens once, of 16000, and was compacted %d times", mostTokens, compactions)
	}
	if got := c.must("GET", base+"/events?types=window_warning", ""); strings.Count(got, `"type":"window_warning"`) < 1 {
		t.Errorf("there was no warning: %s", got)
	}
	for _, compaction := range list {
		if strings.Contains(*compaction.Summary, "at hand, write to memory") {
			t.Errorf("a summary has what was a warning of its moment: %s", *compaction.Summary)
		}
	}
	// The view from before no longer fits, and the answer says how much it is too large.
	if got := c.call("POST", base+"/compactions/"+list[0].ID+"/revert", ""); got.Code != 409 ||
		!strings.Contains(got.Text, "does not fit any more: it has") {
		t.Errorf("reverting the last: %d %s", got.Code, got.Text)
	}
	for _, turn := range []int{1, 17, 40} {
		if got := c.tool(agent, "expand", `{"id":"seq 1-500","pattern":"item-`+fmt.Sprintf("%04d",
			turn)+`"}`); !strings.Contains(got, "Question") {
			t.Errorf("turn %d is not in the log: %s", turn, got)
		}
	}
}

// If a prompt does not fit, and another request makes room for it meanwhile, the prompt is assembled again.
func TestAPromptIsNotFromBeforeACompaction(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	agent := c.made("/v1/agents", `{"name":"Ada","system":"Be kind.","context_window_limit":16000}`)
	c.capture(agent, chatter(1, 40, strings.Repeat("and so it goes on ", 40)))
	p := llmtest.New(t)
	var first atomic.Bool
	p.Answer = func(asked llmtest.Asked) string {
		if first.CompareAndSwap(false, true) { // while this request waits, on a server that stalled
			if _, err := c.server.Agents.DB.Exec(t.Context(), `DELETE FROM compaction_claims WHERE org = $1`,
				c.org); err != nil {
				t.Error(err)
			}
			if got := c.call("POST", "/v1/agents/"+agent+"/summarize", `{}`); got.Code != 200 {
				t.Errorf("compacted meanwhile: %d %s", got.Code, got.Text)
			}
		}
		return llmtest.Summary(asked)
	}
	models, err := agenttest.Models(p, patience)
	if err != nil {
		t.Fatal(err)
	}
	c.own().Agents.Compaction.Models = models
	tokens := fields(t, c.must("GET", "/v1/agents/"+agent+"/prompt", ""))["tokens"].(map[string]any)["total"].(float64)
	if compactions := c.must("GET", "/v1/agents/"+agent+"/compactions", ""); tokens > 14_400 || !first.Load() ||
		strings.Count(compactions, `"id":"compaction-`) != 1 {
		t.Errorf("the prompt has %v tokens of 16000; compactions: %s", tokens, compactions)
	}
}

// If another request compacts a prompt meanwhile, the prompt is assembled again, and not refused for its earlier size.
func TestAPromptIsNotRefusedForAViewOfBefore(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	agent := c.made("/v1/agents", `{"name":"Ada","system":"Be kind.","context_window_limit":16000,
		"compaction_settings":{"policy":{"steps":[{"step":"message_count","max_messages":2}]}}}`)
	c.capture(agent, chatter(1, 80, strings.Repeat("and so it goes on ", 40)))
	looks := 0
	c.own().Agents.Now = func() time.Time { // a policy looks at the clock first before, and then after it read the view
		if looks++; looks == 3 {
			if got := c.call("POST", "/v1/agents/"+agent+"/summarize", `{}`); got.Code != 200 {
				t.Errorf("compacted meanwhile: %d %s", got.Code, got.Text)
			}
		}
		return time.Now()
	}
	if got := c.call("GET", "/v1/agents/"+agent+"/prompt", ""); got.Code != 200 || looks < 3 {
		t.Errorf("the prompt, after %d looks at the clock: %d %.300s", looks, got.Code, got.Text)
	}
}

// A result that arrives after its call was summarized is in the next prompt.
func TestALateResultIsShown(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"Ada","system":"Be kind.","context_window_limit":16000}`)
	c.capture(agent, `{"messages":[{"role":"user","content":"start a long job"},{"role":"assistant","tool_calls":[
		{"id":"job1","type":"function","function":{"name":"start_job","arguments":"{}"}}]}]}`)
	c.capture(agent, chatter(1, 60, strings.Repeat("and so it goes on ", 40)))
	if got := c.must("GET", "/v1/agents/"+agent+"/prompt", ""); strings.Contains(got, `"id":"job1"`) {
		t.Fatal("the call is still in the view")
	}
	c.capture(agent, `{"messages":[{"role":"tool","tool_call_id":"job1","content":"LATE-RESULT-XYZ finished"}]}`)
	first := c.must("GET", "/v1/agents/"+agent+"/prompt", "")
	if !strings.Contains(first, "LATE-RESULT-XYZ") {
		t.Errorf("the prompt does not have the late result: %.2000s", first)
	}
	c.capture(agent, chatter(100, 60, strings.Repeat("and so it goes on ", 40)))
	if c.must("GET", "/v1/agents/"+agent+"/prompt", "") == first {
		t.Error("the prompt stays the same")
	}
	if got := c.tool(agent, "expand", `{"id":"seq 1-500","pattern":"LATE-RESULT"}`); !strings.Contains(got, "XYZ") {
		t.Errorf("the log does not have it: %s", got)
	}
}

// If a provider counts more tokens than the server, messages after its report are assumed to count more, too.
func TestAReportTellsOfWhatCameAfter(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"Ada","system":"Be kind.","context_window_limit":16000}`)
	prompt := func() int {
		return int(fields(t, c.must("GET", "/v1/agents/"+agent+"/prompt?format=openai",
			""))["tokens"].(map[string]any)["estimated"].(float64))
	}
	c.capture(agent, chatter(1, 10, strings.Repeat("and so it goes on ", 30)))
	estimated := prompt()
	reported := estimated * 8 / 5
	c.capture(agent, fmt.Sprintf(`{"messages":[{"role":"assistant","content":"So it is."}],"usage":{"prompt_tokens":%d}}`,
		reported))
	left := 14_400 - reported
	c.capture(agent, fmt.Sprintf(`{"messages":[{"role":"user","content":%q}]}`, strings.Repeat("word", left-100)))
	if got := prompt(); got*reported/estimated > 16_000 {
		t.Errorf("a prompt of %d tokens, of which its provider counted %d for %d, was handed out for a window of 16000", got,
			reported, estimated)
	}
}

// The provider's count of a prompt is preferred to the estimate, whatever clients call the field.
func TestCapturedUsage(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	for name, w := range map[string]struct {
		usage  string
		tokens int
	}{
		"OpenAI's": {`{"prompt_tokens":9000,"completion_tokens":5000,"total_tokens":14000,` +
			`"prompt_tokens_details":{"cached_tokens":8000}}`, 9000},
		"Anthropic's": {`{"input_tokens":1000,"cache_read_input_tokens":6000,"cache_creation_input_tokens":500,` +
			`"output_tokens":9}`, 7500},
		"none":                {`null`, 0},
		"Google's":            {`{"promptTokenCount":90,"promptTokensDetails":[{"modality":"TEXT"}]}`, 0},
		"with absent numbers": {`{"prompt_tokens":null,"input_tokens":8}`, 8},
	} {
		agent := c.made("/v1/agents", `{"name":"Ada"}`)
		c.capture(agent, `{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"}],`+
			`"usage":`+w.usage+`}`)
		got, err := c.server.Recall.Conversation(t.Context(), c.org, agent, "default")
		if err != nil || got.Reported != w.tokens || w.tokens > 0 && got.ReportedPosition != 2 {
			t.Errorf("%s: got %d tokens at %d, %v, want %d at 2", name, got.Reported, got.ReportedPosition, err, w.tokens)
		}
	}
	agent := c.made("/v1/agents", `{"name":"Ada"}`)
	for usage, rule := range map[string]string{
		`"x"`:                                "usage: expected an object. Got: \"x\"",
		`[1]`:                                "usage: expected an object",
		`1e18`:                               "usage: expected an object",
		`{"prompt_tokens":-5}`:               "usage.prompt_tokens: expected a number of 0 to 2147483647. Got: -5",
		`{"prompt_tokens":1e300}`:            "usage.prompt_tokens: expected a number",
		`{"prompt_tokens":1e400}`:            "usage.prompt_tokens: expected a number",
		`{"input_tokens":"7"}`:               "usage.input_tokens: expected a number of 0 to 2147483647. Got: \"7\"",
		`{"cache_read_input_tokens":[1]}`:    "usage.cache_read_input_tokens: expected a number",
		`{"cache_creation_input_tokens":{}}`: "usage.cache_creation_input_tokens: expected a number",
	} {
		got := c.call("POST", "/v1/agents/"+agent+"/messages/capture",
			`{"messages":[{"role":"user","content":"hi"}],"usage":`+usage+`}`)
		if detail, _ := fields(t, got.Text)["detail"].(string); got.Code != 422 || !strings.HasPrefix(detail, rule) {
			t.Errorf("usage %s: got %d %s, want 422 %q", usage, got.Code, got.Text, rule)
		}
	}
	c.capture(agent, `{"provider":"openai","model":"m","request_messages":[{"role":"user","content":"hi"}],
		"response_dict":{"choices":[{"message":{"role":"assistant","content":"hello"}}],"usage":{"prompt_tokens":77}}}`)
	if got, err := c.server.Recall.Conversation(t.Context(), c.org, agent, "default"); err != nil || got.Reported != 77 {
		t.Errorf("of what a proxy saw: %d tokens, %v, want 77", got.Reported, err)
	}
}

// A report about a prompt from before a compaction says nothing about the view after it.
func TestUsageOfAnEarlierViewIsNotBelieved(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"Ada","context_window_limit":16000}`)
	turn := strings.TrimSuffix(chatter(21, 1, "hello"), "}") + `,"usage":{"prompt_tokens":15000}}`
	reported := func() int {
		t.Helper()
		got, err := c.server.Recall.Conversation(t.Context(), c.org, agent, "default")
		if err != nil {
			t.Fatal(err)
		}
		return got.Reported
	}
	c.capture(agent, chatter(1, 20, "hello"))
	c.must("GET", "/v1/agents/"+agent+"/prompt", "")
	compaction := c.compact("/v1/agents/"+agent+"/summarize", `{}`).Compaction
	c.capture(agent, turn)
	if got := reported(); got != 0 {
		t.Errorf("of a prompt from before the compaction: %d tokens are believed", got)
	}
	c.must("GET", "/v1/agents/"+agent+"/prompt", "")
	c.capture(agent, turn)
	if got := reported(); got != 15000 {
		t.Errorf("of the prompt after it: %d tokens are believed, want 15000", got)
	}
	c.must("POST", "/v1/agents/"+agent+"/compactions/"+compaction.ID+"/revert", "")
	c.capture(agent, turn)
	if got := reported(); got != 0 {
		t.Errorf("of a prompt from before the compaction was reverted: %d tokens are believed", got)
	}
}

// A summary request to the agent's own model begins with the prompt that the model got before, unchanged, so that the
// provider's cache stays useful.
func TestSelfCompactionSendsWhatTheModelWasSent(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	c.work()
	provider := llmtest.New(t)
	models, err := agenttest.Models(provider, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	c.own().Agents.Compaction.Models = models
	agent := c.made("/v1/agents", `{"name":"Ada","model":"openai/some-model","context_window_limit":16000,`+
		`"memory_blocks":[{"label":"persona","value":"<calm>"}]}`)
	c.capture(agent, `{"messages":[{"role":"user","content":[{"type":"text","text":"What is in /srv/a.txt?"},
		{"type":"text","text":"And in b?"}]},
		{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"read",
		"arguments":"{\"path\": \"a\"}"}},
			{"id":"c2","type":"function","function":{"name":"read","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"c2","content":""},{"role":"tool","tool_call_id":"c1","content":"A & B"}]}`)
	c.capture(agent, chatter(1, 30, "hello"))
	var handed struct {
		Request struct {
			Messages []llmtest.Message `json:"messages"`
			Tools    json.RawMessage   `json:"tools"`
		} `json:"request"`
	}
	if err := json.Unmarshal([]byte(c.must("GET", "/v1/agents/"+agent+"/prompt?format=openai", "")), &handed); err != nil {
		t.Fatal(err)
	}
	handed.Request.Messages = slices.DeleteFunc(handed.Request.Messages, func(m llmtest.Message) bool {
		return m.Content != nil && strings.Contains(*m.Content, frame.State)
	})
	result := c.compact("/v1/agents/"+agent+"/summarize", `{"compaction_settings":{"mode":"self_compact_sliding_window"}}`)
	asked := provider.Requests()
	if result.Compaction == nil || len(asked) == 0 {
		t.Fatalf("compacted: %+v, after %d requests", result, len(asked))
	}
	first := asked[0]
	common := len(first.Messages) - 1 // the last message asks for the summary
	if first.Messages[common-1].Content != nil && *first.Messages[common-1].Content != *at(handed.Request.Messages,
		common-1).Content {
		common-- // before it may stand an assistant message, if the last message was not the assistant's
	}
	if diff := cmp.Diff(handed.Request.Messages[:common], first.Messages[:common], jsonEqual); common < 10 || diff != "" {
		t.Errorf("of the %d messages sent, %d are not as before (-handed out +asked):\n%s", len(first.Messages), common, diff)
	}
	if diff := cmp.Diff(handed.Request.Tools, first.Tools, jsonEqual); diff != "" {
		t.Errorf("the tools (-handed out +asked):\n%s", diff)
	}
}

func at(messages []llmtest.Message, i int) llmtest.Message { return messages[min(i, len(messages)-1)] }

// jsonEqual compares JSON by its values.
var jsonEqual = cmp.Transformer("JSON", func(raw json.RawMessage) (value any) {
	_ = json.Unmarshal(raw, &value) // nil decodes to nil
	return value
})

// If there is nothing to compact, the counts are equal, the answer says why, and nothing is recorded. If no smaller
// view is possible, the request is refused.
func TestACompactionOfNothingAnswersEqualCounts(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	target := "/v1/agents/" + agent + "/summarize"
	check := func(after, body string, sent int, why string) {
		t.Helper()
		var got letta.Compacted
		text := c.must("POST", target, body)
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		if got.Before != sent || got.After != sent || got.Summary != "" || got.Compaction != nil ||
			got.Unchanged == nil || !strings.Contains(*got.Unchanged, why) || got.Plan.Before != got.Plan.After ||
			strings.Contains(text, `"kept":null`) || strings.Contains(text, `"edits":null`) {
			t.Errorf("%s: got %s, want %d messages before and after", after, text, sent)
		}
	}
	for _, body := range []string{`{}`, `{"dry_run":true}`} {
		check("instructions alone", body, 1, "no messages")
	}
	c.append(agent, "default", draft(recall.User, said("hi")))
	got := c.call("POST", target, `{"compaction_settings":{"mode":"all"}}`)
	if got.Code != 400 || !strings.Contains(got.Text, "the newest of the user") {
		t.Errorf("a message that stays: got %d %s", got.Code, got.Text)
	}
	for range 3 {
		c.append(agent, "default", draft(recall.User, said(strings.Repeat("word ", 500))),
			draft(recall.Assistant, said(strings.Repeat("word ", 500))))
	}
	c.must("POST", target, `{}`)
	check("again", `{}`, c.inContext(agent), "within")
	if list := c.list("/v1/agents/" + agent + "/compactions"); len(list) != 1 {
		t.Errorf("%d compactions are recorded, want 1", len(list))
	}
}
