// Package recall keeps what was said: the log of an agent's conversations, which is never rewritten, and its search. It
// owns conversations, messages, calls of tools, the texts too long for the log, and the messages' vectors; it knows an
// agent only by its id.
package recall

import (
	"encoding/json"
	"time"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/recall/tokens"
)

// Role says who speaks.
type Role string

// The roles. The results of tools are messages of their own.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// Summary is the role of a message that stands for others in a view. Nobody says it: it is appended by ChangeView.
const Summary Role = "summary"

// Roles are those of what is said.
var Roles = []Role{System, User, Assistant, Tool}

// DefaultConversation is what callers may write for the id of an agent's default conversation.
const DefaultConversation = "default"

// Conversation is one thread of an agent's messages. ID is nil for the default one on the wire of messages, but every
// conversation has one.
type Conversation struct {
	Key           int64           `db:"key" json:"-"`
	ID            string          `db:"id" json:"id"`
	AgentID       string          `db:"agent_id" json:"agent_id"`
	AgentKey      int64           `db:"agent_key" json:"-"`
	IsDefault     bool            `db:"is_default" json:"-"`
	Summary       *string         `db:"summary" json:"summary"`
	Description   *string         `db:"description" json:"description"`
	Model         *string         `db:"model" json:"model"`
	ModelSettings json.RawMessage `db:"model_settings" json:"model_settings"`
	WindowLimit   *int            `db:"context_window_limit" json:"context_window_limit"` // in tokens
	Hidden        bool            `db:"hidden" json:"hidden"`
	ContextView   `json:"-"`
	Usage         `json:"-"`
	Messages      int        `db:"messages" json:"message_count"` // all of them: positions go from 1 to it
	Tokens        int64      `db:"tokens" json:"-"`               // of all messages
	Prompts       []int      `db:"prompts" json:"-"`              // positions of the compiled system prompts, the last in force
	LastMessageAt *time.Time `db:"last_message_at" json:"last_message_at"`
	ArchivedAt    *time.Time `db:"archived_at" json:"archived_at"`
	CreatedAt     time.Time  `db:"created_at" json:"created_at"`
	UpdatedAt     time.Time  `db:"updated_at" json:"updated_at"`

	Vectors *embed.Status `db:"embedding_status" json:"embedding_status"` // nil if no embeddings endpoint has worked on it
}

// Message is one message of the log. It never changes.
type Message struct {
	Key            int64     `db:"key" json:"-"`
	ID             string    `db:"id" json:"id"`
	AgentID        string    `db:"agent_id" json:"agent_id"`
	ConversationID *string   `db:"conversation_id" json:"conversation_id"` // nil: the agent's default conversation
	Seq            int64     `db:"seq" json:"seq"`                         // of its event among the agent's
	Position       int       `db:"position" json:"position"`               // in its conversation, from 1
	Role           Role      `db:"role" json:"role"`
	Name           *string   `db:"name" json:"name"`
	Content        []Part    `db:"content" json:"content"`
	OTID           *string   `db:"otid" json:"otid"`
	StepID         *string   `db:"step_id" json:"step_id"`
	RunID          *string   `db:"run_id" json:"run_id"`
	SenderID       *string   `db:"sender_id" json:"sender_id"`
	GroupID        *string   `db:"group_id" json:"group_id"`
	Model          *string   `db:"model" json:"model"`
	IsErr          bool      `db:"is_err" json:"is_err"`
	Tokens         int       `db:"tokens" json:"tokens"` // estimated when it was appended
	CreatedAt      time.Time `db:"created_at" json:"created_at"`
}

// PartType says what a part of a message is.
type PartType string

// The parts, as Letta names them.
const (
	Text                PartType = "text"
	Image               PartType = "image"
	ToolCall            PartType = "tool_call"
	ToolReturn          PartType = "tool_return"
	Reasoning           PartType = "reasoning"
	RedactedReasoning   PartType = "redacted_reasoning"
	OmittedReasoning    PartType = "omitted_reasoning"
	SummarizedReasoning PartType = "summarized_reasoning"
)

// Part is one part of a message. Which fields it has is a matter of its type.
type Part struct {
	Type PartType `json:"type"`

	// Text of a text, of a reasoning, or what a tool returned, its images aside.
	Text string `json:"text,omitempty"`

	// CallID of a tool call and of its return. Name and Input are the call's: the tool, and its arguments as the JSON text
	// that the model wrote.
	CallID string `json:"call_id,omitempty"`
	Name   string `json:"name,omitempty"`
	Input  string `json:"input,omitempty"`

	// Of a tool's return: whether the tool failed, what it printed, and whether no call of the conversation waited for it.
	// An orphan is kept, and never shown to a model.
	IsError bool     `json:"is_error,omitempty"`
	Stdout  []string `json:"stdout,omitempty"`
	Stderr  []string `json:"stderr,omitempty"`
	Orphan  bool     `json:"orphan,omitempty"`

	// Clip is where the whole of a tool's return is, if Text is only its beginning.
	Clip *Clip `json:"clip,omitempty"`

	// Source of an image, and of those in a tool's return, as JSON.
	Source json.RawMessage   `json:"source,omitempty"`
	Images []json.RawMessage `json:"images,omitempty"`

	// Stats of a summary: how it came to be, as JSON.
	Stats json.RawMessage `json:"stats,omitempty"`

	// What providers attach to reasoning, as they sent it.
	Native    bool            `json:"native,omitempty"`
	Signature string          `json:"signature,omitempty"`
	Data      string          `json:"data,omitempty"`
	Summary   json.RawMessage `json:"summary,omitempty"`
}

// Clip is a text that is stored whole beside the log.
type Clip struct {
	ID     string `json:"id"`
	Chars  int    `json:"chars"`
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"` // of its bytes, in hexadecimal digits
	Shown  int    `json:"shown"`  // bytes of it at the beginning of the part's text
}

// Draft is a message to append. CreatedAt is when it was said; nil is now.
type Draft struct {
	Role      Role
	Name      *string
	Content   []Part
	OTID      *string // the caller's own id: a message with one that the agent has already is not stored again
	StepID    *string
	RunID     *string
	SenderID  *string
	GroupID   *string
	Model     *string
	IsErr     bool
	CreatedAt *time.Time
}

func tokensOf(parts []Part) int {
	n := tokens.PerMessage
	for _, p := range parts {
		n += tokens.Estimate(p.Text) + tokens.Estimate(p.Name) + tokens.Estimate(p.Input) + len(p.Images)*tokens.PerImage
		for _, s := range [][]string{p.Stdout, p.Stderr} {
			for _, line := range s {
				n += tokens.Estimate(line)
			}
		}
		if p.Type == Image {
			n += tokens.PerImage
		}
	}
	return n
}
