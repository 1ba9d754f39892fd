package transcript

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

// isSWEAgent reports whether entries are the history of a trajectory of SWE-agent.
func isSWEAgent(entries []object) bool {
	return slices.ContainsFunc(entries, func(e object) bool {
		return e.has("role") && (e.has("message_type") || e.has("action") && e.has("thought") || e.isList("tool_call_ids"))
	})
}

// sweAgent reads the history of a trajectory of SWE-agent. In older ones an action is a text of the model, and its
// outcome is the next message of the user; they become a call of the tool "action" and its result.
func (d document) sweAgent(entries []object) (Transcript, error) {
	t := Transcript{Format: SWEAgent, LeftOut: map[string]int{}}
	waits := "" // id of the call that the next message answers
	for i, e := range entries {
		if ids := e.texts("tool_call_ids"); len(ids) > 0 && e.text("role") == "tool" {
			e = e.with(map[string]any{"tool_call_id": ids[0]})
		}
		drafts, err := d.chat(answered(e))
		if d.refuses(err) {
			return t, err
		}
		if err != nil {
			continue
		}
		switch {
		case waits != "" && e.text("role") == "user":
			drafts = []recall.Draft{{Role: recall.Tool, Content: []recall.Part{{Type: recall.ToolReturn, CallID: waits,
				Text: textOf(drafts[0])}}}}
			waits = ""
		case e.text("role") == "assistant" && e.text("action") != "" && !e.has("tool_calls"):
			waits = fmt.Sprintf("action-%d", i+1)
			call := recall.Part{Type: recall.ToolCall, CallID: waits, Name: "action",
				Input: string(chat.Encode(map[string]string{"action": e.text("action")}))}
			drafts[0].Content = []recall.Part{call}
			if thought := e.text("thought"); thought != "" {
				drafts[0].Content = []recall.Part{{Type: recall.Text, Text: thought}, call}
			}
		default:
			waits = ""
		}
		t.add(e, drafts)
	}
	return t, nil
}

// texts returns a field with a list of texts.
func (o object) texts(name string) (all []string) {
	if json.Unmarshal(o.fields[name].raw, &all) != nil {
		return nil
	}
	return all
}
