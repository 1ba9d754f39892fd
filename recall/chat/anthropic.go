package chat

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// anthropicMessage is a message of Anthropic's messages API.
type anthropicMessage struct {
	Role    string           `json:"role"`
	Content []anthropicBlock `json:"content"`
}

// anthropicBlock is a part of a message. Its type decides which fields it has.
type anthropicBlock struct {
	Type      string           `json:"type"`
	Text      string           `json:"text,omitempty"`
	Source    *imageSource     `json:"source,omitempty"`
	Thinking  *string          `json:"thinking,omitempty"`
	Signature string           `json:"signature,omitempty"`
	Data      string           `json:"data,omitempty"`
	ID        string           `json:"id,omitempty"`
	Name      string           `json:"name,omitempty"`
	Input     json.RawMessage  `json:"input,omitempty"`
	CallID    string           `json:"tool_use_id,omitempty"`
	Content   []anthropicBlock `json:"content,omitempty"`
	IsError   bool             `json:"is_error,omitempty"`
	Citations json.RawMessage  `json:"citations,omitempty"`
	Caller    json.RawMessage  `json:"caller,omitempty"`
	Cache     *CacheControl    `json:"cache_control,omitempty"`

	item json.RawMessage // replaces all fields
}

func (b anthropicBlock) MarshalJSON() ([]byte, error) {
	if b.item != nil {
		return b.item, nil
	}
	type fields anthropicBlock
	return Encode(fields(b)), nil
}

// Anthropic returns the messages of a view as Anthropic accepts them, without the system prompt, and their tokens. The
// first message is the user's, roles alternate, and results stand directly after their calls in the user's message.
func Anthropic(view []recall.Message, count Counter) (messages []json.RawMessage, n int) {
	all := anthropicMessages(view)
	keepMarks(all, nil)
	return encoded(all, count)
}

// encoded returns messages as JSON, and their tokens.
func encoded(all []anthropicMessage, count Counter) (messages []json.RawMessage, n int) {
	for _, m := range all {
		messages = append(messages, Encode(m))
		n += tokens.PerMessage + blockTokens(m.Content, count)
	}
	return messages, n
}

func anthropicMessages(view []recall.Message) (all []anthropicMessage) {
	add := func(role string, blocks []anthropicBlock) {
		if len(blocks) == 0 {
			return
		}
		if len(all) == 0 && role == "assistant" {
			all = append(all, anthropicMessage{Role: "user", Content: []anthropicBlock{{Type: "text", Text: frame.GoesOn}}})
		}
		if n := len(all); n > 0 && all[n-1].Role == role {
			all[n-1].Content = append(all[n-1].Content, blocks...)
			return
		}
		all = append(all, anthropicMessage{Role: role, Content: blocks})
	}
	for _, s := range steps(view) {
		role := "user"
		if s.role == recall.Assistant {
			role = "assistant"
		}
		add(role, s.anthropicBlocks())
		add("user", s.anthropicResults())
	}
	trimLast(all)
	return all
}

// trimLast trims the end of a last answer that the model is to continue, because Anthropic refuses spaces there.
func trimLast(all []anthropicMessage) {
	if n := len(all); n > 0 && all[n-1].Role == "assistant" {
		last := &all[n-1].Content[len(all[n-1].Content)-1]
		last.Text = strings.TrimRight(last.Text, " \t\r\n")
	}
}

// anthropicBlocks returns what was said and called in a step. An answer must not end with a thought.
func (s step) anthropicBlocks() (blocks []anthropicBlock) {
	for _, p := range s.parts {
		if b, ok := s.anthropicBlock(p); ok {
			if b.item == nil && !isThought(b) {
				b.Cache = markOf(p)
			}
			blocks = append(blocks, b)
		}
	}
	for n := len(blocks); n > 0 && isThought(blocks[n-1]); n = len(blocks) {
		blocks = blocks[:n-1]
	}
	if s.role == recall.User && s.name != "" {
		if i := slices.IndexFunc(blocks, func(b anthropicBlock) bool { return b.Type == "text" }); i >= 0 {
			blocks[i].Text = s.name + ": " + blocks[i].Text
		}
	}
	return blocks
}

