package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/compaction/llm"
	"github.com/loci-memory/loci/compaction/llm/llmtest"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/recall/chat"
)

func TestRequestIsOpenAIs(t *testing.T) {
	t.Parallel()
	p := llmtest.New(t)
	tools := []byte(`[{"type":"function","function":{"parameters":{"b":1,"a":"<x>"},"name":"read","x_cache":true}}]`)
	reply, err := client(t, p, nil).Complete(t.Context(), summary.Request{Tools: tools, MaxTokens: 99,
		Messages: []chat.Message{
			{Role: "system", Content: "S"}, {Role: "user", Content: "U"},
			{Role: "assistant", Calls: []chat.Call{{ID: "c1", Name: "read", Arguments: `{"path":"a.go"}`}}},
			{Role: "tool", CallID: "c1", Content: "R"},
		}})
	if err != nil || reply.Text == "" || reply.Finish != "stop" || reply.PromptTokens == 0 || reply.OutputTokens == 0 {
		t.Fatalf("got %+v, %v", reply, err)
	}
	sent := p.Requests()[0]
	var body map[string]json.RawMessage
	if err := json.Unmarshal(sent.Body, &body); err != nil {
		t.Fatal(err)
	}
	want := `[{"role":"system","content":"S"},{"role":"user","content":"U"},{"role":"assistant",` +
		`"tool_calls":[{"id":"c1","type":"function",` +
		`"function":{"name":"read","arguments":"{\"path\":\"a.go\"}"}}]},{"role":"tool","content":"R","tool_call_id":"c1"}]`
	if diff := cmp.Diff(want, string(body["messages"])); diff != "" {
		t.Errorf("messages: -want +got\n%s", diff)
	}
	if string(body["tools"]) != string(tools) {
		t.Errorf("got tools %s, want them byte for byte", body["tools"])
	}
	if sent.Model != "test-model" || sent.MaxTokens != 99 || sent.Header.Get("Authorization") != "Bearer "+testKey {
		t.Errorf("got model %q, max_tokens %d, authorization %q", sent.Model, sent.MaxTokens,
			sent.Header.Get("Authorization"))
	}
	for _, absent := range []string{"temperature", "tool_choice", "max_completion_tokens"} {
		if _, there := body[absent]; there {
			t.Errorf("%s is sent, and was not asked for", absent)
		}
	}
}

func TestSettingsOfTheModelAreSent(t *testing.T) {
	t.Parallel()
	p := llmtest.New(t)
	s := plan.Settings{ModelSettings: []byte(`{"provider_type":"openai","temperature":0,"max_output_tokens":321,` +
		`"reasoning":{"reasoning_effort":"low"}}`)}
	if _, err := summary.Summarize(t.Context(), visit(), s, &summary.Model{Summarizer: client(t, p, nil),
		Name: "other"}); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Model       string  `json:"model"`
		Temperature float64 `json:"temperature"`
		MaxTokens   int     `json:"max_tokens"`
		Effort      string  `json:"reasoning_effort"`
	}
	if err := json.Unmarshal(p.Requests()[0].Body, &got); err != nil {
		t.Fatal(err)
	}
	if got.Model != "other" || got.Temperature <= 0 || got.Temperature > 1e-9 || got.MaxTokens != 321 ||
		got.Effort != "low" {
		t.Errorf("got %+v", got)
	}
}

