package server_test

import (
	"bufio"
	stdcmp "cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/queue/queuetest"
	"github.com/loci-memory/loci/server"
	"github.com/loci-memory/loci/server/servertest"
)

// newLoop gives a server a loop with a model at a URL, or without a model if the URL is empty. The loop runs until the
// test ends.
func newLoop(t testing.TB, s *server.Server, baseURL string) *loop.Loop {
	t.Helper()
	if baseURL == "" {
		return newLoopOf(t, s, nil)
	}
	return newLoopOf(t, s, clientsOf(t, baseURL))
}

// clientsOf returns clients of the model at a URL, by format.
func clientsOf(t testing.TB, baseURL string) map[string]model.Client {
	t.Helper()
	chat, err := model.NewOpenAI(model.Config{BaseURL: baseURL + "/v1", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	claude, err := model.NewAnthropic(model.Config{BaseURL: baseURL, APIKey: "k"})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]model.Client{chat.Format(): chat, claude.Format(): claude}
}

// newLoopOf gives a server a loop with clients by format. There may be none.
func newLoopOf(t testing.TB, s *server.Server, clients map[string]model.Client) *loop.Loop {
	t.Helper()
	config := loop.Loop{DB: s.DB, Agents: s.Agents, Recall: s.Recall, Tools: s.Tools, Server: "test-" + t.Name(),
		Log: s.Log, Render: server.RunItems, FirstPause: time.Nanosecond, LimitPatience: 3 * time.Second}
	if clients != nil {
		config.Models = func(handle string) (loop.Model, error) {
			if name, ok := strings.CutPrefix(handle, "anthropic/"); ok {
				return loop.Model{Client: clients["anthropic"], Name: name}, nil
			}
			return loop.Model{Client: clients["openai"], Name: "m"}, nil
		}
	}
	l := loop.New(config)
	t.Cleanup(runLoop(l))
	return l
}

// runLoop runs a loop until the returned function is called. The loop takes over no runs, because a test's servers are
// not announced.
func runLoop(l *loop.Loop) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { l.Run(ctx, nil) })
	return func() {
		cancel()
		running.Wait()
	}
}

// runner is a client of a server that asks a scripted model for its agents' answers.
type runner struct {
	*client
	model *modeltest.Model
	agent string
}

// newRunner returns a runner in an organization of its own, on a server that several tests share. The test must not
// change the server; if it has to, it uses newOwnRunner. Nobody works on the server's jobs.
func newRunner(t *testing.T, agent string) runner {
	t.Helper()
	c := *runnerServer()
	c.t, c.shared, c.stopWatching = t, true, func() { t.Fatal("this test would stop the server of all tests") }
	c.org = dbtest.NewOrg(t, c.pool)
	c.home, c.open = c.org, c.org
	serverLog.Follow(t, c.org)
	m := modeltest.New(t)
	scripted.Store(c.org, clientsOf(t, m.URL))
	t.Cleanup(func() { c.endRuns(m) })
	return c.runner(m, agent)
}

// newOwnRunner returns a runner of a server that belongs to the test.
func newOwnRunner(t *testing.T, agent string) runner {
	t.Helper()
	return newRunnerOf(newServerClient(t), agent)
}

// runnerServer returns a client of the server that newRunner uses.
var runnerServer = sync.OnceValue(func() *client {
	t := dbtest.Program()
	pool, _ := dbtest.Org(t)
	s := newServerWith(t, pool, queuetest.Jobs(t, pool, 0, river.Config{}))
	s.OpenOrg = openOrg
	s.Loop = newLoopOf(t, s, map[string]model.Client{"openai": ofOrg("openai"), "anthropic": ofOrg("anthropic")})
	s.Children.Loop = s.Loop
	return &client{Handler: s.Handler(), server: s, pool: pool, stopWatching: watch(t, s)}
})

// ofOrg is a client with a format. It uses the scripted model of the organization that asks.
type ofOrg string

// scripted holds the clients of organizations, by format.
var scripted sync.Map

func (format ofOrg) client(ctx context.Context) model.Client {
	clients, ok := scripted.Load(db.OrgOf(ctx))
	if !ok {
		return nil
	}
	return clients.(map[string]model.Client)[string(format)]
}

func (format ofOrg) Answer(ctx context.Context, r model.Request, show func(model.Delta)) (model.Answer, error) {
	c := format.client(ctx)
	if c == nil {
		return model.Answer{}, &model.Fault{Kind: model.Failed, Err: errors.New("the test has ended")}
	}
	return c.Answer(ctx, r, show)
}

func (format ofOrg) Format() string { return string(format) }

func (ofOrg) Address() string { return "the address of a test's model" }

// endRuns ends the runs of a finished test.
func (c *client) endRuns(m *modeltest.Model) {
	scripted.Delete(c.org)
	m.CloseClientConnections()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		running, err := db.One[int](context.Background(), c.pool,
			`SELECT count(*) FROM runs WHERE org = $1 AND completed_at IS NULL`, c.org)
		switch {
		case err != nil:
			c.t.Errorf("end the test's runs: %v", err)
			return
		case running == 0:
			return
		case time.Now().After(deadline):
			c.t.Errorf("%d runs of the test have not ended", running)
			return
		}
	}
}

// newRunnerOf makes a runner of a client, which must have its own server.
func newRunnerOf(c *client, agent string) runner {
	c.t.Helper()
	m := modeltest.New(c.t)
	c.own().Loop = newLoop(c.t, c.server, m.URL)
	c.own().Children.Loop = c.server.Loop
	return c.runner(m, agent)
}

// runner makes a runner of a client. A model answers for its agents.
func (c *client) runner(m *modeltest.Model, agent string) runner {
	c.t.Helper()
	if agent == "" {
		agent = `{"name":"a","tool_set":"standard","memory_blocks":[{"label":"human","value":"Ada."}]}`
	}
	return runner{c, m, c.made("/v1/agents", agent)}
}

func (r runner) path() string { return "/v1/agents/" + r.agent + "/messages" }

// answer is the API's answer about a run.
type answer struct {
	Messages   []map[string]any
	StopReason struct {
		StopReason string `json:"stop_reason"`
	} `json:"stop_reason"`
	Usage struct {
		Prompt  int      `json:"prompt_tokens"`
		Steps   int      `json:"step_count"`
		RunIDs  []string `json:"run_ids"`
		Context int      `json:"context_tokens"`
	}
	RunID string `json:"run_id"`
	Error *struct {
		Type    string `json:"error_type"`
		Message string
		Detail  string
	}
	Code int `json:"-"`
}

