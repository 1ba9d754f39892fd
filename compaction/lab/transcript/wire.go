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

// WireMessage is a message in the form that the server's capture reads.
type WireMessage struct {
	Place int    // number of the message in the session, from 1
	OwnID string // the recording's id of the message; empty if it has none, or it is not unique
	JSON  json.RawMessage
}

// Wire returns the messages in the form that the server's capture reads. A message gets the same otid each time the
// recording is read, even if it has grown. left counts the parts that have no such form, by type.
func (t Transcript) Wire() (messages []WireMessage, left map[string]int) {
	left = map[string]int{}
	session, seen := t.Key(), map[string]bool{}
	counted := map[int]Prompt{}
	for _, p := range t.Prompts {
		counted[p.Answer] = p
	}
	before, after := "", 0 // the last message with its own id; the number of messages since then
	for i, d := range t.Drafts {
		after++
		id, ownID := fmt.Sprintf("%s+%d", before, after), ""
		if d.OTID != nil && len(*d.OTID) <= maxIDBytes && !seen[*d.OTID] {
			id, ownID = *d.OTID, *d.OTID
			seen[id], before, after = true, id, 0
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
		if p := counted[i]; p.Tokens > 0 {
			m["usage"] = map[string]int{"prompt_tokens": p.Tokens}
			if d.Model == nil && p.Model != "" {
				m["model"] = p.Model
			}
		}
		if d.StepID != nil {
			m["step_id"] = *d.StepID
		}
		if d.IsErr {
			m["is_err"] = true
		}
		messages = append(messages, WireMessage{Place: i + 1, OwnID: ownID, JSON: chat.Encode(m)})
	}
	return messages, left
}

// Bounds of ids.
const (
	maxIDBytes    = 200 // longer ones are not used
	uniqueIDBytes = 16  // shorter ones, such as 7 or D1:3, occur in many recordings
)

// Key returns a key of the session that does not depend on the file's name if possible. It is a hash of the session's
// id, or of its first message's id if it has none. A short session id is hashed together with the first message. If
// there is no id, the first message is hashed with the file's name.
func (t Transcript) Key() string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00", t.Format)
	var first recall.Draft
	if len(t.Drafts) > 0 {
		first = t.Drafts[0]
	}
	firstMessage := chat.Encode(map[string]any{"role": first.Role, "content": first.Content, "id": first.OTID})
	switch {
	case len(t.Session) >= uniqueIDBytes:
		h.Write([]byte(t.Session))
	case t.Session != "":
		fmt.Fprintf(h, "%s\x00%s", t.Session, firstMessage)
	case first.OTID != nil && len(*first.OTID) >= uniqueIDBytes:
		h.Write([]byte(*first.OTID))
	default:
		fmt.Fprintf(h, "%s\x00%s", filepath.Base(t.Name), firstMessage)
	}
	return "session-" + hex.EncodeToString(h.Sum(nil)[:10])
}

// blocks returns a message's parts as blocks of Anthropic's API, which can express all parts that transcripts have.
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

// input returns a call's arguments: an object, or whatever text the model wrote instead.
func input(text string) any {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &object) == nil && object != nil {
		return json.RawMessage(text)
	}
	return text
}

// results returns a tool's output: a text, or blocks if there are images.
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
