// Package compaction keeps what a model sees of a conversation inside its context window: it decides which messages
// leave the view, writes the summary that replaces them, and stores both. It never removes a message from the log, and
// a reader of a summary can look up every message that it replaces by its position.
//
// Each file uses those that are named before it:
//   - texts, and what they say: clean.go warning.go identifiers.go format.go remarks.go score.go sentences.go
//     mustmention.go ratio.go quotation.go transcript.go appended.go
//   - settings: settings.go formatprompt.go summarizer.go
//   - a view, and edits of its parts: edit.go compaction.go clip.go shown.go summarymessage.go cutpoints.go view.go
//     estimate.go trigger.go
//   - what leaves a view: plan.go planner.go candidate.go clipplan.go makeplan.go cut.go verify.go
//   - a summary that no model writes: section.go layout.go extraction.go extractresult.go extract.go extractbudget.go
//   - a summary that a model writes: writer.go calledfile.go summaryprompt.go summaryappendix.go usermessages.go
//     repair.go accept.go summarycalls.go attempt.go summarystages.go summaryunwritten.go summarysplit.go summarize.go
//   - what is stored: pruning.go store.go claim.go viewbefore.go loadview.go commit.go prune.go restore.go portable.go
//   - compactions: decides.go compact.go remake.go branchsummary.go
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
	Summary  *Summary         // of the hidden messages; nil if no message is hidden
	Messages []recall.Message // without the system prompt and the summary, by position; Tokens are those of the log
	Edits    []Edit           // of the parts that are shown otherwise than they are stored
	Count    func(string) int // counts the tokens of a text for the model; nil estimates them
	Has      recall.Toolset   // the tools that the view may name
	Usage    *Usage           // a provider's count of this view, or of its beginning; nil without one
}

// Usage is a provider's count of a prompt: the tokens of all that was sent, and the position of its last message.
type Usage struct {
	PromptTokens int
	Position     int
}

// Summary replaces the messages that left a view, from one position to another, both included.
type Summary struct {
	Text       string
	From, To   int   // positions in the conversation
	FromSeq    int64 // positions in the agent's log
	ToSeq      int64
	Tokens     int    // of the message that shows it
	Before     string // the words before it, where a model reads it; empty: Loci's
	After      string // the words after it
	How        How
	Model      string // empty if no model wrote it
	ModelCalls int

	PromptTokens int    // of all calls, as the provider counted them
	OutputTokens int    // of all calls, as the provider counted them
	Why          string // why the first way failed, for the organization; empty if it did not fail
	Detail       string // the provider's words about that failure, for the operator; not stored
}

// How names the way in which a summary was made.
type How string

// The ways, in the order in which they are tried. A transcript is clamped, then cut in the middle, if it overflows the
// window of the model that summarizes it.
const (
	Own       How = "self"      // the agent's own model wrote it, from the prompt that it is sent anyway
	Whole     How = "whole"     // a model wrote it from the whole transcript
	Clamped   How = "clamped"   // a model wrote it from a transcript whose tool results were cut to 5,000 characters
	Middle    How = "middle"    // a model wrote it from a transcript without its middle
	Extracted How = "extracted" // no model: it lists requests, decisions, calls, and names
)

// Evicted is what a summary is made from.
type Evicted struct {
	Previous     *Summary         // the summary of the messages before; the new one includes its content
	Messages     []recall.Message // in order, with the positions that the summary names
	Budget       int              // tokens that the summary may take
	Self         *Self            // set if the agent's own model summarizes
	prose.Making                  // of the summary
}

// Self is what the agent's own model is sent anyway, unchanged, so that its provider's cache of it stays valid.
type Self struct {
	System string           // the system prompt
	Tools  []byte           // definitions in OpenAI's shape, a JSON array
	View   []recall.Message // as they are shown: the summary, if there is one, and the messages up to the last evicted
}
