package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/recall"
)

// clients returns one client of each format for a scripted model.
func clients(t *testing.T, m *modeltest.Model) map[string]model.Client {
	t.Helper()
	c := model.Config{APIKey: "sk-secret", Model: "default"}
	c.BaseURL = m.BaseURL()
	o, err := model.NewOpenAI(c)
	if err != nil {
		t.Fatal(err)
	}
	c.BaseURL = m.URL
	a, err := model.NewAnthropic(c)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]model.Client{model.FormatOpenAI: o, model.FormatAnthropic: a}
}

const prompt = `{"model":"other","messages":[{"role":"user","content":"<é>"}],"temperature":0}`

// A prompt that is too large is recognized even if the API key is a single letter that occurs in the provider's error
// text.
func TestAPromptThatIsTooLargeIsNotHiddenByTheKey(t *testing.T) {
	t.Parallel()
	m := modeltest.New(t)
	m.Says(modeltest.Answer{Status: 400, Text: `{"error":{"code":"context_length_exceeded","message":"Too much text."}}`},
		modeltest.Answer{Status: 400, Text: `{"error":{"message":"The maximum context length is 8192 tokens"}}`})
	c, err := model.NewOpenAI(model.Config{APIKey: "x", Model: "m", BaseURL: m.BaseURL()})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := c.Answer(t.Context(), model.Request{Model: "m", Prompt: json.RawMessage(prompt)}, func(model.Delta) {})
		if f, ok := errors.AsType[*model.Fault](err); !ok || f.Kind != model.Overflow {
			t.Errorf("got %v", err)
		}
	}
}

// A server that refuses the field prompt_cache_key is asked again without it, and later at once without it. Another
// refusal is told as it is.
func TestAServerMayRefuseTheCacheKey(t *testing.T) {
	t.Parallel()
	m := modeltest.New(t)
	c, err := model.NewOpenAI(model.Config{Model: "m", BaseURL: m.BaseURL()})
	if err != nil {
		t.Fatal(err)
	}
	ask := func() error {
		_, err := c.Answer(t.Context(), model.Request{Model: "m", Prompt: json.RawMessage(
			`{"messages":[{"role":"user","content":"Hello"}],"prompt_cache_key":"conv-1"}`)}, func(model.Delta) {})
		return err
	}
	refused := modeltest.Answer{Status: 422, Text: `{"detail":[{"type":"extra_forbidden",` +
		`"loc":["body","prompt_cache_key"],"msg":"Extra inputs are not permitted"}]}`}
	m.Says(modeltest.Answer{Status: 400, Text: `{"error":{"message":"messages[0].content is wrong"}}`}, refused)
	if err := ask(); err == nil {
		t.Error("another refusal was not told")
	}
	for range 2 {
		if err := ask(); err != nil {
			t.Error(err)
		}
	}
	var keyed []bool
	for _, a := range m.Requests() {
		keyed = append(keyed, a.Fields["prompt_cache_key"] != nil)
	}
	if diff := cmp.Diff([]bool{true, true, false, false}, keyed); diff != "" {
		t.Errorf("requests with the field (-want +got):\n%s", diff)
	}
}

func TestAnswersAreStreamedAndWhole(t *testing.T) {
	t.Parallel()
	m := modeltest.New(t)
	for format, c := range clients(t, m) {
		m.Says(modeltest.Answer{Reasoning: "I think.", Text: "Hello, é!", PromptTokens: 100,
			Calls: []modeltest.Call{{ID: "a", Name: "search", Arguments: `{"q":"x"}`}, {ID: "a", Name: "open"}}})
		shown := map[recall.PartType]string{}
		got, err := c.Answer(t.Context(), model.Request{Model: "m", Prompt: json.RawMessage(prompt)}, func(d model.Delta) {
			shown[d.Kind] += d.Name + d.Text
		})
		if err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		second := got.Calls()[1].CallID
		signature := map[string]string{model.FormatAnthropic: "c2lnbmVk"}[format]
		field := map[string]recall.PartKind{model.FormatOpenAI: recall.ReasoningContent}[format]
		want := []recall.Part{{Type: recall.Reasoning, Text: "I think.", Native: true, Signature: signature, Kind: field},
			{Type: recall.Text, Text: "Hello, é!"},
			{Type: recall.ToolCall, CallID: "a", Name: "search", Input: `{"q":"x"}`},
			{Type: recall.ToolCall, CallID: second, Name: "open", Input: "{}"}}
		if diff := cmp.Diff(want, got.Content); diff != "" || second == "a" || second == "" {
			t.Errorf("%s: the answer (-want +got):\n%s", format, diff)
		}
		if got.Usage.Prompt != 100 || got.Usage.Completion == 0 || got.Finish != model.Stop {
			t.Errorf("%s: got %+v, %s", format, got.Usage, got.Finish)
		}
		deltas := map[recall.PartType]string{recall.Reasoning: "I think.", recall.Text: "Hello, é!",
			recall.ToolCall: `search{"q":"x"}open`}
		if diff := cmp.Diff(deltas, shown); diff != "" {
			t.Errorf("%s: the deltas (-want +got):\n%s", format, diff)
		}
		requests := m.Requests()
		sent := requests[len(requests)-1].Fields
		if string(sent["model"]) != `"m"` || string(sent["stream"]) != "true" || string(sent["temperature"]) != "0" ||
			string(sent["messages"]) != `[{"role":"user","content":"<é>"}]` {
			t.Errorf("%s: sent %s", format, requests[len(requests)-1].Body)
		}
	}
}

