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
	AnthropicBlock      PartType = "anthropic_block" // part of an Anthropic answer, described only by Item
	ResponsesItem       PartType = "responses_item"  // part of an answer of OpenAI's Responses API; likewise
)

// PartKind is a variant of a part's type.
type PartKind string

// The kinds of parts.
const (
	CustomCall       PartKind = "custom"            // a call with an Input of any text, not JSON
	Refusal          PartKind = "refusal"           // a text by which a model refuses to answer
	InnerThought     PartKind = "inner_thought"     // a text for the model itself, of an agent that speaks with a tool
	ReasoningContent PartKind = "reasoning_content" // a reasoning that a chat completion had in this field
	ReasoningField   PartKind = "reasoning"         // likewise
)

// kindsOf lists the kinds that a part may have, by its type.
var kindsOf = map[PartType][]PartKind{ToolCall: {CustomCall}, Text: {Refusal, InnerThought},
	Reasoning: {ReasoningContent, ReasoningField}}

// The names of APIs in Part.Extra.
const (
	ChatAPI      = "chat" // OpenAI's chat completions
	ResponsesAPI = "responses"
	AnthropicAPI = "anthropic"
)

// Approval says how the client took part in a call, or in its result.
type Approval string

// The approvals of calls and of results.
const (
	Asked    Approval = "asked"    // on a call: it waited for the client's approval or result
	Approved Approval = "approved" // on a result: the client approved the call, and the server ran it
	Denied   Approval = "denied"   // on a result: the client denied the call
	Returned Approval = "returned" // on a result: the client ran the tool
)

// approvalsOf lists the approvals that a part may have, by its type.
var approvalsOf = map[PartType][]Approval{ToolCall: {Asked}, ToolReturn: {Approved, Denied, Returned}}

// Part is a part of a message. Its type says which fields it has.
type Part struct {
	Type PartType `json:"type"`

	// Text is a text, a reasoning, or a tool's output without images.
	Text string `json:"text,omitempty"`

	// CallID is the id of a tool call; the call and its result both have it. A call also has Name, its tool, and Input,
	// its arguments as the JSON text that the model wrote.
	CallID string `json:"call_id,omitempty"`
	Name   string `json:"name,omitempty"`
	Input  string `json:"input,omitempty"`

	// Approval says of a call that it was left to the client, and of a result how the client answered the call.
	Approval Approval `json:"approval,omitempty" doc:"How a client answered a call, or asks for one that was left to it."`

	// IsError says that the tool failed; Stdout is what it printed. An orphan is a result without a call in its
	// conversation; no model sees it.
	IsError bool     `json:"is_error,omitempty"`
	Stdout  []string `json:"stdout,omitempty"`
	Stderr  []string `json:"stderr,omitempty"`
	Orphan  bool     `json:"orphan,omitempty"`

	// Envelope is the form in which a Letta server has shown the result to a model; nil if none has.
	Envelope *Envelope `json:"envelope,omitempty" doc:"How a Letta server showed the result to a model."`

	// Clip is set if Text is only the beginning of a tool result. The whole result is stored outside the log.
	Clip *Clip `json:"clip,omitempty"`

	// NoteAt is where Loci's own notice begins and ends in the Text that a model reads. It is zero if there is no notice,
	// or if Clip implies its place.
	NoteAt [2]int `json:"-"`

	// Source is the source of an image part. Images are the sources of images in a tool result. Both are JSON.
	Source json.RawMessage   `json:"source,omitempty"`
	Images []json.RawMessage `json:"images,omitempty"`

	// ImagesAt says at which byte of a tool result's text each of its images stands; empty if all images come last.
	ImagesAt []int `json:"images_at,omitempty"`

	// Stats says how a summary was made, as JSON.
	Stats json.RawMessage `json:"stats,omitempty"`

	// What providers attach to a reasoning. It is kept unchanged.
	Native    bool            `json:"native,omitempty"`
	Signature string          `json:"signature,omitempty"`
	Data      string          `json:"data,omitempty"`
	Summary   json.RawMessage `json:"summary,omitempty"`

	// Kind is the variant in which a provider returned the part, if its type has several; empty is the usual one.
	Kind PartKind `json:"kind,omitempty"`

	// Extra holds more fields that a provider's API has with a text, an image, a reasoning, a call or a result. It is the
	// text of a JSON object; the fields stand in it under the API's name: ChatAPI, ResponsesAPI or AnthropicAPI. Only that
	// API gets them back.
	Extra string `json:"extra,omitempty"`

	// Item is JSON that only the provider's API can read: an AnthropicBlock, a ResponsesItem, or a SummarizedReasoning
	// that was an item of OpenAI's Responses API. It has no spaces between tokens; apart from that, its bytes are as
	// received.
	Item string `json:"item,omitempty"`
}

// bytesPerSealedToken estimates how many bytes of sealed data stand for one token. Sealed data is encrypted and in
// base64.
const bytesPerSealedToken = 4

// SealedTokens estimates the tokens in data that only the part's provider can read.
func (p Part) SealedTokens() int {
	return (max(len(p.Data), len(p.Item)) + len(p.Extra)) / bytesPerSealedToken
}

// Clip describes a tool result that is stored whole outside the log.
type Clip struct {
	ID     string `json:"id"`
	Chars  int    `json:"chars"`
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"` // of the result's bytes, as hexadecimal digits
	Shown  int    `json:"shown"`  // how many of the result's bytes are in the part's text
}
