// Package modeltest gives tests a scripted model: a server that streams answers like OpenAI's chat completions and
// Anthropic's messages API, and misbehaves on demand.
package modeltest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// maxRequestBytes bounds a request.
const maxRequestBytes = 64 << 20

// Call is a call of a tool.
type Call struct{ ID, Name, Arguments string }

// Answer is the model's answer to one request. Status and the fields after it make it misbehave.
type Answer struct {
	Text, Reasoning string
	Calls           []Call
	Finish          string // empty: stop, or tool_calls with calls
	PromptTokens    int    // the count that it reports; 0: one token per four bytes of the request; negative: none

	Status int             // HTTP status of an error; Text is its body
	Header http.Header     // of an error
	Closes bool            // close the connection before the answer begins
	Cut    bool            // break the connection before the answer ends
	Ends   bool            // end the stream without a finish reason
	Raw    string          // sent unchanged instead of a stream
	Wait   <-chan struct{} // the answer begins when this is closed, or never if the client leaves
	After  <-chan struct{} // the answer ends when this is closed, or never if the client leaves
}

// Asked is a request as the server received it.
type Asked struct {
	Path   string
	Header http.Header
	Body   []byte
	Fields map[string]json.RawMessage
}

// Model is a server with a model that answers from a script.
type Model struct {
	*httptest.Server
	// Reply answers requests beyond the script; nil answers "Done.".
	Reply func(Asked) Answer

	mu     sync.Mutex
	script []Answer
	asked  []Asked
	grown  chan struct{} // closed by the next request
}

// New starts a model. It stops when the test ends.
func New(t testing.TB) *Model {
	t.Helper()
	m := &Model{grown: make(chan struct{})}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

// BaseURL returns the base URL for OpenAI's API. For Anthropic's it is URL.
func (m *Model) BaseURL() string { return m.URL + "/v1" }

// Says adds answers to the script, one for each request.
func (m *Model) Says(answers ...Answer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.script = append(m.script, answers...)
}

// Forget drops the rest of the script.
func (m *Model) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.script = nil
}

// Requests returns the requests received so far, in order.
func (m *Model) Requests() []Asked {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Asked(nil), m.asked...)
}

// patience bounds a wait; reaching it is a failure.
const patience = 3 * time.Minute

// Await waits until n requests were received.
func (m *Model) Await(t testing.TB, n int) {
	t.Helper()
	for deadline := time.After(patience); ; {
		m.mu.Lock()
		got, grown := len(m.asked), m.grown
		m.mu.Unlock()
		if got >= n {
			return
		}
		select {
		case <-grown:
		case <-deadline:
			t.Fatalf("the model was asked %d times, want %d", got, n)
		}
	}
}

// ServeHTTP implements http.Handler.
func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request := Asked{Path: r.URL.Path, Header: r.Header}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequestBytes))
	if request.Body = body; err != nil || json.Unmarshal(body, &request.Fields) != nil {
		http.Error(w, "not JSON", http.StatusBadRequest)
		return
	}
	a := m.next(request)
	if !await(r, a.Wait) {
		return
	}
	if a.Closes {
		panic(http.ErrAbortHandler)
	}
	if a.Status != 0 {
		maps.Copy(w.Header(), a.Header)
		w.WriteHeader(a.Status)
		fmt.Fprint(w, a.Text)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := &events{w: w, r: r, answer: a, prompt: a.PromptTokens}
	if out.prompt == 0 {
		out.prompt = len(body) / 4
	}
	out.prompt = max(out.prompt, 0)
	switch {
	case a.Raw != "":
		fmt.Fprint(w, a.Raw)
		_ = http.NewResponseController(w).Flush() // otherwise it is sent only at the end
		await(r, a.After)
	case strings.HasSuffix(r.URL.Path, "/chat/completions"):
		out.openAI()
	case strings.HasSuffix(r.URL.Path, "/v1/messages"):
		out.anthropic()
	default:
		http.NotFound(w, r)
	}
}

func await(r *http.Request, on <-chan struct{}) bool {
	if on == nil {
		return true
	}
	select {
	case <-on:
		return true
	case <-r.Context().Done():
		return false
	}
}

func (m *Model) next(request Asked) Answer {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, request)
	close(m.grown)
	m.grown = make(chan struct{})
	if len(m.script) > 0 {
		a := m.script[0]
		m.script = m.script[1:]
		return a
	}
	if m.Reply != nil {
		return m.Reply(request)
	}
	return Answer{Text: "Done."}
}

