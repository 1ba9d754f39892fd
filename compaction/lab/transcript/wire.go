package transcript

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

// Wire returns the messages as the server's capture reads them, each with an otid that is the same whenever the
// recording is read again, also when it has grown since. left counts the parts that have no such form, by their types.
func (t Transcript) Wire() (messages []json.RawMessage, left map[string]int) {
	left = map[string]int{}
	session, seen := t.key(), map[string]bool{}
	for i, d := range t.Drafts {
		id := fmt.Sprint(i + 1)
		if d.OTID != nil && len(*d.OTID) <= 200 && !seen[*d.OTID] {
			id = *d.OTID
			seen[id] = true
		}
		m := map[string]any{"role": d.Role, "content": blocks(d.Content, left), "otid": session + ":" + id}
		if d.Name != nil {
			m["name"] = *d.Name
		}
		if d.CreatedAt != nil && !d.CreatedAt.IsZero() {
			m["created_at"] = d.CreatedAt.Format(time.RFC3339Nano)
		}
		if d.Model != nil {
			m["model"] = *d.Model
		}
		if d.StepID != nil {
			m["step_id"] = *d.StepID
		}
		if d.IsErr {
			m["is_err"] = true
		}
		messages = append(messages, chat.Encode(m))
	}
	return messages, left
}

// key returns what tells the session apart from others: a hash of its name and of its first message.
func (t Transcript) key() string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%s\x00", t.Format, filepath.Base(t.Name))
	if len(t.Drafts) > 0 {
		first := t.Drafts[0]
		h.Write(chat.Encode(map[string]any{"role": first.Role, "content": first.Content, "id": first.OTID}))
	}
	return "session-" + hex.EncodeToString(h.Sum(nil)[:10])
}

// Key returns the name under which the session is imported.
func (t Transcript) Key() string { return t.key() }

// blocks returns the parts of a message as blocks of Anthropic's, which have all that readers of transcripts read.
func blocks(parts []recall.Part, left map[string]int) []any {
	all := []any{}
	for _, p := range parts {
		switch p.Type {
		case recall.Text:
			all = append(all, map[string]any{"type": "text", "text": p.Text})
		case recall.Image:
			all = append(all, map[string]any{"type": "image", "source": p.Source})
		case recall.ToolCall:
			all = append(all, map[string]any{"type": "tool_use", "id": p.CallID, "name": p.Name, "input": input(p.Input)})
		case recall.ToolReturn:
			all = append(all, map[string]any{"type": "tool_result", "tool_use_id": p.CallID, "is_error": p.IsError,
				"content": results(p)})
		case recall.Reasoning:
			all = append(all, map[string]any{"type": "thinking", "thinking": p.Text, "signature": p.Signature})
		case recall.RedactedReasoning:
			all = append(all, map[string]any{"type": "redacted_thinking", "data": p.Data})
		case recall.AnthropicBlock:
			all = append(all, json.RawMessage(p.Item))
		default:
			left[string(p.Type)]++
		}
	}
	return all
}

// input returns the arguments of a call: an object, or the text that a model wrote in place of one.
func input(text string) any {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &object) == nil && object != nil {
		return json.RawMessage(text)
	}
	return text
}

// results returns what a tool returned: a text, or blocks if there are images.
func results(p recall.Part) any {
	if len(p.Images) == 0 {
		return p.Text
	}
	all := []any{map[string]any{"type": "text", "text": p.Text}}
	for _, source := range p.Images {
		all = append(all, map[string]any{"type": "image", "source": source})
	}
	return all
}
