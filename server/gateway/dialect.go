package gateway

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/recall/chat"
)

// dialect is a form of requests to a provider, and of its answers.
type dialect struct {
	format   string // of package model
	list     string // the field with the messages
	partType string // of a part of a user's message with a text
	ends     [][]byte

	// addSystem adds a text to the system prompt.
	addSystem func(b *body, text string)
}

// The dialects, by the route.
var (
	chatDialect = &dialect{format: model.FormatOpenAI, list: "messages", partType: "text", addSystem: addChatSystem,
		ends: [][]byte{[]byte("data: [DONE]"), []byte("data:[DONE]")}}
	responsesDialect = &dialect{format: model.FormatResponses, list: "input", partType: "input_text",
		addSystem: addInstructions,
		ends: [][]byte{[]byte("event: response.completed"), []byte("event: response.incomplete"),
			[]byte("event: response.failed")}}
	anthropicDialect = &dialect{format: model.FormatAnthropic, list: "messages", partType: "text",
		addSystem: addAnthropicSystem, ends: [][]byte{[]byte("event: message_stop")}}
)

// end returns where the last event of a stream begins in a piece of it; -1 if it does not.
func (d *dialect) end(piece []byte) int {
	for _, mark := range d.ends {
		if i := bytes.Index(piece, mark); i >= 0 {
			return i
		}
	}
	return -1
}

func addChatSystem(b *body, text string) {
	if len(b.items) > 0 {
		var first struct {
			Role string `json:"role"`
		}
		_ = json.Unmarshal(b.of(b.items[0]), &first) // another form has no role
		if (first.Role == "system" || first.Role == "developer") && b.addToItem(0, "\n\n"+text, "text") {
			return
		}
	}
	b.addFirstItem(json.RawMessage(`{"role":"system","content":` + string(chat.Encode(text)) + `}`))
}

func addInstructions(b *body, text string) { b.addSystemField("instructions", text) }

func addAnthropicSystem(b *body, text string) { b.addSystemField("system", text) }

func (b *body) addSystemField(name, text string) {
	s, has := b.fields[name]
	switch {
	case !has:
		b.addField(name, chat.Encode(text))
	case !b.addToText(s, "\n\n"+text, "text"):
		b.replace(name, text)
	}
}

// systemOf returns the system prompts of a request: those in a field of their own, then those among its messages.
func (d *dialect) systemOf(b *body, among []string) string {
	var all []string
	for _, name := range []string{"instructions", "system"} {
		raw := b.field(name)
		var text string
		var parts []struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(raw, &text) == nil && text != "" {
			all = append(all, text)
		} else if json.Unmarshal(raw, &parts) == nil {
			for _, p := range parts {
				all = append(all, p.Text)
			}
		}
	}
	return strings.TrimSpace(strings.Join(append(all, among...), "\n\n"))
}

// userOf returns the user that a request names; empty if none.
func (d *dialect) userOf(b *body) string {
	if d.format != model.FormatAnthropic {
		return strings.TrimSpace(b.text("user"))
	}
	var metadata struct {
		User string `json:"user_id"`
	}
	_ = json.Unmarshal(b.field("metadata"), &metadata) // another form names nobody
	return accountOf(strings.TrimSpace(metadata.User))
}

// ofSession matches the user_id of programs that name a session in it, too.
var ofSession = regexp.MustCompile(`^(user_[0-9a-zA-Z]+_account_[0-9a-zA-Z-]*)_session_[0-9a-zA-Z-]+$`)

// accountOf returns the part of a user_id that stays the same in all sessions of a user.
func accountOf(user string) string {
	if parts := ofSession.FindStringSubmatch(user); parts != nil {
		return parts[1]
	}
	var object struct {
		Device  string `json:"device_id"`
		Account string `json:"account_uuid"`
	}
	if strings.HasPrefix(user, "{") && json.Unmarshal([]byte(user), &object) == nil {
		if object.Account != "" {
			return object.Account
		}
		return object.Device
	}
	return user
}

// handle returns the handle of a model that is asked in the dialect.
func (d *dialect) handle(name string) string {
	switch {
	case name == "" || strings.Contains(name, "/"):
		return name
	case d.format == model.FormatAnthropic:
		return "anthropic/" + name
	}
	return "openai/" + name
}