func TestAnImpossibleUsageIsIgnored(t *testing.T) {
	t.Parallel()
	m := modeltest.New(t)
	for _, count := range []string{"1000000000000000", "1e30", "-5", "1.5", `"many"`, "[]", "{}", "2147483648"} {
		for format, c := range clients(t, m) {
			raw := `data: {"choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":"stop"}]}` + "\n\n" +
				`data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":` + count + "}}\n\ndata: [DONE]\n\n"
			if format == model.FormatAnthropic {
				raw = anthropicEvents(
					`{"type":"message_start","message":{"role":"assistant","content":[],`+
						`"usage":{"input_tokens":7,"output_tokens":1}}}`,
					`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hello"}}`,
					`{"type":"content_block_stop","index":0}`,
					`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":`+count+`}}`,
					`{"type":"message_stop"}`)
			}
			m.Says(modeltest.Answer{Raw: raw})
			before := len(m.Requests())
			got, err := c.Answer(t.Context(), model.Request{Model: "m", Prompt: json.RawMessage(prompt)}, func(model.Delta) {})
			if err != nil || len(got.Content) != 1 || got.Content[0].Text != "Hello" || got.Usage != (model.Usage{}) ||
				len(m.Requests()) != before+1 {
				t.Errorf("%s, %s: got %+v, %v", format, count, got, err)
			}
		}
	}
}

// anthropicEvents joins events into a stream.
func anthropicEvents(events ...string) (stream string) {
	for _, e := range events {
		kind, _, _ := strings.Cut(strings.TrimPrefix(e, `{"type":"`), `"`)
		stream += "event: " + kind + "\ndata: " + e + "\n\n"
	}
	return stream
}

