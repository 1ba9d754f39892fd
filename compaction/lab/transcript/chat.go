package transcript

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

// messages reads messages of a chat API. System prompts at the beginning become the transcript's System.
func (d document) messages(entries []object) (Transcript, error) {
	t := Transcript{Format: Chat}
	for _, e := range withIDs(entries) {
		drafts, err := d.chat(answered(e))
		if d.refuses(err) {
			return t, err
		}
		if err == nil {
			t.count(len(t.Drafts), e.usage(), e.text("model"))
			t.add(e, drafts)
		}
	}
	return t, nil
}

// withIDs gives ids to calls that have none, and to the results that follow in their order. Such calls may have their
// names and arguments outside of function.
func withIDs(entries []object) []object {
	all := slices.Clone(entries)
	var waiting []string
	for i, e := range entries {
		var calls []map[string]json.RawMessage
		switch {
		case e.text("role") == "assistant" && json.Unmarshal(e.fields["tool_calls"].raw, &calls) == nil:
			waiting = nil
			for n, call := range calls {
				if call == nil || len(call["id"]) > 0 && string(call["id"]) != "null" {
					continue
				}
				id := fmt.Sprintf("call-%d-%d", i+1, n+1)
				waiting = append(waiting, id)
				call["id"] = chat.Encode(id)
				if len(call["function"]) == 0 {
					call["function"] = chat.Encode(map[string]json.RawMessage{"name": call["name"], "arguments": call["arguments"]})
				}
			}
			if len(waiting) > 0 {
				all[i] = e.with(map[string]any{"tool_calls": calls})
			}
		case e.text("role") == "tool" && !e.has("tool_call_id") && len(waiting) > 0:
			all[i] = e.with(map[string]any{"tool_call_id": waiting[0]})
			waiting = waiting[1:]
		}
	}
	return all
}

// answered adds an empty text to an assistant's message without text and calls, as some APIs return it.
func answered(e object) object {
	if e.text("role") == "assistant" && !e.has("content") && !e.has("tool_calls") && !e.has("function_call") {
		return e.with(map[string]any{"content": ""})
	}
	return e
}

// add adds an entry's drafts, with the entry's id and time.
func (t *Transcript) add(e object, drafts []recall.Draft) {
	for i, draft := range drafts {
		if draft.Role == recall.System && len(t.Drafts) == 0 {
			t.addSystem(textOf(draft))
			continue
		}
		for _, name := range []string{"id", "uuid", "dia_id"} {
			if id := e.text(name); id != "" && draft.OTID == nil {
				if i > 0 { // an entry may be several messages
					id = fmt.Sprintf("%s#%d", id, i+1)
				}
				draft.OTID = &id
			}
		}
		for _, name := range []string{"timestamp", "created_at", "time"} {
			if draft.CreatedAt != nil {
				continue
			}
			if draft.CreatedAt = e.time(name); draft.CreatedAt == nil && e.text(name) != "" {
				t.leaveOut("times that cannot be read")
			}
		}
		t.Drafts = append(t.Drafts, draft)
	}
}

// addSystem adds a text to the system prompt.
func (t *Transcript) addSystem(text string) { t.System = strings.TrimSpace(t.System + "\n\n" + text) }

// cut removes the drafts from an index on, with what the provider counted for them.
func (t *Transcript) cut(from int) {
	t.Drafts = t.Drafts[:from]
	for n := len(t.Prompts); n > 0 && t.Prompts[n-1].Answer >= from; n = len(t.Prompts) {
		t.Prompts = t.Prompts[:n-1]
	}
}

// abandoned is the kind of messages of turns that the user went back from.
const abandoned = "abandoned"

// leaveOut counts something that is not read, by its kind.
func (t *Transcript) leaveOut(kind string) {
	if t.LeftOut == nil {
		t.LeftOut = map[string]int{}
	}
	t.LeftOut[kind]++
}

func textOf(draft recall.Draft) string {
	var texts []string
	for _, p := range draft.Content {
		if p.Type == recall.Text {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// questions reads a data set's questions about a session, with the ids of the messages that answer them.
func (d document) questions(o object) (all []Question, err error) {
	if !o.isList("questions") {
		return nil, nil
	}
	entries, err := d.objects(o.fields["questions"])
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		q := Question{Text: e.text("question"), Answer: e.text("answer")}
		if json.Unmarshal(e.fields["evidence"].raw, &q.Evidence) != nil || len(q.Evidence) == 0 {
			return nil, d.fail(e.at, "a question lists the ids of its evidence as evidence")
		}
		all = append(all, q)
	}
	return all, nil
}
