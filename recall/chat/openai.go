package chat

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// openAIMessage is a message for OpenAI's chat completions. Content is a text or a list of openAIPart.
type openAIMessage struct {
	Role    string       `json:"role"`
	Name    string       `json:"name,omitempty"`
	CallID  string       `json:"tool_call_id,omitempty"`
	Content any          `json:"content,omitempty"`
	Calls   []openAICall `json:"tool_calls,omitempty"`

	Reasoning        string          `json:"reasoning,omitempty"`
	ReasoningContent string          `json:"reasoning_content,omitempty"`
	ReasoningDetails json.RawMessage `json:"reasoning_details,omitempty"`
}

type openAIPart struct {
	Type  string       `json:"type"`
	Text  string       `json:"text,omitempty"`
	Image *openAIImage `json:"image_url,omitempty"`

	Refusal string `json:"refusal,omitempty"`
}

type openAIImage struct {
	URL    string `json:"url"`
	Detail string `json:"detail,omitempty"`
}

// openAICall has either a Function or a Custom.
type openAICall struct {
	ID       string          `json:"id"`
	Type     string          `json:"type"`
	Function *openAIFunction `json:"function,omitempty"`
	Custom   *openAICustom   `json:"custom,omitempty"`
	Extra    *extraContent   `json:"extra_content,omitempty"`
}

type openAIFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type openAICustom struct {
	Name  string `json:"name"`
	Input string `json:"input"`
}

// called returns the called tool's name and its input.
func (c openAICall) called() (name, input string) {
	if c.Custom != nil {
		return c.Custom.Name, c.Custom.Input
	}
	return c.Function.Name, c.Function.Arguments
}

// OpenAI returns the messages of a view as OpenAI accepts them, without the system prompt, and their tokens.
func OpenAI(view []recall.Message, count Counter) (messages []json.RawMessage, tokens int) {
	for _, m := range openAI(view) {
		messages = append(messages, Encode(m))
		tokens += m.tokens(count)
	}
	return messages, tokens
}

// Texts returns the messages that OpenAI returns, without names of speakers and with "[image]" in place of each image.
func Texts(view []recall.Message) []Message {
	var all []Message
	for _, m := range openAI(view) {
		plain := Message{Role: m.Role, Content: m.text(), CallID: m.CallID}
		for _, c := range m.Calls {
			name, arguments := c.called()
			plain.Calls = append(plain.Calls, Call{ID: c.ID, Name: name, Arguments: arguments})
		}
		all = append(all, plain)
	}
	return all
}

func openAI(view []recall.Message) (all []openAIMessage) {
	for _, s := range steps(view) {
		if m := s.openAI(); m.Content != nil || len(m.Calls) > 0 {
			all = append(all, m)
		}
		for _, r := range s.results {
			all = append(all, openAIMessage{Role: "tool", CallID: r.callID, Content: r.text()})
		}
		if images := s.returnedImages(); len(images) > 0 {
			all = append(all, openAIMessage{Role: "user", Content: images})
		}
	}
	return all
}

// notInSpeakers matches characters that OpenAI refuses in a speaker's name.
var notInSpeakers = regexp.MustCompile(`[\s<|\\/>]+`)

// openAI returns what was said and called in a step. If a server returned reasoning beside the content, the reasoning
// goes back together with the calls that followed from it.
func (s step) openAI() openAIMessage {
	name := []rune(notInSpeakers.ReplaceAllString(s.name, "_"))
	m := openAIMessage{Role: string(s.role), Name: string(name[:min(len(name), maxNameChars)])}
	var parts []openAIPart
	images, refuses := false, false
	for _, p := range s.parts {
		switch {
		case p.Type == recall.Text && p.Kind == recall.Refusal:
			parts, refuses = append(parts, openAIPart{Type: "refusal", Refusal: p.Text}), true
		case p.Type == recall.Text:
			parts = append(parts, openAIPart{Type: "text", Text: p.Text})
		case p.Type == recall.Image:
			part := openAIImagePart(p.Source)
			parts, images = append(parts, part), images || part.Image != nil
		case p.Type == recall.Reasoning && len(s.results) > 0:
			m.think(p)
		}
	}
	switch {
	case images && s.role == recall.User, refuses && !images:
		m.Content = parts
	case len(parts) > 0:
		m.Content = joinTexts(parts)
	}
	for _, c := range s.calls() {
		call := openAICall{ID: c.CallID, Type: "function", Extra: extraOf(c.Signature)}
		if c.Kind == recall.CustomCall {
			call.Type, call.Custom = "custom", &openAICustom{Name: c.Name, Input: c.Input}
		} else {
			call.Function = &openAIFunction{Name: c.Name, Arguments: argumentsText(c.Input)}
		}
		m.Calls = append(m.Calls, call)
	}
	return m
}

