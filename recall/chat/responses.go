package chat

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// responsesItem is an item for OpenAI's Responses API. Its type says which fields it has.
type responsesItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id,omitempty"`
	Role      string          `json:"role,omitempty"`
	Phase     json.RawMessage `json:"phase,omitempty"`
	Content   []responsesPart `json:"content,omitempty"`
	CallID    string          `json:"call_id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Namespace json.RawMessage `json:"namespace,omitempty"`
	Arguments string          `json:"arguments,omitempty"`
	Input     *string         `json:"input,omitempty"`
	Output    any             `json:"output,omitempty"` // a text or a list of responsesPart
	Summary   *[]summaryPart  `json:"summary,omitempty"`
	Encrypted string          `json:"encrypted_content,omitempty"`
}

type responsesPart struct {
	Type   string `json:"type"`
	Text   string `json:"text,omitempty"`
	Image  string `json:"image_url,omitempty"`
	Detail string `json:"detail,omitempty"`

	Refusal     string          `json:"refusal,omitempty"`
	Annotations json.RawMessage `json:"annotations,omitempty"`
}

type summaryPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// responsesList is the list of items written so far, and its tokens.
type responsesList struct {
	items []json.RawMessage
	count Counter
	n     int
}

// Responses returns the messages of a view as items that OpenAI's Responses API accepts, without the system prompt, and
// their tokens.
func Responses(view []recall.Message, count Counter) (items []json.RawMessage, n int) {
	l := responsesList{count: count}
	for _, s := range steps(view) {
		if s.role == recall.Assistant {
			l.addAnswer(s)
		} else {
			l.addMessage(s)
		}
		for _, r := range s.results {
			l.addResult(r)
		}
	}
	return l.items, l.n
}

func (l *responsesList) add(i responsesItem) {
	l.items = append(l.items, Encode(i))
	l.n += tokens.PerMessage + l.count(i.Name) + l.count(i.Arguments)
	if i.Input != nil {
		l.n += l.count(*i.Input)
	}
	parts, _ := i.Output.([]responsesPart)
	for _, p := range append(parts, i.Content...) {
		l.n += recall.Part{Extra: string(p.Annotations)}.SealedTokens()
		if l.n += l.count(p.Text) + l.count(p.Refusal); p.Image != "" {
			l.n += tokens.PerImage
		}
	}
	if text, ok := i.Output.(string); ok {
		l.n += l.count(text)
	}
}

// addSealed adds an item that only OpenAI can read.
func (l *responsesList) addSealed(raw json.RawMessage) {
	l.items = append(l.items, raw)
	l.n += tokens.PerMessage + recall.Part{Item: string(raw)}.SealedTokens()
}

// addMessage adds a message of the user or the system.
func (l *responsesList) addMessage(s step) {
	m := responsesItem{Type: "message", Role: string(s.role)}
	for _, p := range s.parts {
		switch p.Type {
		case recall.Text:
			m.Content = append(m.Content, responsesPart{Type: "input_text", Text: p.Text})
		case recall.Image:
			m.Content = append(m.Content, responsesImage(p.Source))
		}
	}
	for i := range m.Content {
		if m.Content[i].Type == "input_text" && s.name != "" && s.role == recall.User {
			m.Content[i].Text = s.name + ": " + m.Content[i].Text
			break
		}
	}
	if len(m.Content) > 0 {
		l.add(m)
	}
}

// addAnswer adds what a model said, thought and called, in this order.
func (l *responsesList) addAnswer(s step) {
	var content []responsesPart
	var phase json.RawMessage
	flush := func() {
		if len(content) > 0 {
			l.add(responsesItem{Type: "message", Role: "assistant", Phase: phase, Content: content})
			content = nil
		}
	}
	for _, p := range s.parts {
		switch extra := extraFields(p, recall.ResponsesAPI); {
		case p.Type == recall.Text:
			if !bytes.Equal(extra["phase"], phase) {
				flush()
				phase = extra["phase"]
			}
			content = append(content, responsesText(p, extra["annotations"]))
		case p.Type == recall.Image:
			content = append(content, responsesPart{Type: "output_text", Text: imageText})
		case p.Type == recall.ToolCall:
			flush()
			l.addCall(p, extra["namespace"])
		case s.byResponses(p):
			flush()
			l.addSealed(responsesSealed(p))
		}
	}
	flush()
}

func responsesText(p recall.Part, annotations json.RawMessage) responsesPart {
	if p.Kind == recall.Refusal {
		return responsesPart{Type: "refusal", Refusal: p.Text}
	}
	return responsesPart{Type: "output_text", Text: p.Text, Annotations: annotations}
}

func (l *responsesList) addCall(p recall.Part, namespace json.RawMessage) {
	i := responsesItem{Type: "function_call", CallID: p.CallID, Name: p.Name, Namespace: namespace}
	if p.Kind == recall.CustomCall {
		i.Type, i.Input = "custom_tool_call", &p.Input
	} else {
		i.Arguments = argumentsText(p.Input)
	}
	l.add(i)
}

// byResponses reports whether OpenAI accepts back a part that only a provider can read. It refuses parts of other
// providers, and a reasoning that it neither stored nor encrypted.
func (s step) byResponses(p recall.Part) bool {
	if IsClaude(s.model) {
		return false
	}
	var reasoning struct {
		Encrypted string            `json:"encrypted_content"`
		Content   []json.RawMessage `json:"content"`
	}
	switch p.Type {
	case recall.ResponsesItem:
		return true
	case recall.SummarizedReasoning:
		_ = json.Unmarshal([]byte(p.Item), &reasoning) // other fields do not matter
		return p.Item == "" && p.Data != "" || reasoning.Encrypted != "" || len(reasoning.Content) > 0
	}
	return false
}

// responsesSealed returns the item in a part that only OpenAI can read.
func responsesSealed(p recall.Part) json.RawMessage {
	if p.Item != "" {
		return item(p)
	}
	texts, summary := []string{}, []summaryPart{}
	if p.Text != "" {
		texts = strings.Split(p.Text, "\n")
	}
	for _, text := range texts {
		summary = append(summary, summaryPart{"summary_text", text})
	}
	return Encode(responsesItem{Type: "reasoning", ID: p.CallID, Summary: &summary, Encrypted: p.Data})
}

func responsesImage(raw json.RawMessage) responsesPart {
	s, ok := sourceOf(raw)
	if !ok {
		return responsesPart{Type: "input_text", Text: imageText}
	}
	return responsesPart{Type: "input_image", Image: s.address(), Detail: s.Detail}
}

// addResult adds a tool's output: a text, or a list of parts if there are images.
func (l *responsesList) addResult(r result) {
	var parts []responsesPart
	images := false
	for _, p := range r.marked() {
		switch {
		case p.Type == recall.Image:
			parts, images = append(parts, responsesImage(p.Source)), true
		case isShown(p):
			parts = append(parts, responsesPart{Type: "input_text", Text: p.Text})
		}
	}
	var output any = parts
	if !images {
		output = r.text()
	}
	kind := "function_call_output"
	if r.custom {
		kind = "custom_tool_call_output"
	}
	l.add(responsesItem{Type: kind, CallID: r.callID, Output: output})
}
