// Package transcript reads sessions that agents recorded, in the formats of several harnesses, as drafts of messages.
//
// Each file uses those that are named before it:
//   - what all formats share: transcript.go json.go broken.go chat.go
//   - the formats of single harnesses: sweagent.go pi.go loci.go claudecode.go codex.go openhands.go openhandssdk.go
//     sharegpt.go
//   - any of them, and which it is: read.go
//   - a transcript as messages that a server captures: wire.go
package transcript

import (
	"fmt"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

// Transcript is a recorded session.
type Transcript struct {
	Name     string // name of the file, and of the session if the file has several
	Session  string // the recording's own id of the session; empty if it has none
	Format   Format
	System   string         // the system prompt; empty if the recording has none
	Drafts   []recall.Draft // without the system prompt; an OTID is the recording's own id of the message
	LeftOut  map[string]int // number of entries that are no messages, and of parts that are not read, by kind
	Evidence []Question     // questions with evidence that the recording names
	Counted  *Usage         `json:",omitempty"` // what the provider counted; nil if the recording does not say
	Prompts  []Prompt       `json:",omitempty"` // prompts that the provider counted, in order
}

// Prompt is a prompt that a provider counted. It held the drafts before Answer, the index of the draft that answered
// it, and the system prompt and tools, which a recording may lack.
type Prompt struct {
	Answer int    `json:"answer"`
	Tokens int    `json:"tokens"`
	Model  string `json:"model,omitempty"` // that was asked, as its provider names it; empty if unknown
}

// Usage is what a provider counted for the prompts of a session, in tokens. Prompt includes Read and Write.
type Usage struct {
	Answers int `json:"answers" doc:"Of the model."`
	Prompt  int `json:"prompt_tokens" doc:"Of all prompts."`
	Read    int `json:"cached_input_tokens" doc:"Of them, read from a cache."`
	Write   int `json:"cache_write_tokens" doc:"Of them, written to a cache."`
}

// count adds what a provider counted for an answer of a model, whose first draft has an index. Without a prompt it adds
// nothing.
func (t *Transcript) count(answer int, u chat.Usage, model string) {
	if u.Prompt == 0 {
		return
	}
	t.Prompts = append(t.Prompts, Prompt{answer, u.Prompt, model})
	if t.Counted == nil {
		t.Counted = &Usage{}
	}
	t.Counted.Answers++
	t.Counted.Prompt += u.Prompt
	t.Counted.Read += u.CacheRead
	t.Counted.Write += u.CacheWrite
}

// Question is a question about a session, asked after its end, and the ids of the messages that answer it.
type Question struct {
	Text     string   `json:"question"`
	Answer   string   `json:"answer"`
	Evidence []string `json:"evidence"`
}

// Format names how a session was recorded.
type Format string

// The formats.
const (
	Chat       Format = "chat"        // messages of OpenAI's APIs, of Anthropic or of Letta
	ClaudeCode Format = "claude-code" // a line for each entry of a session of Claude Code
	Pi         Format = "pi"          // a line for each entry of a session of Pi or OpenClaw
	SWEAgent   Format = "swe-agent"   // a trajectory
	Codex      Format = "codex"       // a rollout: a line for each item of a session of Codex
	OpenHands  Format = "openhands"   // events of OpenHands, or of its agent SDK
	ShareGPT   Format = "sharegpt"    // conversations of a data set
	Loci       Format = "loci"        // an agent that Loci exported in full
)

// Error says where a transcript cannot be read, and why.
type Error struct {
	Name string
	Line int // from 1
	Why  string
}

func (e *Error) Error() string { return fmt.Sprintf("%s, line %d: %s", e.Name, e.Line, e.Why) }