// events writes an answer as a stream.
type events struct {
	w      http.ResponseWriter
	r      *http.Request
	answer Answer
	prompt int // tokens
}

func (e *events) send(name string, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	if name != "" {
		fmt.Fprintf(e.w, "event: %s\n", name)
	}
	fmt.Fprintf(e.w, "data: %s\n\n", text)
	_ = http.NewResponseController(e.w).Flush() // the client may have left
}

// end reports whether the answer is sent to its end.
func (e *events) end() bool {
	if e.answer.Cut {
		panic(http.ErrAbortHandler)
	}
	return await(e.r, e.answer.After) && !e.answer.Ends
}

// pieces cuts a text into two pieces.
func pieces(text string) []string {
	if text == "" {
		return nil
	}
	runes := []rune(text)
	half := (len(runes) + 1) / 2
	return []string{string(runes[:half]), string(runes[half:])}
}

type object = map[string]any

func (e *events) openAI() {
	a := e.answer
	chunk := func(delta object, finish any) {
		e.send("", object{"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "scripted",
			"choices": []any{object{"index": 0, "delta": delta, "finish_reason": finish}}})
	}
	chunk(object{"role": "assistant", "content": nil}, nil)
	for _, piece := range pieces(a.Reasoning) {
		chunk(object{"reasoning_content": piece}, nil)
	}
	for _, piece := range pieces(a.Text) {
		chunk(object{"content": piece}, nil)
	}
	for i, c := range a.Calls {
		chunk(object{"tool_calls": []any{object{"index": i, "id": c.ID, "type": "function",
			"function": object{"name": c.Name, "arguments": ""}}}}, nil)
		for _, piece := range pieces(c.Arguments) {
			chunk(object{"tool_calls": []any{object{"index": i, "function": object{"arguments": piece}}}}, nil)
		}
	}
	if !e.end() {
		return
	}
	finish := a.Finish
	switch {
	case finish == "" && len(a.Calls) > 0:
		finish = "tool_calls"
	case finish == "":
		finish = "stop"
	}
	chunk(object{}, finish)
	e.send("", object{"id": "chatcmpl-1", "choices": []any{}, "usage": object{"prompt_tokens": e.prompt,
		"completion_tokens": e.completion(), "total_tokens": e.prompt + e.completion()}})
	fmt.Fprint(e.w, "data: [DONE]\n\n")
}

func (e *events) completion() int {
	n := len(e.answer.Text) + len(e.answer.Reasoning)
	for _, c := range e.answer.Calls {
		n += len(c.Arguments)
	}
	return n/4 + 1
}

func (e *events) anthropic() {
	a, index := e.answer, 0
	e.send("message_start", object{"type": "message_start", "message": object{"id": "msg_1", "type": "message",
		"role": "assistant", "model": "scripted", "content": []any{}, "stop_reason": nil,
		"usage": object{"input_tokens": e.prompt - 1, "cache_read_input_tokens": 1, "output_tokens": 1}}})
	block := func(start object, deltas ...object) {
		e.send("content_block_start", object{"type": "content_block_start", "index": index, "content_block": start})
		for _, d := range deltas {
			e.send("content_block_delta", object{"type": "content_block_delta", "index": index, "delta": d})
		}
		e.send("content_block_stop", object{"type": "content_block_stop", "index": index})
		index++
	}
	deltas := func(text, kind, field string) (all []object) {
		for _, piece := range pieces(text) {
			all = append(all, object{"type": kind, field: piece})
		}
		return all
	}
	if a.Reasoning != "" {
		block(object{"type": "thinking", "thinking": "", "signature": ""},
			append(deltas(a.Reasoning, "thinking_delta", "thinking"),
				object{"type": "signature_delta", "signature": "c2lnbmVk"})...)
	}
	if a.Text != "" {
		block(object{"type": "text", "text": ""}, deltas(a.Text, "text_delta", "text")...)
	}
	for _, c := range a.Calls {
		block(object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": object{}},
			deltas(c.Arguments, "input_json_delta", "partial_json")...)
	}
	if !e.end() {
		return
	}
	finish := map[string]string{"": "end_turn", "stop": "end_turn", "length": "max_tokens",
		"pause": "pause_turn", "refusal": "refusal"}[a.Finish]
	if a.Finish == "" && len(a.Calls) > 0 {
		finish = "tool_use"
	}
	e.send("message_delta", object{"type": "message_delta", "delta": object{"stop_reason": finish},
		"usage": object{"output_tokens": e.completion()}})
	e.send("message_stop", object{"type": "message_stop"})
}
