package transcript

import (
	"encoding/json"
	"strings"

	"github.com/loci-memory/loci/recall"
)

// isSDKEvent reports whether an entry is an event of OpenHands' agent SDK. Its kind names its type.
func isSDKEvent(e object) bool {
	switch e.text("kind") {
	case "MessageEvent":
		return e.isObject("llm_message")
	case "SystemPromptEvent":
		return e.isObject("system_prompt")
	case "ActionEvent", "ObservationEvent", "AgentErrorEvent", "UserRejectObservation":
		return e.has("tool_call_id")
	}
	return false
}

func (r *events) sdkEvent(e object) error {
	switch e.text("kind") {
	case "SystemPromptEvent":
		r.t.addSystem(e.textIn("system_prompt"))
		r.t.addSystem(e.textIn("dynamic_context"))
		return nil
	case "MessageEvent":
		return r.sdkMessage(e)
	case "ActionEvent":
		return r.sdkAction(e)
	}
	r.sdkResult(e)
	return nil
}

func (r *events) sdkMessage(e object) error {
	m, err := r.object(e.fields["llm_message"])
	if err != nil {
		return err
	}
	if m.text("role") == "" {
		role := "user"
		if e.text("source") == "agent" {
			role = "assistant"
		}
		m = m.with(map[string]any{"role": role})
	}
	parts := append(m.textParts("content"), e.textParts("extended_content")...)
	draft := recall.Draft{Role: recall.User, Content: parts}
	switch m.text("role") {
	case "assistant":
		draft.Role = recall.Assistant
		if thought := m.text("reasoning_content"); thought != "" {
			draft.Content = append([]recall.Part{{Type: recall.Reasoning, Text: thought}}, parts...)
		}
		if id := e.text("llm_response_id"); id != "" {
			draft.StepID = &id
		}
	case "system":
		draft.Role = recall.System
	}
	if len(draft.Content) == 0 {
		r.t.leaveOut("messages without a text")
		return nil
	}
	r.t.add(e.own(), []recall.Draft{draft})
	return nil
}

// sdkAction reads a call. Calls of the same answer have the same llm_response_id.
func (r *events) sdkAction(e object) error {
	draft := recall.Draft{Role: recall.Assistant}
	if thought := e.text("reasoning_content"); thought != "" {
		draft.Content = append(draft.Content, recall.Part{Type: recall.Reasoning, Text: thought})
	}
	draft.Content = append(draft.Content, e.textParts("thought")...)
	if id := e.text("llm_response_id"); id != "" {
		draft.StepID = &id
	}
	p := recall.Part{Type: recall.ToolCall, CallID: e.text("tool_call_id"), Name: e.text("tool_name")}
	if e.isObject("tool_call") {
		call, err := r.object(e.fields["tool_call"])
		if err != nil {
			return err
		}
		if call.isObject("function") {
			if call, err = r.object(call.fields["function"]); err != nil {
				return err
			}
		}
		p.Input = call.text("arguments")
	}
	if p.Input == "" && e.isObject("action") {
		action, err := r.object(e.fields["action"])
		if err != nil {
			return err
		}
		p.Input = action.without("kind").json()
	}
	if p.CallID == "" || p.Name == "" {
		return r.fail(e.at, "an ActionEvent has a tool_call_id and a tool_name")
	}
	draft.Content = append(draft.Content, p)
	r.t.add(e.own(), []recall.Draft{draft})
	return nil
}

func (r *events) sdkResult(e object) {
	p := recall.Part{Type: recall.ToolReturn, CallID: e.text("tool_call_id")}
	switch e.text("kind") {
	case "AgentErrorEvent":
		p.Text, p.IsError = e.text("error"), true
	case "UserRejectObservation":
		p.Text, p.IsError = "Action rejected: "+e.text("rejection_reason"), true
	default:
		var status struct {
			IsError  bool `json:"is_error"`
			ExitCode int  `json:"exit_code"`
		}
		_ = json.Unmarshal(e.fields["observation"].raw, &status) // most observations have no status
		p.IsError = status.IsError || status.ExitCode > 0
		p.Text = r.observed(e)
	}
	r.t.add(e.own(), []recall.Draft{{Role: recall.Tool, Content: []recall.Part{p}}})
}

// observed returns the text of an observation: its content, or its output, or all of it as JSON.
func (r *events) observed(e object) string {
	o, err := r.object(e.fields["observation"])
	if err != nil {
		return e.text("observation")
	}
	var texts []string
	for _, p := range append(o.textParts("content"), e.textParts("extended_content")...) {
		texts = append(texts, p.Text)
	}
	if text := strings.Join(texts, "\n"); text != "" || o.isList("content") {
		return text
	}
	for _, name := range []string{"content", "output"} {
		if o.has(name) {
			return o.text(name)
		}
	}
	return o.without("kind").json()
}

// textIn returns the text of a field with an object of type text.
func (o object) textIn(name string) string {
	var in struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(o.fields[name].raw, &in) // an absent field has no text
	return in.Text
}

// textParts returns the texts in a field with a list of texts and images, or with a text.
func (o object) textParts(name string) (parts []recall.Part) {
	var list []struct {
		Type string   `json:"type"`
		Text string   `json:"text"`
		URLs []string `json:"image_urls"`
	}
	if text := o.text(name); text != "" {
		return []recall.Part{{Type: recall.Text, Text: text}}
	}
	if json.Unmarshal(o.fields[name].raw, &list) != nil {
		return nil
	}
	for _, p := range list {
		switch {
		case p.Text != "":
			parts = append(parts, recall.Part{Type: recall.Text, Text: p.Text})
		case p.Type == "image":
			parts = append(parts, recall.Part{Type: recall.Text, Text: strings.Repeat("[image]", max(len(p.URLs), 1))})
		}
	}
	return parts
}
