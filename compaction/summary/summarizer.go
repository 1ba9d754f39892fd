package summary

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/loci-memory/loci/recall/chat"
)

// Summarizer completes a chat; it is a model at a provider's endpoint. For a request larger than the model's window it
// returns an *Overflow. An error's text is for the operator; organizations read the result of its method Public()
// string, if it has one.
type Summarizer interface {
	Complete(ctx context.Context, r Request) (Reply, error)
}

// Model is a model that writes summaries.
type Model struct {
	Summarizer
	Name     string        // without the provider; empty for the endpoint's default
	Window   int           // context window in tokens; 0 if unknown. Ignored for the agent's own model
	Patience time.Duration // how long all calls for one summary may take; 0 means the constant Patience

	// List returns the names of the models at the same endpoint; nil if they are unknown.
	List func(context.Context) []string

	// Redact removes secrets from a summary with the organization's key. Nil uses a shared key.
	Redact func(string) string
}

// NotAsked wraps the error of a call that did not reach a model. Such a call is not counted.
type NotAsked struct{ Err error }

func (e *NotAsked) Error() string { return e.Err.Error() }

// Unwrap returns why the model was not asked.
func (e *NotAsked) Unwrap() error { return e.Err }

// Calls returns how many model calls stand behind an error: 1, or 0 if no model was asked.
func Calls(err error) int {
	if _, not := errors.AsType[*NotAsked](err); not {
		return 0
	}
	return 1
}

// Request asks a Summarizer to answer with text, without calling a tool.
type Request struct {
	Model     string // the model's name without the provider; empty for the endpoint's default
	Messages  []chat.Message
	Tools     []byte // definitions in OpenAI's form, a JSON array; nil for none
	MaxTokens int    // of the answer; 0 leaves it to the provider

	Temperature *float32 // nil leaves it to the provider
	Effort      string   // reasoning effort: low, high, …; empty leaves it to the provider
}

// Refused is the Finish of a reply that has only the model's refusal to answer as its text.
const Refused = "refusal"

// Reply is a Summarizer's answer.
type Reply struct {
	Text         string
	Finish       string // the provider's reason: stop, length, …
	PromptTokens int    // by the provider's count; 0 if it gave none
	OutputTokens int
}

// Overflow reports that a request is larger than the model's window. Window and Sent are tokens; 0 if the provider did
// not name them.
type Overflow struct {
	Window, Sent int
	Counted      bool   // known only from the provider's count of what it read (Window); the reply may be complete
	Reason       string // the provider's words, for the operator
	Told         string // for organizations, without the provider's words; empty if there is nothing more to say
}

func (o *Overflow) Error() string {
	return tooLarge + ": " + cmp.Or(o.Reason, o.Told)
}

// Public returns the text for organizations.
func (o *Overflow) Public() string {
	if o.Told != "" {
		return tooLarge + ": " + o.Told
	}
	return tooLarge
}

const tooLarge = "the request is larger than the model's window"