// think adds a reasoning in the field that its server used for it.
func (m *openAIMessage) think(p recall.Part) {
	switch p.Kind {
	case recall.ReasoningContent:
		m.ReasoningContent += p.Text
	case recall.ReasoningField:
		m.Reasoning += p.Text
	}
	if details := extraFields(p, recall.ChatAPI)["reasoning_details"]; details != nil {
		m.ReasoningDetails = details
	}
}

// argumentsText returns a call's arguments as the model wrote them if they are an object; many servers refuse a request
// with anything else.
func argumentsText(input string) string {
	if isObject(input) {
		return recall.CleanEscapes(input)
	}
	return string(arguments(input))
}

func openAIImagePart(raw json.RawMessage) openAIPart {
	s, ok := sourceOf(raw)
	if !ok {
		return openAIPart{Type: "text", Text: imageText}
	}
	return openAIPart{Type: "image_url", Image: &openAIImage{URL: s.address(), Detail: s.Detail}}
}

// joinTexts joins texts by line ends. An image becomes "[image]".
func joinTexts(parts []openAIPart) string {
	texts := make([]string, len(parts))
	for i, part := range parts {
		if texts[i] = part.Text + part.Refusal; part.Image != nil {
			texts[i] = imageText
		}
	}
	return strings.Join(texts, "\n")
}

// text joins a result's texts by line ends. An image becomes "[image]".
func (r result) text() string {
	content := r.marked()
	texts := make([]string, len(content))
	for i, p := range content {
		if texts[i] = p.Text; p.Type == recall.Image {
			texts[i] = imageText
		}
	}
	return strings.Join(texts, "\n")
}

// returnedImages returns the images that tools returned, as content of a user's message: OpenAI accepts no images in a
// result. It returns none while results are missing, because no message may stand between results.
func (s step) returnedImages() (parts []openAIPart) {
	if len(s.results) < len(s.calls()) {
		return nil
	}
	for _, r := range s.results {
		first := true
		for _, p := range r.content {
			if p.Type != recall.Image {
				continue
			}
			if first {
				text := "Images that " + r.tool + " returned (call " + r.callID + "):"
				parts = append(parts, openAIPart{Type: "text", Text: text})
			}
			parts, first = append(parts, openAIImagePart(p.Source)), false
		}
	}
	return parts
}

func (m openAIMessage) text() string {
	switch content := m.Content.(type) {
	case string:
		return content
	case []openAIPart:
		return joinTexts(content)
	}
	return ""
}

func (m openAIMessage) tokens(count Counter) int {
	n := tokens.PerMessage + count(m.Name) + count(m.Reasoning) + count(m.ReasoningContent) +
		recall.Part{Extra: string(m.ReasoningDetails)}.SealedTokens()
	switch content := m.Content.(type) {
	case string:
		n += count(content)
	case []openAIPart:
		for _, p := range content {
			if n += count(p.Text) + count(p.Refusal); p.Image != nil {
				n += tokens.PerImage
			}
		}
	}
	for _, c := range m.Calls {
		name, input := c.called()
		n += count(name) + count(input)
		if c.Extra != nil {
			n += recall.Part{Data: c.Extra.Google.Signature}.SealedTokens()
		}
	}
	return n
}
