// Package agenttest gives tests an agent at work. Turn after turn it asks a server for its prompt, sends the prompt to
// a model, and captures the conversation. At the end it looks for facts that were said.
//
// Each file uses those that are named before it:
//   - what is said in the turns: story.go
//   - a check of prompts, as providers check them: sound.go
//   - the agent at work: agenttest.go
//   - the facts that are looked for in the end: find.go
//   - the model of the server's summaries: models.go
package agenttest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/loci-memory/loci/compaction/llm/llmtest"
)

// Agent is an agent at work. It is for a single goroutine.
type Agent struct {
	Base  string // base URL of the server
	ID    string
	Model *llmtest.Provider // receives its prompts; has the agent's window

	// Captured, if not nil, is called after each capture.
	Captured func(context.Context) error

	Prompts []Prompt    // prompts handed out so far, in order
	Facts   []Fact      // facts said so far
	Ends    []time.Time // ends of the turns so far

	window, turns, facts int
	story                *story
}

// Prompt is a prompt that was handed out.
type Prompt struct {
	Turn    int  // from 1
	Open    bool // a tool call waits for its result
	Tokens  int  // by the server's count
	Counted int  // by the provider's count; 0 if it refused the prompt
	Took    time.Duration
}

// Life says what an agent does.
type Life struct {
	Turns  int
	Facts  int // at most a hundred
	Window int // tokens
	Seed   uint64
}

// New creates an agent on a server. The caller provides the model.
func New(ctx context.Context, base string, model *llmtest.Provider, l Life) (*Agent, error) {
	if l.Facts > min(factsAtMost, l.Turns) {
		return nil, fmt.Errorf("%d facts are to be told in %d turns; it must be at most one in each, and %d", l.Facts,
			l.Turns, factsAtMost)
	}
	model.Window = l.Window
	a := &Agent{Base: base, Model: model, window: l.Window, turns: l.Turns, facts: l.Facts,
		story: newStory(l.Seed, l.Window)}
	var created struct {
		ID string `json:"id"`
	}
	err := a.call(ctx, http.MethodPost, "/v1/agents/", map[string]any{"name": "driven", "model": "fake/agent",
		"system": "You help with a service and its tests.", "context_window_limit": l.Window}, &created)
	a.ID = created.ID
	return a, err
}

// Live runs all turns.
func (a *Agent) Live(ctx context.Context) error {
	for turn := 1; turn <= a.turns; turn++ {
		var facts []Fact
		if n := a.facts * turn / a.turns; n > len(a.Facts) {
			facts = []Fact{newFact(len(a.Facts), turn)}
		}
		if err := a.live(ctx, turn, a.story.next(facts)); err != nil {
			return fmt.Errorf("turn %d: %w", turn, err)
		}
		a.Facts, a.Ends = append(a.Facts, facts...), append(a.Ends, time.Now())
	}
	return nil
}

// live runs a turn.
func (a *Agent) live(ctx context.Context, turn int, t act) error {
	if err := a.capture(ctx, 0, chatMessage{Role: "user", Content: t.question}); err != nil {
		return err
	}
	for _, r := range t.rounds {
		used, err := a.Think(ctx, turn, false)
		if err != nil {
			return err
		}
		if err := a.capture(ctx, used, chatMessage{Role: "assistant", Content: r.text, Calls: r.calls}); err != nil {
			return err
		}
		if err := a.results(ctx, turn, r); err != nil {
			return err
		}
	}
	used, err := a.Think(ctx, turn, false)
	if err != nil {
		return err
	}
	return a.capture(ctx, used, chatMessage{Role: "assistant", Content: t.answer})
}

// results captures a round's results, together or one by one with a prompt between two of them.
func (a *Agent) results(ctx context.Context, turn int, r round) error {
	var all []chatMessage
	for i, text := range r.result {
		all = append(all, chatMessage{Role: "tool", CallID: r.calls[i].ID, Content: text})
	}
	if !r.single {
		return a.capture(ctx, 0, all...)
	}
	for i, m := range all {
		if err := a.capture(ctx, 0, m); err != nil {
			return err
		}
		if i == len(all)-1 {
			break
		}
		if _, err := a.Think(ctx, turn, true); err != nil {
			return err
		}
	}
	return nil
}

// Think sends the next prompt to the model, and returns the provider's count of it; 0 if it was too large. It fails if
// the prompt breaks a provider's rule.
func (a *Agent) Think(ctx context.Context, turn int, open bool) (used int, err error) {
	var out struct {
		Tokens struct {
			Total int `json:"total"`
		} `json:"tokens"`
		Request json.RawMessage `json:"request"`
	}
	began := time.Now()
	if err := a.call(ctx, http.MethodGet, "/v1/agents/"+a.ID+"/prompt?format=openai", nil, &out); err != nil {
		return 0, err
	}
	p := Prompt{Turn: turn, Open: open, Tokens: out.Tokens.Total, Took: time.Since(began)}
	var answer struct {
		Usage struct {
			Prompt int `json:"prompt_tokens"`
		} `json:"usage"`
	}
	err = send(ctx, http.MethodPost, a.Model.BaseURL()+"/chat/completions", out.Request, &answer)
	if refused := (*answered)(nil); err != nil && (!errors.As(err, &refused) || refused.status != http.StatusBadRequest) {
		return 0, err
	}
	p.Counted = answer.Usage.Prompt
	a.Prompts = append(a.Prompts, p)
	for _, request := range a.Model.Take() {
		if err := sound(request.Messages, open); err != nil {
			return 0, fmt.Errorf("the prompt of %d messages: %w", len(request.Messages), err)
		}
	}
	return p.Counted, nil
}

// capture sends messages to the server's log.
func (a *Agent) capture(ctx context.Context, used int, messages ...chatMessage) error {
	body := map[string]any{"messages": messages}
	if used > 0 {
		body["usage"] = map[string]int{"prompt_tokens": used}
	}
	err := a.call(ctx, http.MethodPost, "/v1/agents/"+a.ID+"/messages/capture", body, nil)
	if err == nil && a.Captured != nil {
		err = a.Captured(ctx)
	}
	return err
}

func (a *Agent) call(ctx context.Context, method, path string, body, out any) error {
	var sent []byte
	if body != nil {
		sent = []byte(encoded(body))
	}
	return send(ctx, method, a.Base+path, sent, out)
}

// answered is the error for an answer with a status other than 200.
type answered struct {
	method, path string
	status       int
	body         []byte
}

func (e *answered) Error() string {
	return fmt.Sprintf("%s %s answers %d: %.500s", e.method, e.path, e.status, e.body)
}

// send sends a JSON body, and reads the answer into out. Both may be nil.
func send(ctx context.Context, method, url string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return &answered{method, req.URL.Path, res.StatusCode, text}
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}

// encoded returns a value as JSON. It panics if the value cannot be written as JSON.
func encoded(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic("agenttest: " + err.Error())
	}
	return string(text)
}

// chatMessage is a message in OpenAI's form.
type chatMessage struct {
	Role    string     `json:"role"`
	Content string     `json:"content"`
	Calls   []chatCall `json:"tool_calls,omitempty"`
	CallID  string     `json:"tool_call_id,omitempty"`
}

type chatCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}