func isThought(b anthropicBlock) bool { return b.Type == "thinking" || b.Type == "redacted_thinking" }

func (s step) anthropicBlock(p recall.Part) (anthropicBlock, bool) {
	switch p.Type {
	case recall.Text:
		if s.role == recall.System { // Anthropic's messages have no such role
			return anthropicBlock{Type: "text", Text: "<system>\n" + p.Text + "\n</system>"}, true
		}
		b := anthropicBlock{Type: "text", Text: p.Text}
		if s.byClaude() {
			b.Citations = extraFields(p, recall.AnthropicAPI)["citations"]
		}
		return b, true
	case recall.Image:
		if s.role != recall.User {
			return anthropicBlock{Type: "text", Text: imageText}, true
		}
		return anthropicImage(p.Source), true
	case recall.Reasoning:
		return anthropicBlock{Type: "thinking", Thinking: &p.Text, Signature: p.Signature}, p.Signature != "" && s.byClaude()
	case recall.RedactedReasoning:
		return anthropicBlock{Type: "redacted_thinking", Data: p.Data}, p.Data != "" && s.byClaude()
	case recall.AnthropicBlock:
		return anthropicBlock{item: item(p)}, s.byClaude()
	case recall.ToolCall:
		b := anthropicBlock{Type: "tool_use", ID: p.CallID, Name: p.Name, Input: arguments(p.Input)}
		if s.byClaude() {
			b.Caller = extraFields(p, recall.AnthropicAPI)["caller"]
		}
		return b, true
	}
	return anthropicBlock{}, false
}

// byClaude reports whether Claude wrote the step. Anthropic refuses signatures of reasoning by other models.
func (s step) byClaude() bool {
	return s.role == recall.Assistant && (s.model == "" || IsClaude(s.model))
}

// arguments returns a call's arguments as an object. If the model wrote anything else, that becomes a field of an
// object.
func arguments(input string) json.RawMessage {
	if strings.TrimSpace(input) == "" {
		return json.RawMessage(`{}`)
	}
	input = recall.CleanEscapes(input) // older messages contain such escapes
	var compact bytes.Buffer
	if isObject(input) && json.Compact(&compact, []byte(input)) == nil {
		return compact.Bytes()
	}
	return Encode(map[string]string{"arguments": input})
}

// isObject reports whether a text is a JSON object.
func isObject(text string) bool {
	return strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{") && json.Valid([]byte(text))
}

// anthropicFormats are the formats of images that Anthropic reads.
var anthropicFormats = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}

func anthropicImage(raw json.RawMessage) anthropicBlock {
	s, ok := sourceOf(raw)
	if !ok || s.Type == "base64" && !slices.Contains(anthropicFormats, s.MediaType) {
		return anthropicBlock{Type: "text", Text: imageText}
	}
	s.Detail = ""
	return anthropicBlock{Type: "image", Source: &s}
}

func (s step) anthropicResults() (blocks []anthropicBlock) {
	for _, r := range s.results {
		b := anthropicBlock{Type: "tool_result", CallID: r.callID, IsError: r.isError,
			Cache: markOf(recall.Part{Extra: r.extra})}
		for _, p := range r.content {
			switch {
			case p.Type == recall.Image:
				b.Content = append(b.Content, anthropicImage(p.Source))
			case isShown(p):
				b.Content = append(b.Content, anthropicBlock{Type: "text", Text: p.Text})
			}
		}
		blocks = append(blocks, b)
	}
	return blocks
}

func blockTokens(blocks []anthropicBlock, count Counter) (n int) {
	for _, b := range blocks {
		n += count(b.Text) + count(b.Name) + count(string(b.Input)) + blockTokens(b.Content, count) +
			recall.Part{Data: b.Data, Item: string(b.item), Extra: string(b.Citations)}.SealedTokens()
		if b.Thinking != nil {
			n += count(*b.Thinking)
		}
		if b.Type == "image" {
			n += tokens.PerImage
		}
	}
	return n
}