func TestAnswersOfEveryShapeAreRead(t *testing.T) {
	t.Parallel()
	text := func(content any) map[string]any { return map[string]any{"role": "assistant", "content": content} }
	parts := []map[string]any{{"type": "thinking", "thinking": []map[string]any{{"type": "text", "text": "hm"}}},
		{"type": "text", "text": "One. "}, {"type": "text", "text": "Two."}}
	for name, c := range map[string]struct {
		answer llmtest.Fault
		text   string
		finish string
	}{
		"a text":                {llmtest.Writes(" Text.\n"), "Text.", "stop"},
		"parts, thoughts aside": {llmtest.Completes(text(parts), "stop"), "One. Two.", "stop"},
		"null, with thoughts":   {llmtest.Null(), "", "stop"},
		"no content at all":     {llmtest.Completes(map[string]any{"role": "assistant"}, "stop"), "", "stop"},
		"a call beside the text": {llmtest.Completes(map[string]any{"content": "Text.",
			"tool_calls": []any{map[string]any{"id": "1", "type": "function",
				"function": map[string]any{"name": "f", "arguments": "{}"}}}}, "tool_calls"), "Text.", "tool_calls"},
		"a refusal": {llmtest.Refuses(), "I'm sorry, but I can't help with that.", summary.Refused},
		"a filter":  {llmtest.Completes(text("Half a"), "content_filter"), "Half a", "content_filter"},
		"no reason to finish": {llmtest.Says(200, `{"choices":[{"message":{"content":"Text."},"finish_reason":null}]}`),
			"Text.", ""},
	} {
		withProvider(t, name, func(t *testing.T, p *llmtest.Provider) {
			p.Next(c.answer)
			reply, err := client(t, p, nil).Complete(t.Context(), ask("hello"))
			if err != nil || reply.Text != c.text || reply.Finish != c.finish {
				t.Errorf("got %+v, %v, want %q by %q", reply, err, c.text, c.finish)
			}
		})
	}
}

func TestFailuresNameTheSettingToCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault    llmtest.Fault
		requests int
		want     string
	}{
		"a wrong key": {llmtest.Says(401, `{"error":{"message":"bad key `+testKey+`"}}`), 1,
			"check LOCI_LLM_API_KEY"},
		"an unknown model": {llmtest.Says(404, `{"error":{"message":"model not found"}}`), 1,
			"LOCI_LLM_MODEL (other-model)"},
		"a limit that stays":           {llmtest.RateLimited(0), 3, "raise the limit of the key in LOCI_LLM_API_KEY"},
		"a limit for an hour":          {llmtest.RateLimited(3600), 1, "try again later"},
		"an error that stays":          {llmtest.Fails(), 3, "status 500: The server had an error"},
		"a proxy's page":               {llmtest.Page(502), 3, "status 502: <!DOCTYPE html>"},
		"a proxy's page for an answer": {llmtest.Page(200), 1, "something else than a chat completion"},
		"garbage":                      {llmtest.Garbage(), 1, "something else than a chat completion"},
		"another shape":                {llmtest.Malformed(), 1, "something else than a chat completion"},
		"no choice":                    {llmtest.NoChoices(), 1, "without a choice"},
		"a bad request": {llmtest.Says(400, `{"error":{"message":"roles must alternate"}}`), 1,
			"refuses the request (status 400: roles must alternate): check LOCI_LLM_MODEL"},
		"a failure with status 200": {llmtest.Says(200, `{"error":{"message":"upstream is gone","code":502}}`), 3,
			"status 502: upstream is gone"},
		"a failure while it wrote": {llmtest.Says(200, `{"choices":[{"message":{"content":"Hal"},"finish_reason":"error",`+
			`"error":{"code":503,"message":"gone"}}]}`), 3, "status 503"},
		"a redirect": {llmtest.Says(307, "", "Location", "http://192.0.2.1/"), 1,
			"set LOCI_LLM_BASE_URL to where it leads"},
		"an endless answer":        {llmtest.TooLong(9 << 20), 1, "with more than the 8388608 bytes"},
		"a connection that breaks": {llmtest.Hangup(), 3, "cannot be reached"},
	} {
		withProvider(t, name, func(t *testing.T, p *llmtest.Provider) {
			p.Always(c.fault)
			request := ask("hello")
			request.Model = "other-model"
			_, err := client(t, p, nil).Complete(t.Context(), request)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), testKey) {
				t.Errorf("got %v, want it to hold %q and not the key", err, c.want)
			}
			if n := len(p.Requests()); n != c.requests {
				t.Errorf("got %d requests, want %d", n, c.requests)
			}
		})
	}
}

