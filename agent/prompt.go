package agent

import (
	"encoding/json"

	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/recall/tokens"
)

// Prompt is the next prompt of an agent's model in a conversation, read at one moment.
type Prompt struct {
	Agent        Agent // with the model and the window of the conversation
	Conversation recall.Conversation
	Seq          int64            // of the agent's newest event at that moment
	Messages     []recall.Message // of the view, without the system prompt
	Tokens       Tokens
	Pending      []chat.PendingCall // without them a provider refuses the request, unless they are answered in it

	settings     plan.Settings
	policy       policy.Effective
	format       Format
	calibration  calibration // of the agent's model
	counted      Tokens      // by count; Tokens are these as the provider counts them
	system       systemPrompt
	count        func(text string) int // counts tokens as the agent's model does
	hasFolder    bool                  // whether any is attached to the agent
	definitions  []Definition
	tools        []json.RawMessage // the definitions in the format
	messages     []json.RawMessage // in the format
	logged       recall.Message    // the newest system prompt of the log
	summary      string            // as the model reads it; empty if nothing is hidden
	placeholders int               // tokens of the results that pending calls are given
	must         string            // the tool that the model must call; empty if it may choose
	unread       recall.Window     // counts of the messages that a view too long to be sent has in addition to Messages
}

// window returns the context window of the prompt in tokens.
func (p Prompt) window() int { return p.Agent.AssumedWindow() }

// newest returns the id of the newest message of the prompt.
func (p Prompt) newest() string {
	if len(p.Messages) == 0 {
		return ""
	}
	return p.Messages[len(p.Messages)-1].ID
}

// Tokens are the tokens of the parts of a prompt, counted on exactly what is sent, with the vocabulary of the agent's
// model or by an estimate, times the model's factor. A message counts its texts, the arguments of its calls, its
// images, and a few tokens more for what the provider puts around them. Where a provider reported its count of the
// beginning of the prompt, that counts in Total, and the parts are in proportion to it.
type Tokens struct {
	Total       int `json:"total"`
	Estimated   int `json:"estimated" doc:"What Loci counts for the prompt, before any report of a provider corrects it."`
	Tools       int `json:"tools"`
	System      int `json:"base_instructions"`
	Blocks      int `json:"core_memory"`
	Rules       int `json:"tool_usage_rules"`
	Directories int `json:"directories"`
	Metadata    int `json:"memory_metadata"`
	Working     int `json:"working_memory" doc:"Of the conversation's working memory."`
	Summary     int `json:"summary"` // of the hidden messages
	Messages    int `json:"messages"`
}

// count counts the parts of a system prompt.
func (t *Tokens) count(p systemPrompt, count func(string) int) {
	t.System, t.Blocks, t.Rules = count(p.system), count(p.blocks), count(p.rules)
	t.Directories, t.Metadata = count(p.directories), count(p.metadata)
	t.Working = count(p.working)
}

// instructions returns the tokens of the system prompt.
func (t *Tokens) instructions() int {
	return t.System + t.Blocks + t.Rules + t.Directories + t.Metadata + t.Working
}

// in returns the parts in proportion to a total.
func (t Tokens) in(total int) Tokens {
	of := func(n int) int { return int(int64(n) * int64(total) / int64(max(t.Total, 1))) }
	scaled := Tokens{Total: total, Estimated: t.Total, Tools: of(t.Tools), System: of(t.System), Blocks: of(t.Blocks),
		Rules: of(t.Rules), Directories: of(t.Directories), Metadata: of(t.Metadata), Working: of(t.Working),
		Summary: of(t.Summary)}
	scaled.Messages = total - scaled.Tools - scaled.instructions() - scaled.Summary
	return scaled
}

// calibration holds the factors of a model that follow from the usage that an organization reported.
type calibration struct {
	Factor tokens.Factor `db:"factor"` // of whole prompts
	Growth tokens.Factor `db:"growth"` // of the messages between two reports; 0 before there were two
}
