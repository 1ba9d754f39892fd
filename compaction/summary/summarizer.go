package summary

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/loci-memory/loci/recall/chat"
)

// Summarizer completes a chat: a model behind a provider's endpoint. It returns an *Overflow for a request that is
// larger than the model's window. The text of an error is for the operator; organizations read that of its method
// Public() string, if it has one.
type Summarizer interface {
	Complete(ctx context.Context, r Request) (Reply, error)
}

// Model is a model that writes summaries.
type Model struct {
	Summarizer
	Name     string        // without its provider; empty for the endpoint's default
	Window   int           // its context window in tokens; 0 if unknown. Ignored for the agent's own model
	Patience time.Duration // how long all calls for one summary may take; 0 means the constant Patience

	// List returns the names of the models of the same endpoint; nil if nobody knows them.
	List func(context.Context) []string

	// Redact removes secrets from a summary, with the key of the organization. Nil redacts with a shared key.
	Redact func(string) string
}

// NotAsked wraps the error of a call that reached no model: none is counted.
type NotAsked struct{ Err error }

func (e *NotAsked) Error() string { return e.Err.Error() }

// Unwrap returns why the model was not asked.
func (e *NotAsked) Unwrap() error { return e.Err }

// Calls returns how many calls of a model an error is of: 1, or 0 if none was asked.
func Calls(err error) int {
	if _, not := errors.AsType[*NotAsked](err); not {
		return 0
	}
	return 1
}

// Request asks a Summarizer to answer with text, without calling a tool.
type Request struct {
	Model     string // the model's name, without its provider; empty for the endpoint's default
	Messages  []chat.Message
	Tools     []byte // definitions in OpenAI's shape, a JSON array; nil for none
	MaxTokens int    // of the answer; 0 leaves it to the provider

	Temperature *float32 // nil leaves it to the provider
	Effort      string   // reasoning effort: low, high, …; empty leaves it to the provider
}

// Refused is the Finish of a reply whose text is the model's refusal to answer.
const Refused = "refusal"

// Reply is a Summarizer's answer.
type Reply struct {
	Text         string
	Finish       string // the provider's reason: stop, length, …
	PromptTokens int    // as the provider counted; 0 if it did not
	OutputTokens int
}

// Overflow reports that a request is larger than the model's window. Window and Sent are in tokens, 0 if the provider
// did not say.
type Overflow struct {
	Window, Sent int
	Counted      bool   // known by nothing but the provider's count of what it read, Window; the reply may be whole
	Reason       string // in the provider's words, for the operator
	Told         string // for organizations, without the provider's words; empty if there is no more to say
}

func (o *Overflow) Error() string {
	return tooLarge + ": " + cmp.Or(o.Reason, o.Told)
}

// Public returns what organizations read.
func (o *Overflow) Public() string {
	if o.Told != "" {
		return tooLarge + ": " + o.Told
	}
	return tooLarge
}

const tooLarge = "the request is larger than the model's window"
