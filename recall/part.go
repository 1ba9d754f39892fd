package recall

import "encoding/json"

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