func TestTransientFailuresAreRetried(t *testing.T) {
	t.Parallel()
	p := llmtest.New(t)
	p.Next(llmtest.RateLimited(0), llmtest.Hangup())
	c := client(t, p, nil)
	tools := []byte(`[{"type":"function"}]`)
	request := ask("hello")
	request.Tools = tools
	if reply, err := c.Complete(t.Context(), request); err != nil || reply.Text == "" {
		t.Fatalf("got %+v, %v", reply, err)
	}
	if n := len(p.Requests()); n != 3 {
		t.Errorf("got %d requests, want 3", n)
	}
	for i, asked := range p.Requests() {
		if string(asked.Tools) != string(tools) || string(asked.Body) != string(p.Requests()[0].Body) {
			t.Errorf("request %d differs from the first: %s", i+1, asked.Body)
		}
	}
}

func TestAttemptThatHangsEnds(t *testing.T) {
	t.Parallel()
	p := llmtest.New(t)
	release := make(chan struct{})
	defer close(release)
	p.Always(llmtest.Hangs(release))
	_, err := client(t, p, func(c *llm.Config) { c.Timeout = time.Millisecond }).Complete(t.Context(), ask("hello"))
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "does not answer within 1ms") {
		t.Errorf("got %v, want the attempt's deadline", err)
	}
}

func TestCallersContextEndsTheCall(t *testing.T) {
	t.Parallel()
	p := llmtest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	p.Always(func(_ http.ResponseWriter, r *http.Request, _ llmtest.Asked) bool {
		cancel()
		<-r.Context().Done() // wait until the client has left; an earlier answer might still arrive
		return true
	})
	if _, err := client(t, p, nil).Complete(ctx, ask("hello")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestLimitOfTheAnswerIsNamedAsTheModelWantsIt(t *testing.T) {
	t.Parallel()
	p := llmtest.New(t)
	p.Next(llmtest.Says(400, `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this `+
		`model. Use 'max_completion_tokens' instead.","param":"max_tokens","code":"unsupported_parameter"}}`))
	c := client(t, p, nil)
	request := ask("hello")
	request.MaxTokens = 77
	for range 2 {
		if _, err := c.Complete(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	request.Model = "gpt-5-mini"
	if _, err := client(t, p, nil).Complete(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	var got [][2]int
	for _, asked := range p.Requests() {
		got = append(got, [2]int{asked.MaxTokens, asked.MaxCompletionTokens})
	}
	if diff := cmp.Diff([][2]int{{77, 0}, {0, 77}, {0, 77}, {0, 77}}, got); diff != "" {
		t.Errorf("limits: -want +got\n%s", diff)
	}
}

func TestFakeOverflowsLikeAProvider(t *testing.T) {
	t.Parallel()
	p := llmtest.New(t)
	p.Window = 500
	c := client(t, p, nil)
	_, err := c.Complete(t.Context(), ask(strings.Repeat("word ", 600)))
	o, ok := errors.AsType[*summary.Overflow](err)
	if !ok || o.Window != 500 || o.Sent < 750 {
		t.Errorf("got %v", err)
	}
	p.Truncate = true
	if _, err := c.Complete(t.Context(), ask(strings.Repeat("word ", 3000))); !errors.As(err, &o) || o.Window != 500 {
		t.Errorf("cut in silence: got %v", err)
	}
	if _, err := c.Complete(t.Context(), ask("short")); err != nil {
		t.Errorf("what fits: got %v", err)
	}
}

func TestWrongSettingsAreNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		config llm.Config
		want   string
	}{
		{"a blank model", llm.Config{Model: " \t"}, "LOCI_LLM_MODEL is empty"},
		{"a key of two lines", llm.Config{Model: "m", APIKey: "sk-1\n"},
			"LOCI_LLM_API_KEY has a line break or another character that no key has"},
		{"no model", llm.Config{}, "LOCI_LLM_MODEL is empty: name the model that the language model provider serves"},
		{"no scheme", llm.Config{BaseURL: "localhost:11434/v1", Model: "m"}, "LOCI_LLM_BASE_URL"},
		{"a window below nothing", llm.Config{Model: "m", Window: -1}, "LOCI_LLM_CONTEXT_WINDOW is -1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, err := llm.New(c.config); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// withProvider runs a parallel subtest with a provider of its own.
func withProvider(t *testing.T, name string, run func(*testing.T, *llmtest.Provider)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		run(t, llmtest.New(t))
	})
}
