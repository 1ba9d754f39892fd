package transcript

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

// shareGPTRoles maps who says something in ShareGPT's format to a role. A function_call is a call of the assistant.
var shareGPTRoles = map[string]recall.Role{
	"human": recall.User, "user": recall.User, "system": recall.System,
	"gpt": recall.Assistant, "chatgpt": recall.Assistant, "assistant": recall.Assistant, "model": recall.Assistant,
	"bing": recall.Assistant, "bard": recall.Assistant, "function_call": recall.Assistant,
	"tool": recall.Tool, "observation": recall.Tool, "function_response": recall.Tool, "function": recall.Tool,
}

// isShareGPT reports whether entries have who speaks in from, and what they say in value; or in role and content, as a
// chat API has them, with names of ShareGPT's, calls in tags, or results of calls without ids.
func isShareGPT(entries []object) bool {
	first := entries[0]
	if first.has("value") {
		return first.has("from") || first.has("role")
	}
	if slices.ContainsFunc(entries, func(e object) bool {
		return !e.has("content") || e.isList("content") || e.has("tool_calls") || e.has("tool_call_id")
	}) {
		return false
	}
	for i, e := range entries {
		if slices.Contains(shareGPTNames, strings.ToLower(speakerOf(e))) {
			return true
		}
		if e.text("role") != "assistant" {
			continue
		}
		answered := i+1 < len(entries) && entries[i+1].text("role") == "tool"
		_, calls := callsIn(e.text("content"), answered, i)
		if len(calls) > 0 || taggedCall.MatchString(e.text("content")) {
			return true
		}
	}
	return false
}

// shareGPTNames are those of shareGPTRoles that no chat API has.
var shareGPTNames = []string{"human", "gpt", "chatgpt", "bing", "bard", "function_call", "observation",
	"function_response"}

// speakerOf returns who says an entry.
func speakerOf(e object) string { return cmp.Or(e.text("from"), e.text("role")) }

// saidIn returns what an entry says.
func saidIn(e object) string { return cmp.Or(e.text("value"), e.text("content")) }

// What stands around calls and results in texts of ShareGPT's format.
var (
	fencedCall   = regexp.MustCompile("(?s)\\A(.*?)```(?:json)?\\s*(\\{.*\\})\\s*```\\s*\\z")
	taggedCall   = regexp.MustCompile(`(?s)<tool_call>(.*?)</tool_call>`)
	taggedResult = regexp.MustCompile(`(?s)<tool_response>(.*?)</tool_response>`)
)

// shareGPT reads a conversation in ShareGPT's format. Calls have no ids there: results answer them in their order. A
// result of no call becomes a message of the user.
func (d document) shareGPT(entries []object) (Transcript, error) {
	t := Transcript{Format: ShareGPT, LeftOut: map[string]int{}}
	var waiting []string // ids of calls without a result
	for i, e := range entries {
		speaker := speakerOf(e)
		role, known := shareGPTRoles[strings.ToLower(speaker)]
		if !known || !e.has("value") && !e.has("content") {
			err := d.fail(e.at, "expected from, one of human, gpt, system, function_call and observation, with a value. Got: %q",
				speaker)
			if d.refuses(err) {
				return t, err
			}
			continue
		}
		text := saidIn(e)
		switch role {
		case recall.Assistant:
			answered := i+1 < len(entries) && shareGPTRoles[strings.ToLower(speakerOf(entries[i+1]))] == recall.Tool
			said, calls := callsIn(text, speaker == "function_call" || answered, i+1)
			for _, c := range calls {
				waiting = append(waiting, c.CallID)
			}
			if said != "" || len(calls) == 0 {
				calls = append([]recall.Part{{Type: recall.Text, Text: said}}, calls...)
			}
			t.add(e, []recall.Draft{{Role: role, Content: calls}})
		case recall.Tool:
			waiting = t.addResults(e, text, waiting)
		default:
			t.add(e, []recall.Draft{{Role: role, Content: []recall.Part{{Type: recall.Text, Text: text}}}})
		}
	}
	return t, nil
}

// callsIn returns the calls in a text, and what else the text says. If whole is true, a text without tags may be a call
// itself, or end with one in a block of code.
func callsIn(text string, whole bool, entry int) (said string, calls []recall.Part) {
	written := taggedCall.FindAllStringSubmatch(text, -1)
	said = strings.TrimSpace(taggedCall.ReplaceAllString(text, ""))
	if whole && len(written) == 0 {
		written, said = [][]string{{text, text}}, ""
		if fenced := fencedCall.FindStringSubmatch(text); fenced != nil {
			written, said = [][]string{{fenced[0], fenced[2]}}, strings.TrimSpace(fenced[1])
		}
	}
	for _, w := range written {
		var list []struct {
			Name       string          `json:"name"`
			Arguments  json.RawMessage `json:"arguments"`
			Parameters json.RawMessage `json:"parameters"` // as Llama calls them
		}
		raw := strings.TrimSpace(w[1])
		if !strings.HasPrefix(raw, "[") {
			raw = "[" + raw + "]"
		}
		if json.Unmarshal([]byte(raw), &list) != nil {
			return text, nil // it only looks like a call
		}
		for _, c := range list {
			if len(c.Arguments) == 0 {
				c.Arguments = c.Parameters
			}
			input := object{fields: map[string]value{"arguments": {raw: c.Arguments}}}
			p := recall.Part{Type: recall.ToolCall, CallID: fmt.Sprintf("call-%d-%d", entry, len(calls)+1), Name: c.Name,
				Input: input.text("arguments")}
			if p.Input == "" && len(c.Arguments) > 0 {
				p.Input = string(chat.Encode(c.Arguments))
			}
			if p.Name == "" {
				return text, nil
			}
			calls = append(calls, p)
		}
	}
	return said, calls
}

// addResults adds the results in a text. It returns the calls that still wait.
func (t *Transcript) addResults(e object, text string, waiting []string) []string {
	texts := []string{text}
	if tagged := taggedResult.FindAllStringSubmatch(text, -1); len(tagged) > 0 {
		texts = nil
		for _, found := range tagged {
			texts = append(texts, strings.TrimSpace(found[1]))
		}
	}
	var drafts []recall.Draft
	for _, text := range texts {
		draft := recall.Draft{Role: recall.User, Content: []recall.Part{{Type: recall.Text, Text: text}}}
		if len(waiting) > 0 {
			draft = recall.Draft{Role: recall.Tool, Content: []recall.Part{{Type: recall.ToolReturn, CallID: waiting[0],
				Text: text}}}
			waiting = waiting[1:]
		}
		drafts = append(drafts, draft)
	}
	t.add(e, drafts)
	return waiting
}
