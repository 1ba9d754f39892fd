package agent

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/loci-memory/loci/recall"
)

// chatMessage is a message of OpenAI's chat completions. Content is a text, or a list of chatPart.
type chatMessage struct {
	Role    string     `json:"role"`
	Name    string     `json:"name,omitempty"`
	CallID  string     `json:"tool_call_id,omitempty"`
	Content any        `json:"content,omitempty"`
	Calls   []chatCall `json:"tool_calls,omitempty"`
}

type chatPart struct {
	Type  string     `json:"type"`
	Text  string     `json:"text,omitempty"`
	Image *chatImage `json:"image_url,omitempty"`
}

type chatImage struct {
	URL    string `json:"url"`
	Detail string `json:"detail,omitempty"`
}

type chatCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// chat are turns as OpenAI takes them, and what they take of a window.
func chat(turns []turn, count func(string) int) (messages []json.RawMessage, tokens int) {
	add := func(m chatMessage) {
		messages = append(messages, encoded(m))
		tokens += m.tokens(count)
	}
	for _, t := range turns {
		if m := t.chatMessage(); m.Content != nil || len(m.Calls) > 0 {
			add(m)
		}
		for _, r := range t.results {
			add(chatMessage{Role: "tool", CallID: r.callID, Content: strings.TrimSpace(r.text + strings.Repeat("\n"+imageText, len(r.images)))})
		}
		if images := t.returnedImages(); len(images) > 0 {
			add(chatMessage{Role: "user", Content: images})
		}
	}
	return messages, tokens
}

// notInSpeakers is what OpenAI does not take in the name of who speaks.
var notInSpeakers = regexp.MustCompile(`[\s<|\\/>]+`)

func (t turn) chatMessage() chatMessage {
	m := chatMessage{Role: string(t.role), Name: clipped(notInSpeakers.ReplaceAllString(t.name, "_"), maxNameChars)}
	var parts []chatPart
	var texts []string
	images := false
	for _, p := range t.said {
		switch p.Type {
		case recall.Text:
			parts, texts = append(parts, chatPart{Type: "text", Text: p.Text}), append(texts, p.Text)
		case recall.Image:
			part, ok := imagePart(p.Source)
			parts, texts, images = append(parts, part), append(texts, imageText), images || ok
		} // reasoning has no place in this format
	}
	switch {
	case images && t.role == recall.User:
		m.Content = parts
	case len(texts) > 0:
		m.Content = strings.Join(texts, "\n")
	}
	for _, c := range t.calls {
		call := chatCall{ID: c.CallID, Type: "function", Function: chatFunction{Name: c.Name, Arguments: c.Input}}
		if strings.TrimSpace(c.Input) == "" {
			call.Function.Arguments = "{}"
		}
		m.Calls = append(m.Calls, call)
	}
	return m
}

func imagePart(raw json.RawMessage) (chatPart, bool) {
	s, ok := sourceOf(raw)
	if !ok {
		return chatPart{Type: "text", Text: imageText}, false
	}
	url := s.URL
	if s.Type == "base64" {
		url = "data:" + s.MediaType + ";base64," + s.Data
	}
	return chatPart{Type: "image_url", Image: &chatImage{URL: url, Detail: s.Detail}}, true
}

// returnedImages are those that tools returned, as the user shows them: OpenAI takes none in a result. While results are missing nothing may
// stand between them.
func (t turn) returnedImages() (parts []chatPart) {
	if len(t.results) < len(t.calls) {
		return nil
	}
	for _, r := range t.results {
		for i, raw := range r.images {
			if i == 0 {
				parts = append(parts, chatPart{Type: "text", Text: "Images that " + r.tool + " returned (call " + r.callID + "):"})
			}
			part, _ := imagePart(raw)
			parts = append(parts, part)
		}
	}
	return parts
}

// What a message takes of a window beside its texts, and what an image does.
const (
	messageTokens = 4
	imageTokens   = 1000
)

func (m chatMessage) tokens(count func(string) int) int {
	n := messageTokens + count(m.Name)
	switch content := m.Content.(type) {
	case string:
		n += count(content)
	case []chatPart:
		for _, p := range content {
			if n += count(p.Text); p.Image != nil {
				n += imageTokens
			}
		}
	}
	for _, c := range m.Calls {
		n += count(c.Function.Name) + count(c.Function.Arguments)
	}
	return n
}

// clipped is the first n characters of a text.
func clipped(text string, n int) string {
	for i := range text {
		if n--; n < 0 {
			return text[:i]
		}
	}
	return text
}
