// Package compaction holds what a model sees of a conversation inside its window: it decides what leaves the view, writes the summary that
// stands for it, and keeps both. Nothing is ever removed from the log; what a summary hides stays readable by its place.
package compaction

import (
	"context"

	"github.com/loci-memory/loci/recall"
)

// View is what a model sees before its next turn, in the order in which it is sent.
type View struct {
	Window   int              // tokens that the model takes
	Fixed    int              // tokens of the system prompt and the tools' definitions
	Tools    int              // those of Fixed that are the tools' definitions
	Summary  *Summary         // of what was before; nil where nothing is hidden
	Messages []recall.Message // beside the system prompt and the summary, in the order of their positions; Tokens are those of the log
	Clips    []Clip           // of results among the messages that are shown clipped
	Usage    *Usage           // nil where no provider reported one since the view last changed otherwise than by growing
}

// Clip says that only the beginning and the end of a tool's result are shown. The rest is read by expand with the message's place.
type Clip struct {
	Position int `json:"position"` // of the message in its conversation
	Part     int `json:"part"`     // of the message's content, from 0
	Chars    int `json:"chars"`    // that are shown
}

// Usage is what a provider counted of a prompt: tokens of all that was sent, and the position of the last message that was among it.
type Usage struct {
	PromptTokens int
	Position     int
}

// Summary stands for messages that left a view, from one place to another, both included.
type Summary struct {
	Text       string
	From, To   int   // positions in the conversation
	FromSeq    int64 // positions in the agent's log
	ToSeq      int64
	Tokens     int // of the message that shows it
	How        How
	Model      string // empty where no model wrote it
	ModelCalls int

	// What the calls took together, as the provider counted, and why it was not made in the first way; empty where it was.
	PromptTokens int
	OutputTokens int
	Why          string
}

// How says which way a summary was made.
type How string

// The ways, in the order in which they are tried. The stages are of a summariser whose own window overflows.
const (
	Own       How = "self"      // the agent's own model was given what it is sent anyway
	Whole     How = "whole"     // a model was given all of it
	Clamped   How = "clamped"   // with the results of tools cut to 5,000 characters
	Middle    How = "middle"    // with the middle of it left out
	Extracted How = "extracted" // without a model: what was asked, decided, called and named
)

// Evicted is what a summary is to be made of.
type Evicted struct {
	Previous *Summary         // what stood for what was before; its text is carried along
	Messages []recall.Message // in order; with the positions that the summary names
	Budget   int              // tokens that the summary may take
	Self     *Self            // for the agent's own model; nil for any other
}

// Self is what the agent's own model is sent anyway, unchanged, so that what its provider cached of it stays good.
type Self struct {
	System string
	Tools  []byte           // definitions in OpenAI's shape, a JSON array
	Before []recall.Message // the messages of the view before those to be summarised, if any
	After  []recall.Message // and behind them, for self_compact_all
	Turns  []Turn           // all of it as the agent's model was sent it; nil makes them of the rest, in the order of the positions
}

// Summarizer answers a request of the compactor: a model behind a provider's endpoint. Its errors tell an *Overflow from everything else.
type Summarizer interface {
	Complete(ctx context.Context, r Request) (Reply, error)
}

// Request is what a Summarizer is asked: messages in OpenAI's shape, to be answered with text and without calling a tool.
type Request struct {
	Model     string // the handle's name, without its provider; empty for the endpoint's default
	Messages  []Turn
	Tools     []byte // definitions in OpenAI's shape, a JSON array; nil for none
	MaxTokens int    // of the answer; 0 leaves it to the provider

	Temperature *float32 // nil leaves it to the provider
	Effort      string   // of a model that reasons: low, high, …; empty leaves it to the provider
}

// Turn is one message of a request.
type Turn struct {
	Role    string // system, user, assistant or tool
	Content string
	Calls   []Call // of an assistant
	CallID  string // of a tool's result
}

// Call is a call of a tool by an assistant.
type Call struct {
	ID, Name, Arguments string
}

// Refused is the Finish of a reply whose text is the model's refusal to answer.
const Refused = "refusal"

// Reply is what a Summarizer answered.
type Reply struct {
	Text         string
	Finish       string // the provider's reason: stop, length, …
	PromptTokens int    // as the provider counted; 0 where it did not
	OutputTokens int
}

// Overflow says that a request is larger than the model's window. Window and Sent are in tokens, 0 where the provider did not say.
type Overflow struct {
	Window, Sent int
	Reason       string // in the provider's words
}

func (o *Overflow) Error() string {
	return "the request is larger than the model's window: " + o.Reason
}