// send sends a request to the agent. If the model's provider failed, the answer comes from the run's record.
func (r runner) send(body string) answer {
	r.t.Helper()
	return r.answerOf(r.call("POST", r.path(), body))
}

// answerOf decodes the answer about a run.
func (r runner) answerOf(got servertest.Reply) answer {
	r.t.Helper()
	var a answer
	if err := json.Unmarshal([]byte(got.Text), &a); err != nil || a.RunID == "" {
		r.t.Fatalf("got %d %s (%v), want the answer of a run", got.Code, got.Text, err)
	}
	if a.Code = got.Code; got.Code == http.StatusOK {
		return a
	}
	run := fields(r.t, r.must("GET", "/v1/runs/"+a.RunID, ""))
	a.StopReason.StopReason, _ = run["stop_reason"].(string)
	a.Error.Type, a.Error.Detail = "", ""
	if failed, hasError := run["error"].(map[string]any); hasError {
		a.Error.Type, _ = failed["error_type"].(string)
		a.Error.Message, _ = failed["message"].(string)
		a.Error.Detail, _ = failed["detail"].(string)
	}
	for _, m := range r.list("/v1/runs/" + a.RunID + "/messages?order=asc") {
		if m["message_type"] != "user_message" && m["message_type"] != "system_message" {
			a.Messages = append(a.Messages, m)
		}
	}
	return a
}

// itemTexts summarizes messages as their types and contents.
func itemTexts(messages []map[string]any) (all []string) {
	for _, m := range messages {
		text := fmt.Sprint(m["message_type"])
		switch {
		case m["content"] != nil:
			text += " " + fmt.Sprint(m["content"])
		case m["reasoning"] != nil:
			text += " " + fmt.Sprint(m["reasoning"])
		case m["tool_returns"] != nil:
			text += " " + fmt.Sprint(m["tool_call_id"]) + " " + fmt.Sprint(m["status"])
		case m["tool_calls"] != nil:
			calls, _ := m["tool_calls"].([]any)
			for _, c := range calls {
				text += " " + fmt.Sprint(c.(map[string]any)["name"])
			}
		case m["approvals"] != nil:
			for _, a := range m["approvals"].([]any) {
				answered := a.(map[string]any)
				text += fmt.Sprintf(" %v=%v", answered["tool_call_id"], stdcmp.Or(answered["approve"], answered["tool_return"]))
			}
		case m["stop_reason"] != nil:
			text += " " + fmt.Sprint(m["stop_reason"])
		}
		all = append(all, text)
	}
	return all
}

func (r runner) log() []string {
	r.t.Helper()
	var list []map[string]any
	if err := json.Unmarshal([]byte(r.must("GET", r.path()+"?limit=1000&include_err=true", "")), &list); err != nil {
		r.t.Fatal(err)
	}
	return itemTexts(list)[1:] // without the system prompt
}

