package transcript

import (
	"fmt"

	"github.com/loci-memory/loci/recall"
)

// isPi reports whether entries are from a session of Pi, or of OpenClaw, which uses the same format.
func isPi(entries []object) bool {
	return entries[0].text("type") == "session" && (entries[0].has("id") || entries[0].has("version"))
}

// pi reads a session of Pi: the branch that ends with its last entry. It leaves out summaries, because the messages
// that they replaced are there.
func (d document) pi(entries []object) ([]Transcript, error) {
	t := Transcript{Session: entries[0].text("id"), Format: Pi, LeftOut: map[string]int{}}
	ids := branch(entries[1:])
	for _, e := range entries[1:] {
		switch kind := e.text("type"); {
		case !ids[e.text("id")]:
			t.LeftOut[abandoned]++
		case kind == "message" && e.isObject("message"):
			m, err := d.object(e.fields["message"])
			if err != nil {
				return nil, err
			}
			drafts, err := d.piMessage(m)
			if d.refuses(err) {
				return nil, err
			}
			if err == nil && len(drafts) == 0 {
				t.LeftOut[m.text("role")]++
			}
			t.count(len(t.Drafts), m.usage(), m.text("model"))
			t.add(e, drafts)
		case kind == "custom_message":
			drafts, err := d.chat(e.with(map[string]any{"role": "user"}))
			if d.refuses(err) {
				return nil, err
			}
			t.add(e, drafts)
		default:
			t.LeftOut[kind]++
		}
	}
	return []Transcript{t}, nil
}

// branch returns the ids of the entries that lead to the last one. The oldest sessions have no ids; then all entries
// belong to the branch.
func branch(entries []object) map[string]bool {
	byID := map[string]object{}
	for _, e := range entries {
		byID[e.text("id")] = e
	}
	ids := map[string]bool{}
	if len(entries) == 0 {
		return ids
	}
	for e, ok := entries[len(entries)-1], true; ok && !ids[e.text("id")]; e, ok = byID[e.text("parentId")] {
		ids[e.text("id")] = true
	}
	return ids
}

// piMessage reads a chat message, or a message of a kind that only Pi has.
func (d document) piMessage(m object) ([]recall.Draft, error) {
	switch role := m.text("role"); role {
	case "user", "system":
		return d.chat(m)
	case "assistant":
		if stop := m.text("stopReason"); stop == "error" && !m.hasItems("content") {
			return nil, nil
		}
		parts, err := d.piParts(m)
		return []recall.Draft{{Role: recall.Assistant, Content: parts}}, err
	case "toolResult":
		text, err := d.piText(m)
		return []recall.Draft{{Role: recall.Tool, Content: []recall.Part{{Type: recall.ToolReturn,
			CallID: m.text("toolCallId"), Text: text, IsError: m.flag("isError")}}}}, err
	case "bashExecution": // a command of the user
		said := fmt.Sprintf("Ran %s\n%s", m.text("command"), m.text("output"))
		return []recall.Draft{{Role: recall.User, Content: []recall.Part{{Type: recall.Text, Text: said}}}}, nil
	case "custom", "hookMessage":
		return d.chat(m.with(map[string]any{"role": "user"}))
	case "branchSummary", "compactionSummary":
		return nil, nil
	default:
		return nil, d.fail(m.at, "no role %q is known in a session of Pi", role)
	}
}

// hasItems reports whether a field is a list with items.
func (o object) hasItems(name string) bool {
	return o.isList(name) && string(o.fields[name].raw) != "[]"
}

// piParts reads an answer's content.
func (d document) piParts(m object) (parts []recall.Part, err error) {
	if text := m.text("content"); text != "" || !m.hasItems("content") {
		return []recall.Part{{Type: recall.Text, Text: text}}, nil
	}
	blocks, err := d.objects(m.fields["content"])
	if err != nil {
		return nil, err
	}
	for _, b := range blocks {
		switch kind := b.text("type"); kind {
		case "text":
			parts = append(parts, recall.Part{Type: recall.Text, Text: b.text("text")})
		case "thinking":
			parts = append(parts, recall.Part{Type: recall.Reasoning, Text: b.text("thinking"), Native: true,
				Signature: b.text("thinkingSignature")})
		case "toolCall":
			input := string(b.fields["arguments"].raw)
			if !b.isObject("arguments") {
				input = b.text("arguments")
			}
			parts = append(parts, recall.Part{Type: recall.ToolCall, CallID: b.text("id"), Name: b.text("name"), Input: input})
		default:
			return nil, d.fail(b.at, "no block of type %q is known in an answer of Pi's", kind)
		}
	}
	return parts, nil
}

// piText reads a result's content: a text, or blocks of text and images.
func (d document) piText(m object) (text string, err error) {
	if !m.isList("content") {
		return m.text("content"), nil
	}
	blocks, err := d.objects(m.fields["content"])
	for i, b := range blocks {
		if i > 0 {
			text += "\n"
		}
		if text += b.text("text"); b.text("type") == "image" {
			text += "[image]"
		}
	}
	return text, err
}
