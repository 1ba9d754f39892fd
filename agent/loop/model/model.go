// Package model asks language models for streamed answers, at any endpoint with OpenAI's chat completions, and at
// Anthropic's messages API.
//
// Each file uses those that are named before it:
//   - failures, and the words by which they are told: words.go fault.go
//   - what all clients share: model.go events.go post.go
//   - OpenAI's chat completions: chunk.go openaireader.go openai.go
//   - Anthropic's messages: anthropicreader.go anthropic.go
//   - what other programs ask, and what they get: upstream.go answerread.go
package model

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/loci-memory/loci/embed/provider"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

// The formats of prompts, under the names that package agent uses.
const (
	FormatOpenAI    = "openai"
	FormatAnthropic = "anthropic"
)

// Client asks models. It is safe for concurrent use.
type Client interface {
	// Answer sends a request and returns the whole answer. It passes each delta to show when it arrives, on the calling
	// goroutine. Its error is a *Fault or ctx's. With a fault of kind Content it also returns what the model said before
	// the rest was withheld.
	Answer(ctx context.Context, r Request, show func(Delta)) (Answer, error)
	// Format returns the format of the prompts that the client sends.
	Format() string
	// Address returns the address of the endpoint.
	Address() string
}

// Request is a prompt to answer.
type Request struct {
	Model  string          // as the provider names it
	Prompt json.RawMessage // the provider's request in the client's format; its model is replaced
	Must   bool            // the answer must call a tool
	Tool   string          // the tool that the answer must call; empty: any
}

// Delta is a piece of an answer, as it arrives.
type Delta struct {
	Kind   recall.PartType // Text, Reasoning or ToolCall
	Text   string          // for a call: a piece of its arguments
	CallID string          // for a call
	Name   string          // the called tool; only in a call's first piece
}

// Usage is a provider's count, in tokens. Prompt includes Cached and CacheWrite.
type Usage struct {
	Prompt, Completion, Cached, CacheWrite, Reasoning int
}

// errImpossible means that a count of tokens is impossible.
var errImpossible = errors.New("no possible count of tokens")

// Why an answer ended.
const (
	Stop    = "stop"
	Length  = "length"
	Refused = "refused"
	Paused  = "paused" // the model continues when it is asked again
)

// Answer is a model's answer. The ids of its calls are unique within it. A call's arguments are as the model wrote
// them, which may not be JSON.
type Answer struct {
	ID      string // that the provider gave it; only of the Responses API
	Content []recall.Part
	Finish  string
	Why     string // the provider's words about the end; may be empty
	Usage   Usage
}

// Calls returns the tool calls.
func (a Answer) Calls() (calls []recall.Part) {
	for _, p := range a.Content {
		if p.Type == recall.ToolCall {
			calls = append(calls, p)
		}
	}
	return calls
}

// newCallID returns an id for a call without one.
func newCallID() string { return "call_" + uuid.NewString() }

// finish checks a whole answer. It drops empty texts and calls without a name, and makes sure that each call has
// arguments and a unique id. If the answer ended for its length, it drops an incomplete call, and makes sure that the
// answer is not empty.
func finish(endpoint *provider.Endpoint, a Answer) (Answer, error) {
	a.Content = slices.DeleteFunc(a.Content, func(p recall.Part) bool {
		return p.Type == recall.Text && p.Text == "" || p.Type == recall.ToolCall && p.Name == ""
	})
	if a.Finish == Length {
		a.Content = chat.CutOff(a.Content)
	}
	for i := range a.Content {
		if p := &a.Content[i]; p.Type == recall.ToolCall {
			p.Input = cmp.Or(p.Input, "{}")
		}
	}
	chat.NameCalls(a.Content, func(int) string { return newCallID() })
	if a.Finish == Refused { // a second answer would be withheld, too
		return a, withheld(endpoint, a.Why)
	}
	if chat.IsEmpty(a.Content) {
		return a, broken(endpoint, "with neither a text nor a call")
	}
	return a, nil
}

// body returns a prompt's fields, with those in over added or replaced.
func body(prompt json.RawMessage, over map[string]any) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(prompt, &fields); err != nil {
		return nil, err
	}
	for name, value := range over {
		fields[name] = chat.Encode(value)
	}
	return chat.Encode(fields), nil
}

// bodyWithout returns a request without a field.
func bodyWithout(request json.RawMessage, name string) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	err := json.Unmarshal(request, &fields)
	delete(fields, name)
	return chat.Encode(fields), err
}