func checkSaid(t *testing.T, what string, got, want []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

const hello = `{"messages":[{"role":"user","content":"Hello"}]}`

func callOf(id, name, args string) modeltest.Answer {
	return modeltest.Answer{Calls: []modeltest.Call{{ID: id, Name: name, Arguments: args}}}
}

func TestAnAgentAnswersAndUsesItsTools(t *testing.T) {
	t.Parallel()
	for _, handle := range []string{"openai/gpt-4o-mini", "anthropic/claude-sonnet-4-5"} {
		r := newRunner(t, `{"name":"a","tool_set":"standard","model":"`+handle+
			`","memory_blocks":[{"label":"human","value":"Ada."}]}`)
		r.model.Says(modeltest.Answer{Reasoning: "I note it.", Text: "One moment.", PromptTokens: 2000,
			Calls: []modeltest.Call{
				{ID: "a", Name: "memory_insert", Arguments: `{"label":"human","new_string":"She likes tea."}`},
				{ID: "b", Name: "conversation_search", Arguments: `{"query":"tea"}`}}},
			modeltest.Answer{Text: "Noted.", PromptTokens: 2100})
		got := r.send(`{"messages":[{"role":"user","content":"I like tea"}]}`)
		want := []string{"reasoning_message I note it.", "assistant_message One moment.",
			"tool_call_message memory_insert conversation_search", "tool_return_message a success",
			"tool_return_message b success", "assistant_message Noted."}
		checkSaid(t, handle+": the answer", itemTexts(got.Messages), want)
		if got.StopReason.StopReason != "end_turn" || got.Usage.Prompt != 4100 || got.Usage.Steps != 2 || got.RunID == "" ||
			got.Error != nil {
			t.Errorf("%s: got %+v", handle, got)
		}
		checkSaid(t, handle+": the log", r.log(), append([]string{"user_message I like tea"}, want...))
		if block := r.must("GET", "/v1/agents/"+r.agent+"/core-memory/blocks/human", ""); !strings.Contains(block,
			"She likes tea.") {
			t.Errorf("%s: the block is %s", handle, block)
		}
		asked := r.model.Requests()
		if len(asked) != 2 || !strings.Contains(string(asked[1].Body), "She likes tea.") {
			t.Errorf("%s: the model was asked %d times; the last prompt lacks what was noted", handle, len(asked))
		}
	}
}

// stream sends a request with a streamed answer. It returns the stream's items, and the names of its events.
func (r runner) stream(path, body string) (items []map[string]any, names []string) {
	r.t.Helper()
	got := r.call("POST", path, body)
	if got.Code != 200 || !strings.HasPrefix(got.Header().Get("Content-Type"), "text/event-stream") {
		r.t.Fatalf("POST %s: got %d %s", path, got.Code, got.Text)
	}
	return readStream(r.t, got.Text)
}

// readStream returns the items of a stream, and the names of its events. The stream must have ended.
func readStream(t *testing.T, text string) (items []map[string]any, names []string) {
	t.Helper()
	done := false
	for line := range strings.Lines(text) {
		name, named := strings.CutPrefix(strings.TrimSpace(line), "event: ")
		if named {
			names = append(names, name)
		}
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		switch {
		case !ok:
		case data == "[DONE]":
			done = true
		default:
			items = append(items, fields(t, data))
		}
	}
	if !done {
		t.Errorf("the stream has no end: %s", text)
	}
	return items, names
}

func TestAnAnswerIsStreamed(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	script := func() {
		r.model.Says(modeltest.Answer{Reasoning: "Hm..", Text: "Wait", Calls: []modeltest.Call{
			{ID: "a", Name: "conversation_search", Arguments: `{"query":"tea"}`}}}, modeltest.Answer{Text: "Done"})
	}
	script()
	items, _ := r.stream(r.path()+"/stream", hello)
	checkSaid(t, "steps", itemTexts(items), []string{"ping", "reasoning_message Hm..", "assistant_message Wait",
		"tool_call_message conversation_search", "tool_return_message a success", "assistant_message Done",
		"stop_reason end_turn", "usage_statistics"})
	script()
	items, _ = r.stream(r.path(), `{"input":"Hello","streaming":true,"stream_tokens":true,"include_pings":false}`)
	checkSaid(t, "tokens", itemTexts(items), []string{"reasoning_message Hm", "reasoning_message ..",
		"assistant_message Wa", "assistant_message it", "tool_call_message", "tool_call_message", "tool_call_message",
		"tool_return_message a success", "assistant_message Do", "assistant_message ne", "stop_reason end_turn",
		"usage_statistics"})
	arguments := ""
	for _, item := range items[4:7] {
		call := item["tool_call"].(map[string]any)
		if arguments += fmt.Sprint(call["arguments"]); call["tool_call_id"] != "a" {
			t.Errorf("a piece of a call is %v", call)
		}
	}
	if arguments != `{"query":"tea"}` {
		t.Errorf("the pieces of the arguments make %s", arguments)
	}
	ids := map[any]bool{}
	for _, m := range r.list(r.path()) {
		ids[m["id"]] = true
	}
	for _, item := range items[:len(items)-2] {
		if !ids[item["id"]] || item["run_id"] == nil || item["date"] == nil {
			t.Errorf("the log lacks the message of %v", item)
		}
	}
	conversation := r.made("/v1/conversations?agent_id="+r.agent, `{}`)
	items, _ = r.stream("/v1/conversations/"+conversation+"/messages", `{"input":"Hello"}`)
	checkSaid(t, "a conversation", itemTexts(items), []string{"ping", "assistant_message Done.", "stop_reason end_turn",
		"usage_statistics"})
	whole := r.must("POST", "/v1/conversations/"+conversation+"/messages", `{"input":"Hello","streaming":false}`)
	if !strings.Contains(whole, `"stop_reason":"end_turn"`) || fields(t, whole)["messages"] == nil {
		t.Errorf("without a stream: got %s", whole)
	}
}

// list returns the items of a list.
func (r runner) list(target string) (list []map[string]any) {
	r.t.Helper()
	if err := json.Unmarshal([]byte(r.must("GET", target, "")), &list); err != nil {
		r.t.Fatal(err)
	}
	return list
}

func TestFaultsOfAModelEndARunAndBreakNoHistory(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		answers []modeltest.Answer
		stop    string
		said    []string
	}{
		{"no credit", []modeltest.Answer{{Status: 402}}, "insufficient_credits", nil},
		{"a quota", []modeltest.Answer{{Status: 429, Text: `{"error":{"message":"No.","code":"insufficient_quota"}}`}},
			"insufficient_credits", nil},
		{"a failure of the provider", []modeltest.Answer{{Status: 500}, {Status: 503}, {Status: 502}}, "llm_api_error", nil},
		{"connections that are closed", []modeltest.Answer{{Closes: true}, {Closes: true}, {Closes: true}}, "llm_api_error",
			nil},
		{"arguments that are an object", []modeltest.Answer{{Raw: `data: {"choices":[{"delta":{"tool_calls":[{"id":"a",` +
			`"function":{"name":"conversation_search","arguments":{"query":"x"}}}]},"finish_reason":"stop"}]}` + "\n\n"},
			{Raw: `{"choices":[{"message":{"content":[{"type":"text","text":"Found"}]}}]}`}}, "end_turn",
			[]string{"tool_call_message conversation_search", "tool_return_message a success", "assistant_message Found"}},
		{"a limit that passes", []modeltest.Answer{{Status: 429}, {Status: 529}, {Text: "Hello"}}, "end_turn",
			[]string{"assistant_message Hello"}},
		{"a limit that passes within the patience", slices.Repeat([]modeltest.Answer{{Status: 429}}, 5), "end_turn",
			[]string{"assistant_message Done."}},
		{"a long limit", []modeltest.Answer{{Status: 429, Header: http.Header{"Retry-After": {"61"}}}}, "llm_api_error", nil},
		{"a stream that breaks off is asked for again", []modeltest.Answer{{Text: "He", Cut: true}, {Text: "Hello"}},
			"end_turn", []string{"assistant_message Hello"}},
		{"streams that break off", []modeltest.Answer{{Text: "He", Cut: true}, {Text: "He", Cut: true}, {Text: "He",
			Ends: true}}, "llm_api_error", nil},
		{"empty answers", []modeltest.Answer{{Reasoning: "x"}, {Reasoning: "x"}, {Reasoning: "x"}}, "invalid_llm_response",
			nil},
		{"garbage", []modeltest.Answer{{Raw: "data: {]\n\n"}, {Raw: "data: {]\n\n"}, {Raw: "data: {]\n\n"}},
			"invalid_llm_response", nil},
		{"an answer that is cut", []modeltest.Answer{{Text: "Hel", Finish: "length"}}, "max_tokens_exceeded",
			[]string{"assistant_message Hel"}},
		{"an answer that is cut within a call", []modeltest.Answer{{Finish: "length", Calls: []modeltest.Call{{ID: "a",
			Name: "memory_insert", Arguments: `{"label":"hu`}}}}, "max_tokens_exceeded",
			[]string{"assistant_message [This answer was cut off within a call of memory_insert, which was not made.]"}},
		{"an unknown tool", []modeltest.Answer{callOf("a", "nothing", `{}`), {Text: "Sorry"}}, "end_turn",
			[]string{"tool_call_message nothing", "tool_return_message a error", "assistant_message Sorry"}},
		{"arguments that are no JSON", []modeltest.Answer{callOf("a", "memory_insert", `{"la`), {Text: "Sorry"}}, "end_turn",
			[]string{"tool_call_message memory_insert", "tool_return_message a error", "assistant_message Sorry"}},
		{"a failure after a call", []modeltest.Answer{callOf("a", "conversation_search", `{"query":"x"}`),
			{Status: 400, Text: "bad"}},
			"llm_api_error", []string{"tool_call_message conversation_search", "tool_return_message a success"}},
		{"a prompt that is too long", []modeltest.Answer{{Status: 400, Text: "maximum context length is 8 tokens"}},
			"context_window_overflow_in_system_prompt", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, "")
			r.model.Says(c.answers...)
			got := r.send(hello)
			checkSaid(t, "the answer", itemTexts(got.Messages), c.said)
			if got.StopReason.StopReason != c.stop {
				t.Errorf("got the stop reason %s (%+v), want %s", got.StopReason.StopReason, got.Error, c.stop)
			}
			failed := !slices.Contains([]string{"end_turn", "max_tokens_exceeded"}, c.stop)
			if c.stop == "insufficient_credits" && (got.Error == nil || !strings.Contains(got.Error.Message, "no credit left")) {
				t.Errorf("got the error %+v", got.Error)
			}
			if failed != (got.Error != nil) {
				t.Errorf("got the error %+v with %s", got.Error, c.stop)
			}
			run := fields(t, r.must("GET", "/v1/runs/"+got.RunID, ""))
			if run["stop_reason"] != c.stop {
				t.Errorf("the run is %v", run)
			}
			r.model.Says(modeltest.Answer{Text: "Here again."})
			if again := r.send(`{"input":"Again"}`); again.StopReason.StopReason != "end_turn" {
				t.Errorf("the next request: %+v", again)
			}
			if prompt := r.must("GET", "/v1/agents/"+r.agent+"/prompt?format=openai", ""); strings.Contains(prompt,
				"was not recorded") {
				t.Errorf("a call has no result: %s", prompt)
			}
		})
	}
}

