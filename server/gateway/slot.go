package gateway

import (
	"encoding/json"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

// slot is the place in a request of a text, of the arguments of a call, or of a result.
type slot struct {
	kind  recall.PartType // Text, ToolCall or ToolReturn
	id    string          // of the call
	value span
}

// slotsOf returns the slots of the message with an index, in their order.
func (b *body) slotsOf(index int) (all []slot) {
	item := b.items[index]
	fields := b.fieldsOf(item)
	texts := func(name string) string {
		s, has := fields[name]
		var text string
		if has {
			_ = json.Unmarshal(b.of(s), &text) // anything else is no text
		}
		return text
	}
	add := func(kind recall.PartType, id, field string) {
		if s, has := fields[field]; has {
			all = append(all, slot{kind, id, s})
		}
	}
	switch texts("type") {
	case "function_call":
		add(recall.ToolCall, texts("call_id"), "arguments")
		return all
	case "custom_tool_call":
		add(recall.ToolCall, texts("call_id"), "input")
		return all
	case "function_call_output", "custom_tool_call_output":
		add(recall.ToolReturn, texts("call_id"), "output")
		return all
	}
	if texts("role") == "tool" {
		add(recall.ToolReturn, texts("tool_call_id"), "content")
		return all
	}
	if content, has := fields["content"]; has {
		all = append(all, b.contentSlots(content)...)
	}
	if calls, has := fields["tool_calls"]; has {
		for _, call := range itemsOf(b.of(calls), calls.from) {
			all = append(all, b.callSlot(call)...)
		}
	}
	return all
}

// contentSlots returns the slots of a message's content.
func (b *body) contentSlots(content span) (all []slot) {
	raw := b.of(content)
	if len(raw) > 0 && raw[0] == '"' {
		return []slot{{recall.Text, "", content}}
	}
	for _, part := range itemsOf(raw, content.from) {
		var p struct {
			Type  string `json:"type"`
			ID    string `json:"id"`
			UseID string `json:"tool_use_id"`
		}
		_ = json.Unmarshal(b.of(part), &p) // another form has no slot
		kind, id, field := recall.Text, "", "text"
		switch p.Type {
		case "text", "input_text", "output_text":
		case "tool_use":
			kind, id, field = recall.ToolCall, p.ID, "input"
		case "tool_result":
			kind, id, field = recall.ToolReturn, p.UseID, "content"
		default:
			continue
		}
		if s, has := b.fieldsOf(part)[field]; has {
			all = append(all, slot{kind, id, s})
		}
	}
	return all
}

// callSlot returns the slot of a call in a chat request.
func (b *body) callSlot(call span) []slot {
	var c struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(b.of(call), &c) // another form has no id
	fields := b.fieldsOf(call)
	for of, field := range map[string]string{"function": "arguments", "custom": "input"} {
		if s, has := fields[of]; has {
			if s, has := b.fieldsOf(s)[field]; has {
				return []slot{{recall.ToolCall, c.ID, s}}
			}
		}
	}
	return nil
}

// fieldsOf returns the fields of the object at a place; none if there is another value.
func (b *body) fieldsOf(object span) map[string]span {
	fields := map[string]span{}
	if raw := b.of(object); len(raw) == 0 || raw[0] != '{' {
		return fields
	}
	_ = eachField(b.of(object), object.from, func(name string,
		value span) {
		fields[name] = value
	}) // it was parsed before
	return fields
}

// fill replaces the value of a slot by what a part shows.
func (b *body) fill(s slot, p recall.Part) {
	raw := b.of(s.value)
	switch {
	case s.kind != recall.ToolCall:
		b.edits = append(b.edits, edit{s.value, chat.Encode(chat.ShownText(p))})
	case len(raw) > 0 && raw[0] == '"':
		b.edits = append(b.edits, edit{s.value, chat.Encode(string(chat.ShownArguments(p)))})
	default:
		b.edits = append(b.edits, edit{s.value, chat.ShownArguments(p)})
	}
}

// leaveOut removes the messages with these indexes, in ascending order, and puts another in the place of the first;
// nil: none.
func (b *body) leaveOut(indexes []int, instead json.RawMessage) {
	out := map[int]bool{}
	for _, i := range indexes {
		out[i] = true
	}
	for n := 0; n < len(indexes); {
		first := indexes[n]
		last := first
		for out[last+1] {
			last++
		}
		n += last - first + 1
		gone := span{b.items[first].from, b.items[last].to}
		with := []byte(instead)
		switch {
		case len(with) > 0:
		case last+1 < len(b.items):
			gone.to = b.items[last+1].from
		case first > 0:
			gone.from = b.items[first-1].to
		}
		b.edits, instead = append(b.edits, edit{gone, with}), nil
	}
}

// leaveOutParts removes parts of a message's content: the results of tools, or all others.
func (b *body) leaveOutParts(index int, results bool) {
	content, has := b.contentOf(index)
	if !has {
		return
	}
	parts := itemsOf(b.of(content), content.from)
	kept := []byte{'['}
	for _, part := range parts {
		var p struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal(b.of(part), &p) // another form has no type
		if (p.Type == "tool_result") == results {
			continue
		}
		if len(kept) > 1 {
			kept = append(kept, ',')
		}
		kept = append(kept, b.of(part)...)
	}
	b.edits = append(b.edits, edit{content, append(kept, ']')})
}
