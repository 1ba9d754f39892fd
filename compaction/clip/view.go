package clip

import (
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/recall"
)

// View is what a model sees before its next turn, in the order in which it is sent.
type View struct {
	Window   int              // the model's context window in tokens
	Fixed    int              // tokens of the system prompt and the tool definitions
	Tools    int              // tokens of the tool definitions, which Fixed includes
	Summary  *Summary         // stands for the hidden messages; nil if none are hidden
	Messages []recall.Message // without system prompt and summary, by position; their Tokens are the log's
	Edits    []Edit           // parts that are shown in other ways than they are stored
	Count    func(string) int // counts a text's tokens for the model; nil: tokens are estimated
	Has      recall.Toolset   // the tools that the view may name
	Usage    *Usage           // a provider's token count of this view, or of the view's beginning; nil: none
}

// Usage is a provider's count of a prompt: the tokens of all that was sent, and the position of the last message.
type Usage struct {
	PromptTokens int
	Position     int
}

// Summary replaces the messages From … To that left a view.
type Summary struct {
	Text       string
	From, To   int   // positions in the conversation, both included
	FromSeq    int64 // positions in the agent's log
	ToSeq      int64
	Tokens     int    // tokens of the message that shows it
	Before     string // the words before it where a model reads it; empty: Loci's
	After      string // the words after it
	How        How
	Model      string // the model that wrote it; empty if none did
	ModelCalls int

	PromptTokens int    // tokens of all calls, by the provider's count
	OutputTokens int    // tokens of all calls, by the provider's count
	Why          string // why the first way failed, for the organization; empty if it did not fail
	Detail       string // the provider's words about that failure, for the operator; not stored
}

// How is the way in which a summary was made.
type How string

// The ways, in the order in which they are tried. If a transcript overflows the window of the model that summarizes it,
// it is first clamped, and then cut in the middle.
const (
	Own       How = "self"      // the agent's own model wrote it, from its next prompt
	Whole     How = "whole"     // a model wrote it from the whole transcript
	Clamped   How = "clamped"   // a model wrote it from a transcript with tool results cut to 5,000 characters
	Middle    How = "middle"    // a model wrote it from a transcript without its middle
	Extracted How = "extracted" // made without a model: it lists requests, decisions, calls and names
)

// Evicted is the input of a summary: the messages to summarize, and the rules for it.
type Evicted struct {
	Previous     *Summary         // summary of earlier messages; the new one includes its content
	Messages     []recall.Message // in order, with the positions that the summary cites
	Budget       int              // tokens that the summary may take
	Self         *Self            // set if the agent's own model summarizes
	prose.Making                  // how the summary is made
}

// Self is the unchanged prompt that the agent's own model gets anyway, so that its provider's cache stays valid.
type Self struct {
	System string           // the system prompt
	Tools  []byte           // definitions in OpenAI's form, a JSON array
	View   []recall.Message // the summary, if there is one, and the messages up to the last evicted one, as shown
}