func TestAFailedStreamSaysWhy(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	r.model.Says(modeltest.Answer{Status: 401})
	items, names := r.stream(r.path()+"/stream", hello)
	checkSaid(t, "the stream", itemTexts(items), []string{"ping", "stop_reason llm_api_error", "error_message"})
	last := items[len(items)-1]
	if !slices.Equal(names, []string{"error"}) || last["error_type"] != "llm_api_error" || last["run_id"] == nil {
		t.Errorf("got %v, %v", names, last)
	}
	if text := fmt.Sprint(last["message"]); strings.Contains(text, "LOCI_") || strings.Contains(text, "127.0.0.1") {
		t.Errorf("the error tells %q", text)
	}
}

func TestWithoutAModelNothingIsStored(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	c.own().Loop = newLoop(t, c.server, "")
	agent := c.made("/v1/agents", `{"name":"a"}`)
	before := c.must("GET", "/v1/agents/"+agent+"/messages", "")
	got := c.call("POST", "/v1/agents/"+agent+"/messages", hello)
	for _, word := range []string{"LOCI_LLM_BASE_URL", "LOCI_LLM_MODEL", "/prompt", "/messages/capture"} {
		if got.Code != 503 || !strings.Contains(got.Text, word) || got.Header().Get("X-Should-Retry") != "false" {
			t.Errorf("got %d %s, want %s in it", got.Code, got.Text, word)
		}
	}
	if after := c.must("GET", "/v1/agents/"+agent+"/messages", ""); after != before {
		t.Errorf("the log has %s", after)
	}
}

func TestClientToolsAndApprovals(t *testing.T) {
	t.Parallel()
	r := newRunner(t, `{"name":"a","tool_set":"standard","memory_blocks":[{"label":"human","value":"Ada."}],
		"tool_rules":[{"type":"requires_approval","tool_name":"memory_insert"}]}`)
	tools := `"client_tools":[{"name":"weather","description":"Tells the weather.","parameters":{"type":"object",
		"properties":{"place":{"type":"string"}}}}]`
	r.model.Says(modeltest.Answer{Calls: []modeltest.Call{{ID: "w", Name: "weather", Arguments: `{"place":"Oslo"}`},
		{ID: "s", Name: "conversation_search", Arguments: `{"query":"x"}`},
		{ID: "i", Name: "memory_insert", Arguments: `{"label":"human","new_string":"In Oslo."}`}}})
	got := r.send(`{"input":"Hello",` + tools + `}`)
	checkSaid(t, "asked", itemTexts(got.Messages), []string{"tool_call_message conversation_search",
		"approval_request_message weather memory_insert", "tool_return_message s success"})
	if got.StopReason.StopReason != "requires_approval" {
		t.Errorf("got %+v", got.StopReason)
	}
	if !strings.Contains(string(r.model.Requests()[0].Body), `"Tells the weather."`) {
		t.Error("the model was not given the client's tool")
	}
	refused := r.call("POST", r.path(), hello)
	if refused.Code != 409 || !strings.Contains(refused.Text, "Cannot send a new message: "+
		"The agent is waiting for approval on a tool call. Please approve or deny the pending request before continuing") ||
		fields(t, refused.Text)["pending_request_id"] != got.Messages[1]["id"] {
		t.Errorf("another message: got %d %s", refused.Code, refused.Text)
	}
	detail, _ := fields(t, refused.Text)["detail"].(map[string]any)
	if detail["code"] != "PENDING_APPROVAL" || detail["pending_request_id"] != got.Messages[1]["id"] ||
		detail["message"] != fields(t, refused.Text)["message"] || fmt.Sprint(detail["message"]) == "" {
		t.Errorf("the detail is %v", detail)
	}
	wrong := `{"messages":[{"type":"approval","approvals":[{"type":"approval","approve":true,"tool_call_id":"x"}]}]}`
	if got := r.call("POST", r.path(), wrong); got.Code != 400 || !strings.Contains(got.Text, "Invalid tool call IDs") {
		t.Errorf("an approval of nothing: got %d %s", got.Code, got.Text)
	}
	got = r.send(`{"messages":[{"type":"tool_return","tool_returns":[{"type":"tool","tool_call_id":"w",
		"tool_return":"Rain","status":"success"}]}],` + tools + `}`)
	if got.StopReason.StopReason != "requires_approval" || len(r.model.Requests()) != 1 {
		t.Errorf("one of two: got %+v after %d prompts", got, len(r.model.Requests()))
	}
	r.model.Says(callOf("j", "memory_insert", `{"label":"human","new_string":"Rain."}`))
	got = r.send(`{"messages":[{"type":"approval","approvals":[{"type":"approval","approve":true,"tool_call_id":"i"}]}]}`)
	checkSaid(t, "approved", itemTexts(got.Messages), []string{"tool_return_message i success",
		"approval_request_message memory_insert"})
	r.model.Says(modeltest.Answer{Text: "As you like."})
	got = r.send(`{"messages":[{"type":"approval","approve":false,"approval_request_id":"` +
		fmt.Sprint(got.Messages[1]["id"]) + `","reason":"No rain"}]}`)
	checkSaid(t, "denied", itemTexts(got.Messages), []string{"tool_return_message j error",
		"assistant_message As you like."})
	block := r.must("GET", "/v1/agents/"+r.agent+"/core-memory/blocks/human", "")
	if !strings.Contains(block, "In Oslo.") || strings.Contains(block, "Rain.") {
		t.Errorf("the block is %s", block)
	}
	if asked := r.model.Requests(); !strings.Contains(string(asked[len(asked)-1].Body), "No rain") {
		t.Error("the model was not told why")
	}
}