func TestAToolCanBeRequired(t *testing.T) {
	t.Parallel()
	m := modeltest.New(t)
	for format, c := range clients(t, m) {
		for _, r := range []model.Request{{Must: true}, {Must: true, Tool: "search"}} {
			r.Prompt = json.RawMessage(prompt)
			if _, err := c.Answer(t.Context(), r, func(model.Delta) {}); err != nil {
				t.Fatal(err)
			}
			requests := m.Requests()
			got, want := string(requests[len(requests)-1].Fields["tool_choice"]), map[string]string{
				"openai": `"required"`, "anthropic": `{"type":"any"}`,
				"openaisearch":    `{"function":{"name":"search"},"type":"function"}`,
				"anthropicsearch": `{"name":"search","type":"tool"}`}[format+r.Tool]
			if got != want {
				t.Errorf("%s %q: got the choice %s, want %s", format, r.Tool, got, want)
			}
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	unavailable := func(status int, body string) modeltest.Answer { return modeltest.Answer{Status: status, Text: body} }
	const quota = "You exceeded your current quota, please check your plan and billing details."
	for _, c := range []struct {
		name    string
		answer  modeltest.Answer
		kind    model.FaultKind
		again   string // now, later or never
		formats string // empty for both
	}{
		{"a limit", unavailable(429, "slow down"), model.Failed, "later", ""},
		{"a failure", unavailable(500, "oh"), model.Failed, "now", ""},
		{"an overload", unavailable(529, "overloaded"), model.Failed, "later", ""},
		{"a wrong key", unavailable(401, "{}"), model.Failed, "never", ""},
		{"a wrong request", unavailable(400, `{"message":"no"}`), model.Content, "never", ""},
		{"no credit", unavailable(402, "pay"), model.Credits, "never", ""},
		{"a quota", unavailable(429, `{"error":{"message":"`+quota+`","code":"insufficient_quota"}}`), model.Credits,
			"never", ""},
		{"a quota by its code", unavailable(429, `{"error":{"message":"No.","type":"insufficient_quota"}}`), model.Credits,
			"never", ""},
		{"a quota that fills again", unavailable(429, `[{"error":{"code":429,"message":"`+quota+
			`","status":"RESOURCE_EXHAUSTED"}}]`), model.Failed, "later", ""},
		{"a long prompt", unavailable(400, `{"error":{"message":"prompt is too long: 300000 tokens > 200000 maximum"}}`),
			model.Overflow, "never", ""},
		{"a refusal without a word", unavailable(400, `{}`), model.Content, "never", ""},
		{"a refusal with an empty error", unavailable(400, `{"error":{"message":""}}`), model.Content, "never", ""},
		{"a flagged input", unavailable(403, `{"error":{"message":"Your chosen model requires moderation and your input was `+
			`flagged","metadata":{"flagged_input":"my api key"}}}`), model.Content, "never", ""},
		{"a forbidden key", unavailable(403, `{"error":{"message":"This key may not use the model"}}`), model.Failed, "never",
			""},
		{"a model without images", unavailable(404, `{"error":{"message":"No endpoints found that support image input"}}`),
			model.Content, "never", ""},
		{"a model that is not there", unavailable(404, `{"error":{"message":"The model llava does not exist"}}`),
			model.Failed, "never", ""},
		{"a law", unavailable(451, `{}`), model.Content, "never", ""},
		{"an image that a server fails at", unavailable(500, `{"error":{"message":"Failed to decode image"}}`), model.Content,
			"now", ""},
		{"a file that a server fails at", unavailable(500, `{"error":{"message":"failed to load model file"}}`), model.Failed,
			"now", ""},
		{"a policy in the stream", modeltest.Answer{Raw: `data: {"error":{"message":"oh","code":"content_filter"}}` + "\n\n"},
			model.Content, "now", "openai"},
		{"a connection that is closed", modeltest.Answer{Closes: true}, model.Failed, "now", ""},
		{"a stream that breaks off", modeltest.Answer{Text: "Hel", Cut: true}, model.Failed, "now", ""},
		{"a stream that ends early", modeltest.Answer{Text: "Hel", Ends: true}, model.Failed, "now", ""},
		{"an empty answer", modeltest.Answer{Reasoning: "Hm."}, model.Broken, "now", ""},
		{"a call of nothing", modeltest.Answer{Calls: []modeltest.Call{{ID: "a"}}}, model.Broken, "now", ""},
		{"garbage", modeltest.Answer{Raw: "data: {]\n\n"}, model.Broken, "now", "openai"},
		{"an error in the stream", modeltest.Answer{Raw: `data: {"id":"x","error":{"code":429,"message":"slow"}}` +
			"\n\n"}, model.Failed, "later", "openai"},
		{"an error in place of the stream", modeltest.Answer{Raw: `data: {"error":{"message":"oh"}}` + "\n\n"}, model.Failed,
			"now", "openai"},
		{"an error event", modeltest.Answer{Raw: "event: error\n" +
			`data: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}` + "\n\n"}, model.Failed, "later",
			"anthropic"},
		{"a page", modeltest.Answer{Raw: "<html>"}, model.Broken, "now", "openai"},
		{"a page to Anthropic's client", modeltest.Answer{Raw: "<html>"}, model.Failed, "now", "anthropic"},
		{"an answer without a choice", modeltest.Answer{Raw: `{"id":"c","choices":[],"usage":{"prompt_tokens":1}}`},
			model.Broken, "now", "openai"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := modeltest.New(t)
			m.Reply = func(modeltest.Asked) modeltest.Answer { return c.answer }
			for format, client := range clients(t, m) {
				if c.formats != "" && c.formats != format {
					continue
				}
				before := len(m.Requests())
				_, err := client.Answer(t.Context(), model.Request{Model: "m", Prompt: json.RawMessage(prompt)},
					func(model.Delta) {})
				f, ok := errors.AsType[*model.Fault](err)
				if !ok || f.Kind != c.kind || f.Again != (c.again != "never") || f.Limited != (c.again == "later") {
					t.Fatalf("%s: got %+v (%v), want the kind %d, again %s", format, f, err, c.kind, c.again)
				}
				if err != nil && strings.Contains(err.Error(), "sk-secret") {
					t.Errorf("%s: the error %q has the key", format, err)
				}
				if n := len(m.Requests()) - before; n != 1 {
					t.Errorf("%s: got %d requests, want one", format, n)
				}
			}
		})
	}
}

// A redirect is not followed. The fault says so, whether or not the redirect names a target.
func TestARedirectIsNamed(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 304, 307} {
		for _, header := range []http.Header{nil, {"Location": {"/elsewhere"}}} {
			m := modeltest.New(t)
			m.Reply = func(modeltest.Asked) modeltest.Answer { return modeltest.Answer{Status: status, Header: header} }
			for format, client := range clients(t, m) {
				_, err := client.Answer(t.Context(), model.Request{Model: "m", Prompt: json.RawMessage(prompt)},
					func(model.Delta) {})
				f, ok := errors.AsType[*model.Fault](err)
				if !ok || f.Again || f.AnswerStatus() != 500 || !strings.Contains(f.Public(), "redirects elsewhere") ||
					!strings.Contains(f.Error(), "_BASE_URL") {
					t.Errorf("%s, %d: got %+v", format, status, err)
				}
			}
		}
	}
}

