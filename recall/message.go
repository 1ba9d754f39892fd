package recall

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall/tokens"
)

// Role names the speaker of a message.
type Role string

// The roles of messages. Tool is the role of a message with tool results.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
	Summary   Role = "summary" // of a message that replaces others in the view; ChangeView appends it
)

// Roles lists the roles without Summary.
var Roles = []Role{System, User, Assistant, Tool}

// ForFlush is the purpose of the messages of a silent turn, in which a model writes to memory what must last before a
// compaction. Prompts of the conversation leave them out, and so do lists, unless they are asked for.
const ForFlush = "flush"

// Message is a message of the log. It never changes, but for Refused.
type Message struct {
	Key            int64     `db:"key" json:"-"`
	ID             string    `db:"id" json:"id"`
	AgentID        string    `db:"agent_id" json:"agent_id"`
	ConversationID *string   `db:"conversation_id" json:"conversation_id"` // nil for the agent's default one
	Seq            int64     `db:"seq" json:"seq"`                         // of its event, among the agent's
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
	Purpose        string    `db:"purpose" json:"purpose,omitempty"` // ForFlush, or empty
	Tokens         int       `db:"tokens" json:"tokens"`             // estimated when it was appended
	CreatedAt      time.Time `db:"created_at" json:"created_at"`

	// Refused says that a provider refused a prompt with the message, which left the view for that; nil if none did.
	Refused *Refused `db:"refused" json:"refused,omitempty" doc:"Why a provider refused it; it left the view."`

	// Provenance is who stored it, as far as its own fields do not say; nil if they say all that is known.
	Provenance *db.Provenance `db:"provenance" json:"provenance,omitempty"`
}

// PartType names what a part of a message holds.
type PartType string

// The types of parts, as Letta names them.
const (
	Text                PartType = "text"
	Image               PartType = "image"
	ToolCall            PartType = "tool_call"
	ToolReturn          PartType = "tool_return"
	Reasoning           PartType = "reasoning"
	RedactedReasoning   PartType = "redacted_reasoning"
	OmittedReasoning    PartType = "omitted_reasoning"
	SummarizedReasoning PartType = "summarized_reasoning"
	AnthropicBlock      PartType = "anthropic_block" // of an answer of Anthropic's; only Item says what it is
	ResponsesItem       PartType = "responses_item"  // of an answer of OpenAI's Responses API; likewise
)

// PartKind is a form of a part.
type PartKind string

// The kinds of parts.
const (
	CustomCall       PartKind = "custom"            // a call whose Input is any text, not JSON
	Refusal          PartKind = "refusal"           // a text by which a model refuses to answer
	ReasoningContent PartKind = "reasoning_content" // a reasoning that a chat completion had in the field of this name
	ReasoningField   PartKind = "reasoning"         // likewise
)

// kindsOf lists the kinds that parts of a type can have.
var kindsOf = map[PartType][]PartKind{ToolCall: {CustomCall}, Text: {Refusal}, Reasoning: {ReasoningContent,
	ReasoningField}}

// The names of APIs in Part.Extra.
const (
	ChatAPI      = "chat" // OpenAI's chat completions
	ResponsesAPI = "responses"
	AnthropicAPI = "anthropic"
)

// Approval is what a call or its result has to do with the client that answers calls.
type Approval string

// The approvals of calls and of results.
const (
	Asked    Approval = "asked"    // a call: it waited for the client's approval, or for its result
	Approved Approval = "approved" // a result: the client approved the call, and the server ran it
	Denied   Approval = "denied"   // a result: the client denied the call
	Returned Approval = "returned" // a result: the client ran the tool
)

// approvalsOf lists the approvals that parts of a type can have.
var approvalsOf = map[PartType][]Approval{ToolCall: {Asked}, ToolReturn: {Approved, Denied, Returned}}