func TestRulesOfToolsHold(t *testing.T) {
	t.Parallel()
	r := newRunner(t, `{"name":"a","tool_set":"standard","memory_blocks":[{"label":"human","value":"Ada."}],
		"tool_rules":[{"type":"run_first","tool_name":"conversation_search"},
		{"type":"constrain_child_tools","tool_name":"conversation_search","children":["memory_insert","memory_replace"]},
		{"type":"exit_loop","tool_name":"memory_insert"}]}`)
	r.model.Says(callOf("a", "memory_replace", `{}`), callOf("b", "conversation_search", `{"query":"x"}`),
		callOf("c", "memory_insert", `{"label":"human","new_string":"x"}`))
	got := r.send(hello)
	checkSaid(t, "the answer", itemTexts(got.Messages), []string{"tool_call_message memory_replace",
		"tool_return_message a error", "tool_call_message conversation_search", "tool_return_message b success",
		"tool_call_message memory_insert", "tool_return_message c success"})
	if got.StopReason.StopReason != "tool_rule" {
		t.Errorf("got %+v", got.StopReason)
	}
	asked := r.model.Requests()
	if string(asked[0].Fields["tool_choice"]) != `{"function":{"name":"conversation_search"},"type":"function"}` ||
		string(asked[2].Fields["tool_choice"]) != `"required"` ||
		strings.Contains(string(asked[2].Fields["tools"]), `"archival_memory_insert"`) {
		t.Errorf("the choices were %s and %s", asked[0].Fields["tool_choice"], asked[2].Fields["tool_choice"])
	}
	r = newRunner(t, `{"name":"a","tool_set":"standard",
		"tool_rules":[{"type":"required_before_exit","tool_name":"conversation_search"}]}`)
	r.model.Says(modeltest.Answer{Text: "Bye"}, callOf("b", "conversation_search", `{"query":"x"}`),
		modeltest.Answer{Text: "Bye now"})
	if got := r.send(hello); got.StopReason.StopReason != "end_turn" || len(r.model.Requests()) != 3 {
		t.Errorf("got %+v after %d prompts", got, len(r.model.Requests()))
	}
	r = newRunner(t, "")
	r.model.Reply = func(modeltest.Asked) modeltest.Answer { return callOf("", "conversation_search", `{"query":"x"}`) }
	if got := r.send(`{"input":"x","max_steps":3}`); got.StopReason.StopReason != "max_steps" || got.Usage.Steps != 3 {
		t.Errorf("got %+v", got)
	}
	r.model.Reply = func(modeltest.Asked) modeltest.Answer { return callOf("", "nothing", `{}`) }
	if got := r.send(`{"input":"x"}`); got.StopReason.StopReason != "invalid_tool_call" {
		t.Errorf("got %+v", got)
	}
}

// begun sends a request, and waits until the model is asked.
func (r runner) begun(body string) (reply chan servertest.Reply) {
	r.t.Helper()
	n := len(r.model.Requests())
	reply = make(chan servertest.Reply, 1)
	go func() { reply <- r.call("POST", r.path(), body) }()
	r.model.Await(r.t, n+1)
	return reply
}

func TestOneRunAtATimeAndItsCancellation(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	wait := make(chan struct{})
	said1 := `{"messages":[{"role":"user","content":"Hello","otid":"one"}]}`
	r.model.Says(modeltest.Answer{Text: "Hello", Wait: wait})
	first := r.begun(said1)
	for _, body := range []string{strings.Replace(said1, `]}`, `],"when_busy":"refuse"}`, 1), hello} {
		got := r.call("POST", r.path(), body)
		if run := fmt.Sprint(fields(t, got.Text)["run_id"]); got.Code != 409 || !strings.HasPrefix(run, "run-") ||
			got.Header().Get("X-Should-Retry") != "false" {
			t.Errorf("a second request: got %d %s", got.Code, got.Text)
		}
	}
	close(wait)
	var done answer
	if err := json.Unmarshal([]byte((<-first).Text), &done); err != nil || len(done.Messages) != 1 {
		t.Fatalf("got %+v, %v", done, err)
	}
	done.Code = http.StatusOK
	again := r.send(said1)
	if diff := cmp.Diff(done, again); diff != "" {
		t.Errorf("the same otid again (-first +again):\n%s", diff)
	}
	other := `{"messages":[{"role":"user","content":"Other","otid":"one"}]}`
	if got := r.call("POST", r.path(), other); got.Code != 409 {
		t.Errorf("another text of the same otid: got %d %s", got.Code, got.Text)
	}
	if got := r.call("POST", r.path()+"/cancel", `{}`); got.Code != 409 || !strings.Contains(got.Text, "No active runs") {
		t.Errorf("nothing to cancel: got %d %s", got.Code, got.Text)
	}
	r.model.Says(modeltest.Answer{Text: "Hello", Wait: make(chan struct{})})
	second := r.begun(hello)
	run := regexp.MustCompile(`run-[0-9a-f-]{36}`).FindString(r.must("GET", "/v1/runs/active", ""))
	another := r.made("/v1/agents", `{"name":"another"}`)
	got := r.call("POST", "/v1/agents/"+another+"/messages/cancel", fmt.Sprintf(`{"run_ids":[%q]}`, run))
	if got.Code != 409 {
		t.Errorf("the run of another agent: got %d %s", got.Code, got.Text)
	}
	if got := fields(t, r.must("POST", r.path()+"/cancel", fmt.Sprintf(`{"run_ids":[%q]}`, run))); len(got) != 1 {
		t.Errorf("cancelled %v", got)
	}
	if err := json.Unmarshal([]byte((<-second).Text), &done); err != nil || done.StopReason.StopReason != "cancelled" {
		t.Errorf("got %+v, %v", done, err)
	}
	checkSaid(t, "the log", r.log(), []string{"user_message Hello", "assistant_message Hello", "user_message Hello"})
}