func TestThePauseThatAProviderAsksForIsKnown(t *testing.T) {
	t.Parallel()
	m := modeltest.New(t)
	m.Reply = func(modeltest.Asked) modeltest.Answer {
		return modeltest.Answer{Status: 429, Header: http.Header{"Retry-After": {"7"}}}
	}
	for format, client := range clients(t, m) {
		_, err := client.Answer(t.Context(), model.Request{Prompt: json.RawMessage(prompt)}, func(model.Delta) {})
		if f, ok := errors.AsType[*model.Fault](err); !ok || f.After != 7*time.Second || !f.Limited {
			t.Errorf("%s: got %+v", format, f)
		}
	}
}

func TestAnAnswerThatStopsComingIsAFault(t *testing.T) {
	t.Parallel()
	m := modeltest.New(t)
	m.Reply = func(modeltest.Asked) modeltest.Answer {
		return modeltest.Answer{Text: "Hello", After: make(chan struct{})}
	}
	c := model.Config{BaseURL: m.BaseURL(), Model: "m", Timeout: 50 * time.Millisecond}
	client, err := model.NewOpenAI(c)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Answer(t.Context(), model.Request{Prompt: json.RawMessage(prompt)}, func(model.Delta) {})
	if f, ok := errors.AsType[*model.Fault](err); !ok || f.Again || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want a fault of time", err)
	}
}

