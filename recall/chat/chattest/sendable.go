// Package chattest checks messages in requests against the rules of the providers.
package chattest

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// request is what was read of a request so far.
type request struct {
	seen    map[string]bool // ids of all calls
	waiting []string        // ids of calls that still need their results
}

// ids matches call ids that both providers accept.
var ids = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,40}$`)

func (r *request) call(id string) error {
	if r.seen[id] || !ids.MatchString(id) {
		return fmt.Errorf("the call %q has the id of another one, or one that is not allowed", id)
	}
	r.seen[id], r.waiting = true, append(r.waiting, id)
	return nil
}

func (r *request) result(id string) error {
	i := slices.Index(r.waiting, id)
	if i < 0 {
		return fmt.Errorf("the result of %q does not follow its call; waiting are %q", id, r.waiting)
	}
	r.waiting = slices.Delete(r.waiting, i, i+1)
	return nil
}

// openAIMessage has the message fields that OpenAI checks.
type openAIMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	CallID  string          `json:"tool_call_id"`
	Calls   []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string  `json:"name"`
			Arguments *string `json:"arguments"`
		} `json:"function"`
		Custom *struct {
			Name  string  `json:"name"`
			Input *string `json:"input"`
		} `json:"custom"`
	} `json:"tool_calls"`
}

// OpenAI returns an error unless OpenAI's chat completions accept the messages: each call has exactly one result,
// directly behind the message with the call, and no message is empty.
func OpenAI(messages []json.RawMessage) error {
	r := request{seen: map[string]bool{}}
	for i, raw := range messages {
		var m openAIMessage
		err := json.Unmarshal(raw, &m)
		if err == nil {
			err = r.openAI(m)
		}
		if err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
	}
	return r.end()
}

func (r *request) openAI(m openAIMessage) error {
	if m.Role == "tool" {
		return r.result(m.CallID)
	}
	if len(r.waiting) > 0 {
		return fmt.Errorf("a message of role %s stands before the results of %q", m.Role, r.waiting)
	}
	if !slices.Contains([]string{"system", "user", "assistant"}, m.Role) {
		return fmt.Errorf("the role is %q", m.Role)
	}
	if len(m.Calls) == 0 && slices.Contains([]string{"", `""`, "[]", "null"}, string(m.Content)) {
		return errors.New("it is empty")
	}
	if len(m.Calls) > 0 && m.Role != "assistant" {
		return errors.New("it calls tools, and is not the assistant's")
	}
	for _, c := range m.Calls {
		name := c.Function.Name
		switch {
		case c.Type == "custom" && c.Custom != nil && c.Custom.Input != nil:
			name = c.Custom.Name
		case c.Type != "function" || c.Function.Arguments == nil:
			return fmt.Errorf("the call %q is not one of a function with arguments, nor a custom one with an input", c.ID)
		}
		if err := errors.Join(r.call(c.ID), toolName(name)); err != nil {
			return err
		}
	}
	return nil
}

// end returns an error if a call still has no result.
func (r *request) end() error {
	if len(r.waiting) > 0 {
		return fmt.Errorf("at the end the calls %q have no result", r.waiting)
	}
	return nil
}

var toolNames = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func toolName(name string) error {
	if !toolNames.MatchString(name) {
		return fmt.Errorf("no tool can have the name %q", name)
	}
	return nil
}

// anthropicMessage has the message fields that Anthropic checks.
type anthropicMessage struct {
	Role    string           `json:"role"`
	Content []anthropicBlock `json:"content"`
}

type anthropicBlock struct {
	Type   string          `json:"type"`
	Text   string          `json:"text"`
	ID     string          `json:"id"`
	Name   string          `json:"name"`
	Input  json.RawMessage `json:"input"`
	CallID string          `json:"tool_use_id"`
}

// Anthropic returns an error unless Anthropic's messages API accepts the messages: the user begins, roles alternate,
// each message with calls is followed by one that begins with all their results, no text is blank, and no message ends
// with a thought.
func Anthropic(messages []json.RawMessage) error {
	r := request{seen: map[string]bool{}}
	for i, raw := range messages {
		var m anthropicMessage
		err := json.Unmarshal(raw, &m)
		if want := []string{"user", "assistant"}[i%2]; err == nil && m.Role != want {
			err = fmt.Errorf("the role is %q, not %q", m.Role, want)
		}
		if err == nil {
			err = r.anthropic(m, i == len(messages)-1)
		}
		if err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
	}
	return r.end()
}

func (r *request) anthropic(m anthropicMessage, last bool) error {
	if len(m.Content) == 0 {
		return errors.New("it is empty")
	}
	wanted := len(r.waiting)
	for i, b := range m.Content {
		var err error
		switch b.Type {
		case "text":
			if strings.TrimSpace(b.Text) == "" || last && m.Role == "assistant" && i == len(m.Content)-1 &&
				strings.TrimRight(b.Text, " \t\r\n") != b.Text {
				err = fmt.Errorf("the text %q is blank, or the last one and ends with a space", b.Text)
			}
		case "tool_use":
			if b.Input == nil || b.Input[0] != '{' || m.Role != "assistant" {
				err = fmt.Errorf("the call %q has no object as input, or is not the assistant's", b.ID)
			}
			err = errors.Join(err, r.call(b.ID), toolName(b.Name))
		case "tool_result":
			if err = r.result(b.CallID); i >= wanted {
				err = errors.Join(err, fmt.Errorf("the result of %q stands behind something else", b.CallID))
			}
		}
		if err != nil {
			return err
		}
		if i < wanted && b.Type != "tool_result" {
			return fmt.Errorf("a block of type %s stands before the results of %q", b.Type, r.waiting)
		}
	}
	if m.Role == "user" {
		return r.end()
	}
	if last := m.Content[len(m.Content)-1].Type; last == "thinking" || last == "redacted_thinking" {
		return errors.New("it ends with a thought")
	}
	return nil
}

// responsesItem has the item fields that OpenAI's Responses API checks.
type responsesItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments *string         `json:"arguments"`
	Input     *string         `json:"input"`
	Output    json.RawMessage `json:"output"`
	Encrypted *string         `json:"encrypted_content"`
}

// Responses returns an error unless OpenAI's Responses API accepts the items: each call has a result after it, and
// nothing is empty.
func Responses(items []json.RawMessage) error {
	r := request{seen: map[string]bool{}}
	for i, raw := range items {
		var m responsesItem
		err := json.Unmarshal(raw, &m)
		if err == nil {
			err = r.responses(m)
		}
		if err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
	}
	return r.end()
}

func (r *request) responses(m responsesItem) error {
	switch m.Type {
	case "function_call":
		if m.Arguments == nil {
			return fmt.Errorf("the call %q has no arguments", m.CallID)
		}
		return errors.Join(r.call(m.CallID), toolName(m.Name))
	case "custom_tool_call":
		if m.Input == nil {
			return fmt.Errorf("the custom call %q has no input", m.CallID)
		}
		return errors.Join(r.call(m.CallID), toolName(m.Name))
	case "function_call_output", "custom_tool_call_output":
		if slices.Contains([]string{"", `""`, "[]", "null"}, string(m.Output)) {
			return fmt.Errorf("the result of %q is empty", m.CallID)
		}
		return r.result(m.CallID)
	case "message":
		return r.responsesMessage(m)
	case "reasoning":
		if m.Encrypted == nil {
			return errors.New("a reasoning that is not encrypted cannot be read again")
		}
	}
	return nil
}

func (r *request) responsesMessage(m responsesItem) error {
	var parts []struct{ Type, Text, Refusal string }
	if err := json.Unmarshal(m.Content, &parts); err != nil || len(parts) == 0 {
		return fmt.Errorf("a message of role %s is empty: %w", m.Role, err)
	}
	want := []string{"input_text", "input_image"}
	if m.Role == "assistant" {
		want = []string{"output_text", "refusal"}
	} else if len(r.waiting) > 0 {
		return fmt.Errorf("a message of role %s stands before the results of %q", m.Role, r.waiting)
	}
	for _, p := range parts {
		if !slices.Contains(want, p.Type) || strings.HasSuffix(p.Type, "text") && strings.TrimSpace(p.Text) == "" ||
			p.Type == "refusal" && strings.TrimSpace(p.Refusal) == "" {
			return fmt.Errorf("a message of role %s has a part of type %s with the text %q", m.Role, p.Type, p.Text)
		}
	}
	return nil
}