func TestBackgroundRunsAreAttachedToAgain(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	wait := make(chan struct{})
	r.model.Says(callOf("a", "conversation_search", `{"query":"x"}`), modeltest.Answer{Text: "Done", Wait: wait})
	web := httptest.NewServer(r.client)
	defer web.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, "POST", web.URL+r.path(), strings.NewReader(
		`{"input":"Hello","streaming":true,"background":true,"stream_tokens":true}`))
	if err != nil {
		t.Fatal(err)
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	var run string
	last := 0.0
	for lines := bufio.NewScanner(reply.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		item := fields(t, data)
		if run = fmt.Sprint(item["run_id"]); item["seq_id"] != nil {
			last = item["seq_id"].(float64)
		}
		if item["message_type"] == "tool_return_message" {
			break
		}
	}
	cancel()
	close(wait)
	items, _ := r.stream("/v1/runs/"+run+"/stream", fmt.Sprintf(`{"starting_after":%v,"include_pings":false}`, last))
	checkSaid(t, "the rest", itemTexts(items), []string{"assistant_message Do", "assistant_message ne",
		"stop_reason end_turn", "usage_statistics"})
	for i, item := range items {
		if item["seq_id"] != last+1+float64(i) {
			t.Errorf("item %d after %v has the number %v", i, last, item["seq_id"])
		}
	}
	all, _ := readStream(t, r.must("GET", "/v1/runs/"+run+"/stream?starting_after=0", ""))
	if len(all) != int(last)+4+1 { // a ping
		t.Errorf("the whole stream has %d items, want %v", len(all), last+5)
	}
	if got := r.call("POST", "/v1/conversations/"+r.agent+"/stream", `{}`); got.Code != 400 ||
		!strings.Contains(got.Text, "No active runs found") {
		t.Errorf("no active run: got %d %s", got.Code, got.Text)
	}
	foreground := r.send(hello).RunID
	if got := r.call("POST", "/v1/runs/"+foreground+"/stream", `{}`); got.Code != 400 {
		t.Errorf("a run of the foreground: got %d %s", got.Code, got.Text)
	}
	async := fields(t, r.must("POST", r.path()+"/async", hello))
	items, _ = r.stream("/v1/runs/"+fmt.Sprint(async["id"])+"/stream", `{"include_pings":false}`)
	checkSaid(t, "async", itemTexts(items), []string{"assistant_message Done.", "stop_reason end_turn",
		"usage_statistics"})
}

func TestRunsAndStepsAreRecords(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	r.model.Says(callOf("a", "conversation_search", `{"query":"x"}`), modeltest.Answer{Text: "Done"})
	got := r.send(hello)
	run := "/v1/runs/" + got.RunID
	if shown := fields(t, r.must("GET", run, "")); shown["status"] != "completed" || shown["agent_id"] != r.agent ||
		shown["completed_at"] == nil || shown["ttft_ns"] == nil {
		t.Errorf("the run is %v", shown)
	}
	for path, want := range map[string]int{"/v1/runs": 1, "/v1/runs/active": 0, "/v1/runs?agent_id=" + r.agent: 1,
		"/v1/runs?statuses=failed": 0, "/v1/jobs": 1, run + "/steps": 2, "/v1/steps": 2, "/v1/steps?has_feedback=true": 0,
		"/v1/runs?stop_reason=end_turn&statuses=completed": 1, "/v1/steps?feedback=positive": 0, "/v1/jobs?source_id=": 1,
		run + "/messages": 4, "/v1/runs?after=" + got.RunID: 0, run + "/messages?limit=2": 2} {
		if list := r.list(path); len(list) != want {
			t.Errorf("GET %s: got %d items, want %d", path, len(list), want)
		}
	}
	for path, word := range map[string]string{"/v1/runs?statuses=zzz": "query.statuses[0]", "/v1/runs?statuses=failed&" +
		"statuses=zzz": "query.statuses[1]", "/v1/jobs?stop_reason=zzz": "query.stop_reason",
		"/v1/steps?feedback=zzz": "query.feedback", "/v1/jobs?source_id=source-x": "query.source_id"} {
		if got := r.call("GET", path, ""); got.Code != 422 || !strings.Contains(got.Text, word) {
			t.Errorf("GET %s: got %d %s, want 422 about %s", path, got.Code, got.Text, word)
		}
	}
	step := r.list(run + "/steps?order=asc")[0]
	if fmt.Sprint(step["completion_tokens_details"]) != "map[reasoning_tokens:0]" {
		t.Errorf("the step is %v, want the details of its tokens", step)
	}
	feedback := "/v1/steps/" + fmt.Sprint(step["id"]) + "/feedback"
	if got := r.call("PATCH", feedback, `{"feedback":"zzz"}`); got.Code != 422 ||
		!strings.Contains(got.Text, "body.feedback") {
		t.Errorf("an unknown feedback: got %d %s", got.Code, got.Text)
	}
	if list := r.list("/v1/steps/" + fmt.Sprint(step["id"]) + "/messages"); len(list) != 2 {
		t.Errorf("the first step has %v", itemTexts(list))
	}
	if usage := fields(t, r.must("GET", run+"/usage", "")); usage["total_tokens"] == 0.0 {
		t.Errorf("the usage is %v", usage)
	}
	metrics := fields(t, r.must("GET", run+"/metrics", ""))
	search := fmt.Sprint(r.list("/v1/tools?name=conversation_search")[0]["id"])
	if fmt.Sprint(metrics["tools_used"]) != "["+search+"]" || metrics["num_steps"] != 2.0 {
		t.Errorf("the metrics are %v, want the tool %s", metrics, search)
	}
	for _, body := range []string{`{"feedback":"zz"}`, `{"feedback":""}`} {
		got := r.call("PATCH", "/v1/steps/"+fmt.Sprint(step["id"])+"/feedback", body)
		if got.Code != 422 || !strings.Contains(got.Text, "positive") {
			t.Errorf("%s: got %d %s", body, got.Code, got.Text)
		}
	}
	liked := fields(t, r.must("PATCH", "/v1/steps/"+fmt.Sprint(step["id"])+"/feedback", `{"feedback":"positive"}`))
	if liked["feedback"] != "positive" {
		t.Errorf("the step is %v", liked)
	}
	r.must("GET", "/v1/steps/"+fmt.Sprint(step["id"])+"/metrics", "")
	r.model.Says(modeltest.Answer{Text: "Again"})
	again := r.send(`{"input":"More"}`)
	for query, want := range map[string]string{"?ascending=true": got.RunID, "?ascending=false": again.RunID,
		"": again.RunID, "?ascending=true&order=desc": again.RunID} {
		for _, path := range []string{"/v1/runs", "/v1/jobs"} {
			if first := r.list(path + query)[0]["id"]; first != want {
				t.Errorf("GET %s%s: the first is %v, want %s", path, query, first, want)
			}
		}
	}
	r.must("DELETE", run, "")
	if got := r.call("GET", run, ""); got.Code != 404 {
		t.Errorf("a deleted run: got %d", got.Code)
	}
	checkSaid(t, "the log", r.log(), []string{"user_message Hello", "tool_call_message conversation_search",
		"tool_return_message a success", "assistant_message Done", "user_message More", "assistant_message Again"})
}

