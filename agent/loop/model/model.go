// Package model asks language models for answers that are streamed: behind any endpoint that speaks OpenAI's chat
// completions, and behind Anthropic's messages API.
//
// Each file uses those that are named before it:
//   - failures, and the words by which they are told: words.go fault.go
//   - what all clients share: model.go events.go post.go
//   - OpenAI's chat completions: chunk.go openaireader.go openai.go
//   - Anthropic's messages: anthropicreader.go anthropic.go
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

// The formats of prompts, as agent names them.
const (
	FormatOpenAI    = "openai"
	FormatAnthropic = "anthropic"
)

// Client asks models. It may be used from many goroutines.
type Client interface {
	// Answer sends a request and returns the whole answer. It passes each delta to show as it arrives, from the calling
	// goroutine. Its error is a *Fault, or that of ctx. With a fault of the kind Content it returns what the model said
	// before the rest was withheld.
	Answer(ctx context.Context, r Request, show func(Delta)) (Answer, error)
	// Format returns the format of the prompts that the client sends.
	Format() string
	// Address returns the address of the endpoint.
	Address() string
}

// Request is a prompt to be answered.
type Request struct {
	Model  string          // as the provider names it
	Prompt json.RawMessage // the provider's request, in the client's format; its model is replaced
	Must   bool            // the answer must call a tool
	Tool   string          // that the answer must call; empty for any
}

// Delta is a piece of an answer as it arrives.
type Delta struct {
	Kind   recall.PartType // Text, Reasoning or ToolCall
	Text   string          // of a call: a piece of its arguments
	CallID string          // of a call
	Name   string          // of the called tool, in the first piece of a call
}

// Usage is what a provider counted, in tokens. Prompt includes Cached and CacheWrite.
type Usage struct {
	Prompt, Completion, Cached, CacheWrite, Reasoning int
}

// errImpossible is a count of tokens that cannot be.
var errImpossible = errors.New("no possible count of tokens")

// The reasons for which an answer ends.
const (
	Stop    = "stop"
	Length  = "length"
	Refused = "refused"
	Paused  = "paused" // the model goes on when it is asked again
)

// Answer is a model's answer. The ids of its calls are unique in it. The arguments of a call are what the model wrote,
// which may be no JSON.
type Answer struct {
	Content []recall.Part
	Finish  string
	Why     string // the provider's words for the end; empty without any
	Usage   Usage
}

// Calls returns the calls of tools.
func (a Answer) Calls() (calls []recall.Part) {
	for _, p := range a.Content {
		if p.Type == recall.ToolCall {
			calls = append(calls, p)
		}
	}
	return calls
}

// newCallID returns an id for a call that has none of its own.
func newCallID() string { return "call_" + uuid.NewString() }

// finish checks a whole answer: it drops empty texts and calls without a name, and gives calls ids that are unique and
// arguments. An answer that ended for its length loses a call that is not whole, and is never empty.
func finish(at *provider.Endpoint, a Answer) (Answer, error) {
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
		return a, withheld(at, a.Why)
	}
	if chat.IsEmpty(a.Content) {
		return a, broken(at, "with neither a text nor a call")
	}
	return a, nil
}

// body returns the fields of a prompt with others over them.
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