// Part is a part of a message. Its type decides which fields it has.
type Part struct {
	Type PartType `json:"type"`

	// Text is a text, a reasoning, or what a tool returned, without images.
	Text string `json:"text,omitempty"`

	// CallID is the id of a tool call, in the call and in its result. Name and Input are the call's tool, and its
	// arguments as the JSON text that the model wrote.
	CallID string `json:"call_id,omitempty"`
	Name   string `json:"name,omitempty"`
	Input  string `json:"input,omitempty"`

	// Approval says that a call was left to the client, or of a result how the client answered its call.
	Approval Approval `json:"approval,omitempty" doc:"How a client answered a call, or asks for one that was left to it."`

	// A tool result's failure, and what the tool printed. An orphan is a result without a call in its conversation; no
	// model sees it.
	IsError bool     `json:"is_error,omitempty"`
	Stdout  []string `json:"stdout,omitempty"`
	Stderr  []string `json:"stderr,omitempty"`
	Orphan  bool     `json:"orphan,omitempty"`

	// Clip is set if Text is only the beginning of a tool result, which is stored whole outside the log.
	Clip *Clip `json:"clip,omitempty"`

	// NoteAt is where Loci's own notice begins and ends in Text as a model is shown it; zero if it has none, or if Clip
	// tells.
	NoteAt [2]int `json:"-"`

	// Source is the source of an image, and Images are those of the images in a tool result, as JSON.
	Source json.RawMessage   `json:"source,omitempty"`
	Images []json.RawMessage `json:"images,omitempty"`

	// ImagesAt is where in the text of a tool result each of its images stands, in bytes; empty if all come last.
	ImagesAt []int `json:"images_at,omitempty"`

	// Stats says how a summary was made, as JSON.
	Stats json.RawMessage `json:"stats,omitempty"`

	// What providers attach to a reasoning, unchanged.
	Native    bool            `json:"native,omitempty"`
	Signature string          `json:"signature,omitempty"`
	Data      string          `json:"data,omitempty"`
	Summary   json.RawMessage `json:"summary,omitempty"`

	// Kind says in which form a provider returned a part whose type allows several; empty is the usual one.
	Kind PartKind `json:"kind,omitempty"`

	// Extra are further fields with which a provider's API returned a text, a reasoning or a call, as the text of a JSON
	// object that has them under the name of the API: ChatAPI, ResponsesAPI or AnthropicAPI. They go back to the same API.
	Extra string `json:"extra,omitempty"`

	// Item is what a provider's API returned that only it can read, as the text of its JSON without spaces between
	// tokens, otherwise byte for byte: an AnthropicBlock, a ResponsesItem, or a SummarizedReasoning that was an item
	// of OpenAI's Responses API.
	Item string `json:"item,omitempty"`
}

// bytesPerSealedToken is an estimate of how many bytes a token of what only a provider can read takes: it is encrypted,
// and written in base64.
const bytesPerSealedToken = 4

// SealedTokens estimates the tokens of what only the part's provider can read.
func (p Part) SealedTokens() int {
	return (max(len(p.Data), len(p.Item)) + len(p.Extra)) / bytesPerSealedToken
}

// Clip describes a tool result that is stored whole outside the log.
type Clip struct {
	ID     string `json:"id"`
	Chars  int    `json:"chars"`
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"` // of its bytes, in hexadecimal digits
	Shown  int    `json:"shown"`  // its bytes in the part's text
}

// Text returns a message as one text: what it says and thinks, the tools it calls, and what they returned.
func (m Message) Text() string {
	var texts []string
	for _, p := range m.Content {
		switch p.Type {
		case ToolCall:
			texts = append(texts, p.Name+"("+p.Input+")")
		case Image:
			texts = append(texts, "[image]")
		default:
			texts = append(texts, p.Text)
		}
		texts = append(append(texts, p.Stdout...), p.Stderr...)
	}
	return joinTexts(texts)
}

// sizeOf returns the size of a message in tokens, where measure is that of a text.
func sizeOf(parts []Part, measure func(string) int) int {
	n := tokens.PerMessage
	for _, p := range parts {
		n += measure(p.Text) + measure(p.Name) + measure(p.Input) + len(p.Images)*tokens.PerImage
		for _, s := range [][]string{p.Stdout, p.Stderr} {
			for _, line := range s {
				n += measure(line)
			}
		}
		if p.Type == Image {
			n += tokens.PerImage
		}
	}
	return n
}

// messageColumns are the columns of Message, from messageTables.
const messageColumns = `m.key, 'message-' || m.id AS id, a.id AS agent_id,
	CASE WHEN NOT c.is_default THEN c.id END AS conversation_id,
	m.seq, m.position, m.role, m.name, m.content, m.otid, m.step_id, m.run_id, m.sender_id, m.group_id, m.model, m.is_err,
	m.purpose, m.tokens, m.created_at, m.refused, m.provenance`

// messageTables joins messages to their conversations and agents. It leaves out the messages of deleted ones.
const messageTables = `messages m
	JOIN conversations c ON c.org = m.org AND c.key = m.conversation_key AND c.deleted_at IS NULL
	JOIN agents a ON a.org = c.org AND a.key = c.agent_key`

// tablesOf returns messageTables, with the messages that Reset hid if withReset is true.
func tablesOf(withReset bool) string {
	return strings.Replace(messageTables, notDeleted, shownOf(withReset), 1)
}

const notDeleted = "c.deleted_at IS NULL"

// shownOf is the condition for a conversation c that is not deleted. With withReset, one that Reset hid passes, too.
func shownOf(withReset bool) string {
	if withReset {
		return "(" + notDeleted + " OR c.reset_at IS NOT NULL)"
	}
	return notDeleted
}