func TestRequestsToAgentsAreChecked(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	for body, word := range map[string]string{
		`{}`:              "expected messages",
		`{"messages":[]}`: "expected messages",
		`{"input":"a","messages":[{"role":"user","content":"x"}]}`: "body.input",
		`{"input":"a","stream_tokens":true}`:                       "stream_tokens",
		`{"input":"a","background":true}`:                          "background",
		`{"input":"a","include_pings":false}`:                      "include_pings",
		`{"input":"a","max_steps":0}`:                              "max_steps",
		`{"messages":[{"role":"tool","content":"x"}]}`:             "role",
		`{"messages":[{"role":"user"}]}`:                           "content",
		`{"messages":[{"type":"other"}]}`:                          "type",
		`{"messages":[{"type":"approval"}]}`:                       "approvals",
		`{"messages":[{"role":"user","content":7}]}`:               "content",
	} {
		if got := r.call("POST", r.path(), body); got.Code != 422 || !strings.Contains(got.Text, word) {
			t.Errorf("%s: got %d %s, want a 422 with %s", body, got.Code, got.Text, word)
		}
	}
	if got := r.call("POST", r.path(), `{"inputs":"a"`); got.Code != 400 {
		t.Errorf("a broken body: got %d %s", got.Code, got.Text)
	}
	if n := len(r.model.Requests()); n > 0 {
		t.Errorf("the model was asked %d times", n)
	}
}

func TestOnlyAWholeRequestIsARepetition(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	hi := `{"role":"user","content":"Hi","otid":"o1"}`
	other := `{"role":"user","content":"IMPORTANT","otid":"o2"}`
	first := r.send(`{"messages":[` + hi + `]}`)
	got := r.call("POST", r.path(), `{"messages":[`+hi+`,`+other+`]}`)
	if got.Code != 409 || !strings.Contains(got.Text, "o1") {
		t.Errorf("a message that is new and one that is not: got %d %s", got.Code, got.Text)
	}
	checkSaid(t, "the log", r.log(), []string{"user_message Hi", "assistant_message Done."})
	second := r.send(`{"messages":[` + other + `]}`)
	if again := r.send(`{"messages":[` + hi + `]}`); again.RunID != first.RunID {
		t.Errorf("a repetition: got %+v, want %+v", again, first)
	}
	if second.RunID == first.RunID || len(r.model.Requests()) != 2 {
		t.Errorf("the new message alone: got %+v", second)
	}
	if got := r.call("POST", r.path(), `{"messages":[`+hi+`,`+other+`]}`); got.Code != 409 {
		t.Errorf("messages of two requests: got %d %s", got.Code, got.Text)
	}
	conversation := r.made("/v1/conversations?agent_id="+r.agent, `{}`)
	before := r.log()
	got = r.call("POST", "/v1/conversations/"+conversation+"/messages", `{"messages":[`+hi+`],"streaming":false}`)
	if got.Code != 409 || !strings.Contains(got.Text, "another conversation") || strings.Contains(got.Text, "Done.") {
		t.Errorf("the otid in another conversation: got %d %s", got.Code, got.Text)
	}
	checkSaid(t, "the log at the end", r.log(), before)
}

func TestAnImpossibleUsageLosesNoAnswer(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	r.model.Says(modeltest.Answer{Raw: `data: {"choices":[{"delta":{"content":"Hello"},"finish_reason":"stop"}]}` +
		"\n\n" + `data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1000000000000000}}` +
		"\n\ndata: [DONE]\n\n"})
	got := r.send(hello)
	checkSaid(t, "the answer", itemTexts(got.Messages), []string{"assistant_message Hello"})
	if got.StopReason.StopReason != "end_turn" || got.Usage.Prompt != 0 || len(r.model.Requests()) != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestImagesThatProvidersRefuseAreRefused(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	for source, word := range map[string]string{
		`{"type":"base64","media_type":"image/png","data":"!!notb64"}`: "base64",
		`{"type":"url","url":"data:image/png;base64,!!notb64"}`:        "base64",
		`{"type":"url","url":"file:///etc/passwd"}`:                    "https",
		`{"type":"url","url":"picture.png"}`:                           "https",
	} {
		body := `{"messages":[{"role":"user","content":[{"type":"image","source":` + source + `}]}]}`
		for _, path := range []string{r.path(), r.path() + "/capture"} {
			if got := r.call("POST", path, body); got.Code != 422 || !strings.Contains(got.Text, word) {
				t.Errorf("%s %s: got %d %s", path, source, got.Code, got.Text)
			}
		}
	}
	checkSaid(t, "the log", r.log(), []string{})
	r.send(`{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png",
		"data":"aGk="}},{"type":"image","source":{"type":"url","url":"HTTPS://x/a.png"}}]}]}`)
}

func TestAnApprovalIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	r := newRunner(t, `{"name":"a","tool_set":"standard","memory_blocks":[{"label":"human","value":"Ada."}],
		"tool_rules":[{"type":"requires_approval","tool_name":"memory_insert"}]}`)
	for _, answer := range []string{`{"type":"approval","approve":true,"tool_call_id":"i"}`,
		`{"type":"approval","approve":false,"tool_call_id":"i","reason":"No"}`} {
		r.model.Says(callOf("i", "memory_insert", `{"label":"human","new_string":"Tea."}`),
			modeltest.Answer{Text: "Noted."})
		r.send(hello)
		otid := fmt.Sprint("otid-", strings.Contains(answer, "true"))
		body := `{"messages":[{"type":"approval","otid":"` + otid + `","approvals":[` + answer + `]}]}`
		first, asked := r.send(body), len(r.model.Requests())
		if diff := cmp.Diff(first, r.send(body)); diff != "" || len(r.model.Requests()) != asked {
			t.Errorf("%s again (-first +again):\n%s", answer, diff)
		}
		for _, alike := range []string{strings.Replace(body, otid, "unknown", 1),
			strings.Replace(body, `"otid":"`+otid+`",`, "", 1)} {
			if diff := cmp.Diff(first, r.send(alike)); diff != "" || len(r.model.Requests()) != asked {
				t.Errorf("%s again, as %s (-first +again):\n%s", answer, alike, diff)
			}
		}
		opposite := strings.NewReplacer("unknown", "opposite", `"approve":true`, `"approve":false`, `"approve":false`,
			`"approve":true`).Replace(strings.Replace(body, otid, "unknown", 1))
		for _, other := range []string{opposite, strings.Replace(body, `]}]}`,
			`]},{"role":"user","content":"New","otid":"new"}]}`, 1)} {
			if got := r.call("POST", r.path(), other); got.Code != 400 && got.Code != 409 {
				t.Errorf("%s: got %d %s", other, got.Code, got.Text)
			}
		}
		r.model.Says(modeltest.Answer{Text: "Something new."})
		followed := strings.Replace(body, `"otid":"`+otid+`",`, "", 1)
		followed = strings.Replace(followed, `]}]}`, `]},{"role":"user","content":"New"}]}`, 1)
		checkSaid(t, answer+" again, with a text", itemTexts(r.send(followed).Messages), []string{
			"assistant_message Something new."})
	}
}