// An answer with more calls than any model makes is a fault, and asking again does not help.
func TestAnAnswerHasABoundedNumberOfCalls(t *testing.T) {
	t.Parallel()
	m := modeltest.New(t)
	open, err := model.NewOpenAI(model.Config{BaseURL: m.BaseURL(), Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	claude, err := model.NewAnthropic(model.Config{BaseURL: m.URL, APIKey: "k"})
	if err != nil {
		t.Fatal(err)
	}
	calls := make([]modeltest.Call, 513)
	for i := range calls {
		calls[i] = modeltest.Call{ID: fmt.Sprintf("c%d", i), Name: "x", Arguments: "{}"}
	}
	for format, client := range map[string]model.Client{"openai": open, "anthropic": claude} {
		for n, refused := range map[int]bool{512: false, 513: true} {
			m.Says(modeltest.Answer{Calls: calls[:n]})
			r := model.Request{Model: "m", Prompt: json.RawMessage(prompt)}
			_, err := client.Answer(t.Context(), r, func(model.Delta) {})
			f, isFault := errors.AsType[*model.Fault](err)
			if refused != (isFault && f.Kind == model.Broken && !f.Again) || !refused && err != nil {
				t.Errorf("%d calls of %s: got %v", n, format, err)
			}
		}
	}
}

// An answer ends at its size limit, whether it comes in pieces or whole. That is a fault, and asking again does not
// help.
func TestAnAnswerThatIsTooLongIsAFault(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 1000)
	var raw string
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, raw)
	}))
	t.Cleanup(gateway.Close)
	m := modeltest.New(t)
	clientsOf := func(base string, most int64) map[string]model.Client {
		c := model.Config{BaseURL: base + "/v1", APIKey: "k", Model: "m", MaxAnswerBytes: most}
		open, err := model.NewOpenAI(c)
		if err != nil {
			t.Fatal(err)
		}
		c.BaseURL = base
		claude, err := model.NewAnthropic(c)
		if err != nil {
			t.Fatal(err)
		}
		return map[string]model.Client{"openai": open, "anthropic": claude}
	}
	ask := func(c model.Client) error {
		_, err := c.Answer(t.Context(), model.Request{Model: "m", Prompt: json.RawMessage(prompt)}, func(model.Delta) {})
		return err
	}
	for what, answer := range map[string]modeltest.Answer{
		"a text":  {Text: long},
		"a call":  {Calls: []modeltest.Call{{ID: "a", Name: "x", Arguments: `{"q":"` + long + `"}`}}},
		"a piece": {Text: strings.Repeat("x", 5000)},
	} {
		for format := range clientsOf(m.URL, 1) {
			for most, cut := range map[int64]bool{4000: true, 6000: false} {
				m.Says(answer)
				err := ask(clientsOf(m.URL, most)[format])
				f, isFault := errors.AsType[*model.Fault](err)
				refused := isFault && f.Kind == model.Broken && !f.Again && strings.Contains(f.Public(), "more than the 4000 bytes")
				if cut != refused || !cut && err != nil {
					t.Errorf("%s of %s, of which %d bytes are taken: got %v", what, format, most, err)
				}
			}
		}
	}
	for what, c := range map[string]struct{ format, body string }{
		"a completion":      {"openai", `{"choices":[{"message":{"content":"` + long + `"}}]}`},
		"a message":         {"anthropic", `{"type":"message","content":[{"type":"text","text":"` + long + `"}]}`},
		"a line":            {"openai", "data: " + long},
		"lines of an event": {"openai", strings.Repeat("data: x\n", 5000)},
		"lines of nothing":  {"openai", strings.Repeat("x\n", 5000)},
	} {
		raw = c.body
		err := ask(clientsOf(gateway.URL, 4000)[c.format])
		if f, ok := errors.AsType[*model.Fault](err); !ok || f.Kind != model.Broken || f.Again {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

func TestACancelledRequestIsNoFault(t *testing.T) {
	t.Parallel()
	m := modeltest.New(t)
	m.Reply = func(modeltest.Asked) modeltest.Answer {
		return modeltest.Answer{Text: "Hello", After: make(chan struct{})}
	}
	for format, c := range clients(t, m) {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := c.Answer(ctx, model.Request{Prompt: json.RawMessage(prompt)}, func(model.Delta) { cancel() })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want that of the context", format, err)
		}
		if _, ok := errors.AsType[*model.Fault](err); ok {
			t.Errorf("%s: got the fault %v", format, err)
		}
	}
}

func TestCallsCutByTheLengthAreDropped(t *testing.T) {
	t.Parallel()
	m := modeltest.New(t)
	for format, c := range clients(t, m) {
		m.Says(modeltest.Answer{Finish: "length", Calls: []modeltest.Call{
			{ID: "a", Name: "x", Arguments: `{"q":1}`}, {ID: "b", Name: "y", Arguments: `{"q":`}}})
		got, err := c.Answer(t.Context(), model.Request{Prompt: json.RawMessage(prompt)}, func(model.Delta) {})
		if calls := got.Calls(); err != nil || len(calls) != 1 || calls[0].CallID != "a" || got.Finish != model.Length {
			t.Errorf("%s: got %+v, %v", format, got, err)
		}
		for _, args := range []string{"", `{"q":`} {
			m.Says(modeltest.Answer{Finish: "length", Calls: []modeltest.Call{{ID: "b", Name: "y", Arguments: args}}})
			got, err = c.Answer(t.Context(), model.Request{Prompt: json.RawMessage(prompt)}, func(model.Delta) {})
			if err != nil || len(got.Content) != 1 || !strings.Contains(got.Content[0].Text, "a call of y") {
				t.Errorf("%s: the only call, cut at %q: got %+v, %v", format, args, got, err)
			}
		}
	}
}

func TestSettingsAreChecked(t *testing.T) {
	t.Parallel()
	for setting, make := range map[string]func(model.Config) error{
		"LOCI_LLM_BASE_URL":       func(c model.Config) error { _, err := model.NewOpenAI(c); return err },
		"LOCI_ANTHROPIC_BASE_URL": func(c model.Config) error { _, err := model.NewAnthropic(c); return err },
	} {
		if err := make(model.Config{BaseURL: "nowhere", Model: "m"}); err == nil || !strings.Contains(err.Error(), setting) {
			t.Errorf("got %v, want the name of %s", err, setting)
		}
	}
}