// uuidOf returns the UUID in a message's id, or the nil UUID, which no message has.
func uuidOf(id string) uuid.UUID { return db.UUID("message-", id) }

// Message returns a message by its id.
func (s *Store) Message(ctx context.Context, org db.Org, id string) (Message, error) {
	m, err := db.One[Message](ctx, s.db, `
		SELECT `+messageColumns+` FROM `+messageTables+`
		WHERE m.org = $1 AND m.id = $2`, org, uuidOf(id))
	return m, messageError(err, id)
}

func messageError(err error, id string) error {
	return db.OrNotFound(err, "Message with ID %s not found", id)
}

// MessageFilter selects messages; an empty field selects all.
type MessageFilter struct {
	AgentID      string
	Conversation string // an id, or DefaultConversation of AgentID
	GroupID      string
	RunID        string
	StepID       string
	WithErrors   bool // include messages that report an error
	WithFlushes  bool // include those of silent turns
	WithReset    bool // include those that Reset hid, in a list of an agent or of the organization
	NotRefused   bool // leave out those that left the view because a provider refused them
	Roles        []Role
	Parts        []PartType // the assistant's messages must have a part of one of these types, or no part
}

// where returns the filter as a condition on messages m, without the agent and the conversation, and adds its
// arguments.
func (f MessageFilter) where(args pgx.StrictNamedArgs) string {
	where := ""
	if f.GroupID != "" {
		where += ` AND m.group_id = @group`
		args["group"] = f.GroupID
	}
	if f.RunID != "" {
		where += ` AND m.run_id = @run`
		args["run"] = f.RunID
	}
	if f.StepID != "" {
		where += ` AND m.step_id = @step`
		args["step"] = f.StepID
	}
	if !f.WithErrors {
		where += ` AND NOT m.is_err`
	}
	if f.NotRefused {
		where += ` AND m.refused IS NULL`
	}
	if !f.WithFlushes {
		where += ` AND m.purpose = ''`
	}
	if len(f.Roles) > 0 {
		where += ` AND m.role = ANY (@roles)`
		args["roles"] = f.Roles
	}
	if len(f.Parts) > 0 {
		where += ` AND (m.role <> 'assistant' OR json_array_length(m.content) = 0
			OR EXISTS (SELECT FROM json_array_elements(m.content) AS part WHERE part ->> 'type' = ANY (@parts)))`
		args["parts"] = f.Parts
	}
	return where
}

// Messages lists the messages of a conversation, a run, a step, an agent or the organization, in the order in which
// they were appended. Those of an agent or the organization are without the forks in which sub-agents work. It returns
// ErrNotFound if the agent or the conversation does not exist. The page's Before and After are ids of messages; an id
// that is not in the list gives an empty page. New messages come after all listed ones, but in a list of the
// organization a message may come before those that were listed while it was being appended.
func (s *Store) Messages(ctx context.Context, org db.Org, f MessageFilter, p db.Page) ([]Message, error) {
	order, where, args := "m.key", "", pgx.StrictNamedArgs{"org": org}
	switch {
	case f.Conversation != "":
		c, err := s.Conversation(ctx, org, f.AgentID, f.Conversation)
		if err != nil {
			return nil, err
		}
		order, where, args["of"] = "m.position", " AND m.conversation_key = @of", c.Key
	case f.AgentID != "":
		agent, err := db.AgentKey(ctx, s.db, org, f.AgentID)
		if err != nil {
			return nil, err
		}
		order, where, args["of"] = "m.seq", " AND m.agent_key = @of", agent
	}
	if f.Conversation == "" && f.RunID == "" && f.StepID == "" {
		where += ` AND NOT c.delegated`
	}
	place := `SELECT ` + order + ` FROM ` + tablesOf(f.WithReset) + `
		WHERE m.org = @org AND m.id = @place::uuid` + where
	page := p.ByUUID("message-").Clauses(order, place, args)
	rows, err := db.All[Message](ctx, s.db, `
		SELECT `+messageColumns+` FROM `+tablesOf(f.WithReset)+`
		WHERE m.org = @org`+where+f.where(args)+` AND `+page.Where+page.Order, args)
	if page.Reversed {
		slices.Reverse(rows)
	}
	return rows, err
}

// MessagesByID returns the messages of ids, in their order, without those that do not exist.
func (s *Store) MessagesByID(ctx context.Context, org db.Org, ids []string) ([]Message, error) {
	uuids := make([]uuid.UUID, len(ids))
	for i, id := range ids {
		uuids[i] = uuidOf(id)
	}
	return db.All[Message](ctx, s.db, `
		SELECT `+messageColumns+` FROM unnest($2::uuid[]) WITH ORDINALITY AS wanted (id, place)
		JOIN `+messageTables+` ON m.id = wanted.id
		WHERE m.org = $1
		ORDER BY wanted.place`, org, uuids)
}