// A client's result that is sent again, with no otid, gets the answer of its run; another result of the same call none.
func TestAResultIsTakenOnce(t *testing.T) {
	t.Parallel()
	r := newRunner(t, `{"name":"a"}`)
	r.model.Says(callOf("w", "weather", `{}`), modeltest.Answer{Text: "Sunny."})
	r.send(`{"messages":[{"role":"user","content":"Weather?"}],"client_tools":[{"name":"weather"}]}`)
	for _, form := range []string{
		`{"type":"tool_return","tool_returns":[{"type":"tool","tool_call_id":"w","tool_return":"sun","status":"success"}]}`,
		`{"type":"approval","approvals":[{"type":"tool","tool_call_id":"w","tool_return":"sun","status":"success"}]}`,
	} {
		body := `{"messages":[` + form + `]}`
		checkSaid(t, form, itemTexts(r.send(body).Messages), []string{"tool_return_message w success",
			"assistant_message Sunny."})
		if other := strings.Replace(body, "sun", "rain", 1); r.call("POST", r.path(), other).Code != 400 {
			t.Errorf("%s: another result of an answered call was taken", other)
		}
	}
	if n := len(r.model.Requests()); n != 2 {
		t.Errorf("the model was asked %d times, want 2", n)
	}
}

// Rules also hold between the calls of one answer, as if the calls were made one after the other.
func TestRulesHoldWithinAnAnswer(t *testing.T) {
	t.Parallel()
	agent := func(rules string) string {
		return `{"name":"a","tool_set":"standard","memory_blocks":[{"label":"human","value":"Ada."}],"tool_rules":[` +
			rules + `]}`
	}
	insert := func(id, text string) modeltest.Call {
		return modeltest.Call{ID: id, Name: "memory_insert", Arguments: `{"label":"human","new_string":"` + text + `"}`}
	}
	search := modeltest.Call{ID: "s", Name: "conversation_search", Arguments: `{"query":"x"}`}
	r := newRunner(t, agent(`{"type":"max_count_per_step","tool_name":"memory_insert","max_count_limit":1}`))
	r.model.Says(modeltest.Answer{Calls: []modeltest.Call{insert("a", "Tea."), search, insert("b", "Rum.")}})
	got := r.send(hello)
	checkSaid(t, "at most once", itemTexts(got.Messages), []string{
		"tool_call_message memory_insert conversation_search memory_insert", "tool_return_message a success",
		"tool_return_message s success", "tool_return_message b error", "assistant_message Done."})
	r = newRunner(t, agent(`{"type":"constrain_child_tools","tool_name":"conversation_search",
		"children":["memory_replace"]}`))
	r.model.Says(modeltest.Answer{Calls: []modeltest.Call{search, insert("a", "Tea.")}}, modeltest.Answer{Text: "Bye"})
	got = r.send(hello)
	checkSaid(t, "children", itemTexts(got.Messages), []string{"tool_call_message conversation_search memory_insert",
		"tool_return_message s success", "tool_return_message a error", "assistant_message Bye"})
	if asked := r.model.Requests(); string(asked[1].Fields["tool_choice"]) == "" {
		t.Error("the refused call counts: the next answer may be any")
	}
	// The model calls two of the client's tools, and may call only one.
	for _, stream := range []string{`false`, `true,"stream_tokens":true,"include_pings":false`} {
		r = newRunner(t, "")
		r.must("POST", "/v1/tools", weatherTool)
		r.must("PATCH", "/v1/agents/"+r.agent,
			`{"tool_rules":[{"type":"max_count_per_step","tool_name":"weather","max_count_limit":1}]}`)
		r.model.Says(modeltest.Answer{Calls: []modeltest.Call{{ID: "w", Name: "weather", Arguments: `{}`},
			{ID: "x", Name: "weather", Arguments: `{}`}}})
		text := r.must("POST", r.path(), `{"input":"Hello","streaming":`+stream+`,`+clientWeather+`}`)
		if !strings.Contains(text, "requires_approval") || strings.Count(text, `"message_type":"tool_return_message"`) != 1 {
			t.Errorf("streaming %s: got %s", stream, text)
		}
		r.model.Says(modeltest.Answer{Text: "Noted."})
		got = r.send(`{"messages":[{"type":"approval","approvals":[` + resultW + `]}]}`)
		checkSaid(t, "the one result", itemTexts(got.Messages), []string{"tool_return_message w success",
			"assistant_message Noted."})
	}
}

// Two calls with one id are two calls in the stream and in the log.
func TestCallsOfOneIDAreToldApart(t *testing.T) {
	t.Parallel()
	for _, handle := range []string{"openai/gpt-4o-mini", "anthropic/claude-sonnet-4-5"} {
		r := newRunner(t, `{"name":"a","model":"`+handle+`"}`)
		r.model.Says(modeltest.Answer{Calls: []modeltest.Call{{ID: "w", Name: "weather", Arguments: `{"place":"Oslo"}`},
			{ID: "w", Name: "weather", Arguments: `{"place":"Rome"}`}, {Name: "weather", Arguments: `{"place":"Bern"}`}}})
		items, _ := r.stream(r.path(), `{"input":"Hello","streaming":true,"stream_tokens":true,"include_pings":false,`+
			clientWeather+`}`)
		arguments := map[string]string{}
		for _, item := range items {
			if call, ok := item["tool_call"].(map[string]any); ok {
				arguments[fmt.Sprint(call["tool_call_id"])] += fmt.Sprint(call["arguments"])
			}
		}
		log := map[string]string{}
		for _, m := range r.list(r.path()) {
			calls, _ := m["tool_calls"].([]any)
			for _, c := range calls {
				toolCall := c.(map[string]any)
				log[fmt.Sprint(toolCall["tool_call_id"])] = fmt.Sprint(toolCall["arguments"])
			}
		}
		if diff := cmp.Diff(log, arguments); diff != "" || len(log) != 3 {
			t.Errorf("%s: the stream and the log differ (-log +stream):\n%s", handle, diff)
		}
	}
}
