package agent

import (
	"encoding/json"
	"time"

	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/recall/tokens"
)

// Prompt is the next prompt of an agent's model in a conversation. All of it is read at one moment.
type Prompt struct {
	Agent        Agent // with the model and the window that it has in the conversation
	Conversation recall.Conversation
	Seq          int64            // seq of the agent's newest event at that moment
	Messages     []recall.Message // messages of the view, without the system prompt
	Tokens       Tokens
	Pending      []chat.PendingCall // a provider refuses the request unless these have results

	assembled    time.Time // when its transaction began
	settings     plan.Settings
	policy       policy.Effective
	format       Format
	calibration  tokens.Calibration // of the agent's model
	factor       tokens.Factor      // of what is composed so far, by the calibration
	counted      Tokens             // Tokens by count alone, before the model's factor
	ofTools      tokens.Composition
	ofSystem     tokens.Composition // of the system prompt, without the state
	ofMessages   tokens.Composition // of the messages as they are sent, with the state
	system       systemPrompt
	count        func(text string) int // counts tokens as the agent's model does
	compose      func(text string) tokens.Composition
	hasFolder    bool // a folder is attached to the agent
	definitions  []Definition
	tools        []json.RawMessage // the definitions in the prompt's format
	messages     []json.RawMessage // the messages in the prompt's format, with the state
	marks        chat.Marks        // of the tools and the system prompt
	logged       recall.Message    // the log's newest system prompt
	notes        map[string]string // recalled texts behind messages, by the ids of these
	summary      string            // the summary as the model reads it; empty if nothing is hidden
	placeholders int               // tokens of placeholders for results of pending calls
	must         string            // the tool that the model must call; empty: it may choose
	unread       recall.Window     // if the view is too long to be sent, counts its messages beyond Messages
}

// window returns the prompt's context window in tokens.
func (p Prompt) window() int { return p.Agent.AssumedWindow() }

// newest returns the id of the prompt's newest message.
func (p Prompt) newest() string {
	if len(p.Messages) == 0 {
		return ""
	}
	return p.Messages[len(p.Messages)-1].ID
}

// Tokens are the tokens of a prompt's parts. They are counted on exactly what is sent, with the vocabulary of the
// agent's model or by an estimate, times the model's factor. A message counts its texts, its calls' arguments, its
// images, and a few tokens for what the provider puts around them. If a provider has reported its count of the prompt's
// beginning, Total uses it, and the parts are scaled to Total.
type Tokens struct {
	Total       int `json:"total"`
	Estimated   int `json:"estimated" doc:"What Loci counts for the prompt, before any report of a provider corrects it."`
	Tools       int `json:"tools"`
	System      int `json:"base_instructions"`
	Blocks      int `json:"core_memory"`
	Rules       int `json:"tool_usage_rules"`
	Skills      int `json:"skills" doc:"Of their list, and of the preloaded ones."`
	Directories int `json:"directories"`
	Metadata    int `json:"memory_metadata" doc:"Of counts, and of what stands around the state at the prompt's end."`
	Working     int `json:"working_memory" doc:"Of the conversation's working memory."`
	Summary     int `json:"summary"` // summary of the hidden messages
	Messages    int `json:"messages"`

	Classes tokens.Composition `json:"-"` // what Estimated is of

	Counted *Counted `json:"counted,omitempty" doc:"What the provider counted for the answers to this prompt, if known."`
}

// Counted is what a provider counted, in tokens. Prompt includes Read and Write.
type Counted struct {
	Answers    int64 `json:"answers" db:"answers" doc:"Of models."`
	Prompt     int64 `json:"prompt_tokens" db:"prompt_tokens" doc:"Of all prompts."`
	Completion int64 `json:"completion_tokens" db:"completion_tokens" doc:"Of all answers."`
	Read       int64 `json:"cached_input_tokens" db:"cached_input_tokens" doc:"Of prompts, read from a cache."`
	Write      int64 `json:"cache_write_tokens" db:"cache_write_tokens" doc:"Of prompts, written to a cache."`
}

// stateTokens counts the item at the end of a request.
func (p systemPrompt) stateTokens(count func(string) int) int {
	return tokens.PerMessage + count(p.state())
}

// preloadedTokens counts the messages of preloaded skills.
func (p systemPrompt) preloadedTokens(count func(string) int) (n int) {
	for _, m := range p.preloaded {
		n += tokens.PerMessage + count(m.Text())
	}
	return n
}

// instructions returns the tokens of everything but tools, summary and messages.
func (t *Tokens) instructions() int {
	return t.System + t.Blocks + t.Rules + t.Skills + t.Directories + t.Metadata + t.Working
}

// in returns the parts scaled to a total.
func (t Tokens) in(total int) Tokens {
	of := func(n int) int { return int(int64(n) * int64(total) / int64(max(t.Total, 1))) }
	scaled := Tokens{Total: total, Estimated: t.Total, Tools: of(t.Tools), System: of(t.System), Blocks: of(t.Blocks),
		Rules: of(t.Rules), Skills: of(t.Skills), Directories: of(t.Directories), Metadata: of(t.Metadata),
		Working: of(t.Working), Summary: of(t.Summary), Classes: t.Classes}
	scaled.Messages = total - scaled.Tools - scaled.instructions() - scaled.Summary
	return scaled
}
