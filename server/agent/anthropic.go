package agent

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/loci-memory/loci/recall"
)

// claudeMessage is a message of Anthropic's messages API.
type claudeMessage struct {
	Role    string        `json:"role"`
	Content []claudeBlock `json:"content"`
}

// claudeBlock is a part of a message: which fields it has is a matter of its type.
type claudeBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	Source    *source         `json:"source,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature string          `json:"signature,omitempty"`
	Data      string          `json:"data,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	CallID    string          `json:"tool_use_id,omitempty"`
	Content   []claudeBlock   `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
}

// goesOn is what a conversation begins with whose first message is the agent's: Anthropic wants the user's first.
const goesOn = "(The conversation goes on from here.)"

// claude are turns as Anthropic takes them, and what they take of a window: the first is the user's, roles alternate, and results stand
// directly after their calls, as the user's.
func claude(turns []turn, count func(string) int) (messages []json.RawMessage, tokens int) {
	var all []claudeMessage
	add := func(role string, blocks []claudeBlock) {
		if len(blocks) == 0 {
			return
		}
		if len(all) == 0 && role == "assistant" {
			all = append(all, claudeMessage{Role: "user", Content: []claudeBlock{{Type: "text", Text: goesOn}}})
		}
		if n := len(all); n > 0 && all[n-1].Role == role {
			all[n-1].Content = append(all[n-1].Content, blocks...)
			return
		}
		all = append(all, claudeMessage{Role: role, Content: blocks})
	}
	for _, t := range turns {
		role := "user"
		if t.role == recall.Assistant {
			role = "assistant"
		}
		add(role, t.claudeBlocks())
		add("user", t.claudeResults())
	}
	trimLast(all)
	for _, m := range all {
		messages = append(messages, encoded(m))
		tokens += messageTokens + blockTokens(m.Content, count)
	}
	return messages, tokens
}

// trimLast takes the spaces from the end of an answer that is still being written, which Anthropic refuses.
func trimLast(all []claudeMessage) {
	if n := len(all); n > 0 && all[n-1].Role == "assistant" {
		last := &all[n-1].Content[len(all[n-1].Content)-1]
		last.Text = strings.TrimRight(last.Text, " \t\r\n")
	}
}

// claudeBlocks are what was said in a turn and called. Calls stand last: their results follow.
func (t turn) claudeBlocks() (blocks []claudeBlock) {
	for _, p := range t.said {
		if b, ok := t.claudeBlock(p); ok {
			blocks = append(blocks, b)
		}
	}
	if t.role == recall.User && t.name != "" {
		if i := slices.IndexFunc(blocks, func(b claudeBlock) bool { return b.Type == "text" }); i >= 0 {
			blocks[i].Text = t.name + ": " + blocks[i].Text
		}
	}
	for _, c := range t.calls {
		blocks = append(blocks, claudeBlock{Type: "tool_use", ID: c.CallID, Name: c.Name, Input: arguments(c.Input)})
	}
	return blocks
}

func (t turn) claudeBlock(p recall.Part) (claudeBlock, bool) {
	switch p.Type {
	case recall.Text:
		if t.role == recall.System { // there is no such role among messages
			return claudeBlock{Type: "text", Text: "<system>\n" + p.Text + "\n</system>"}, true
		}
		return claudeBlock{Type: "text", Text: p.Text}, true
	case recall.Image:
		if t.role != recall.User {
			return claudeBlock{Type: "text", Text: imageText}, true
		}
		return claudeImage(p.Source), true
	case recall.Reasoning:
		return claudeBlock{Type: "thinking", Thinking: &p.Text, Signature: p.Signature}, p.Signature != "" && t.byClaude()
	case recall.RedactedReasoning:
		return claudeBlock{Type: "redacted_thinking", Data: p.Data}, p.Data != "" && t.byClaude()
	}
	return claudeBlock{}, false
}

// byClaude tells whether Anthropic can check the signatures of a turn's reasoning: it refuses those of others.
func (t turn) byClaude() bool {
	return t.role == recall.Assistant && (t.model == "" || isClaude(t.model))
}

// isClaude tells a model of Anthropic's by its handle or name.
func isClaude(model string) bool {
	model = strings.ToLower(model)
	return strings.Contains(model, "claude") || strings.HasPrefix(model, "anthropic/")
}

// claudeFormats are the formats of images that Anthropic reads.
var claudeFormats = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}

func claudeImage(raw json.RawMessage) claudeBlock {
	s, ok := sourceOf(raw)
	if !ok || s.Type == "base64" && !slices.Contains(claudeFormats, s.MediaType) {
		return claudeBlock{Type: "text", Text: imageText}
	}
	s.Detail = ""
	return claudeBlock{Type: "image", Source: &s}
}

func (t turn) claudeResults() (blocks []claudeBlock) {
	for _, r := range t.results {
		b := claudeBlock{Type: "tool_result", CallID: r.callID, IsError: r.isError}
		if strings.TrimSpace(r.text) != "" {
			b.Content = append(b.Content, claudeBlock{Type: "text", Text: r.text})
		}
		for _, raw := range r.images {
			b.Content = append(b.Content, claudeImage(raw))
		}
		blocks = append(blocks, b)
	}
	return blocks
}

func blockTokens(blocks []claudeBlock, count func(string) int) (n int) {
	for _, b := range blocks {
		n += count(b.Text) + count(b.Name) + count(string(b.Input)) + blockTokens(b.Content, count)
		if b.Thinking != nil {
			n += count(*b.Thinking)
		}
		if b.Type == "image" {
			n += imageTokens
		}
	}
	return n
}
