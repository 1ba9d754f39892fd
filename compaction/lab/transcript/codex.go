package transcript

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

// codexKinds are the types of lines in a rollout of Codex that are read. The payload has the rest.
var codexKinds = []string{"session_meta", "response_item", "event_msg", "turn_context"}

// isCodex reports whether entries are a rollout of Codex: a type and a payload on each line. In older rollouts the
// first line has the session's id, and each other line is an item of OpenAI's Responses API.
func isCodex(entries []object) bool {
	first := entries[0]
	old := first.has("id") && first.has("timestamp") && !first.has("role") && !first.has("type")
	return slices.ContainsFunc(entries, func(e object) bool {
		isItem := e.has("record_type") || e.text("type") == "message" || strings.HasPrefix(e.text("type"), "function_call")
		return e.isObject("payload") && slices.Contains(codexKinds, e.text("type")) || old && isItem
	})
}

// rollout reads a session of Codex.
type rollout struct {
	document
	t      Transcript
	open   bool // the last draft is an answer that may have more items
	answer int  // index of the newest answer
	total  string
	model  string // of the present turn
}

// codex reads a rollout. It leaves out turns that were rolled back, and summaries of Codex's own compactions, because
// the messages that these replaced are there.
func (d document) codex(entries []object) ([]Transcript, error) {
	r := rollout{document: d, t: Transcript{Format: Codex, LeftOut: map[string]int{}}, answer: -1}
	for i, e := range entries {
		if err := r.entry(i, e); d.refuses(err) {
			return nil, err
		}
	}
	return []Transcript{r.t}, nil
}

func (r *rollout) entry(i int, e object) error {
	kind, payload := e.text("type"), e
	if e.isObject("payload") {
		var err error
		if payload, err = r.object(e.fields["payload"]); err != nil {
			return err
		}
	}
	switch {
	case kind == "session_meta" || i == 0 && kind == "":
		return r.meta(payload)
	case kind == "response_item":
		return r.item(e, payload)
	case kind == "event_msg":
		r.event(payload)
	case kind == "" && e.has("record_type"):
		r.t.leaveOut(e.text("record_type"))
	case kind == "turn_context":
		r.model = payload.text("model")
		r.t.leaveOut(kind)
	case e.isObject("payload"):
		r.t.leaveOut(kind)
	default:
		return r.item(e, e)
	}
	return nil
}

// meta reads the session's id and system prompt. A fork repeats the line of its origin behind its own.
func (r *rollout) meta(payload object) error {
	if r.t.Session != "" {
		r.t.leaveOut("session_meta")
		return nil
	}
	r.t.Session, r.t.System = payload.text("id"), payload.text("instructions")
	if payload.isObject("base_instructions") {
		base, err := r.object(payload.fields["base_instructions"])
		if err != nil {
			return err
		}
		r.t.System = base.text("text")
	}
	return nil
}

// item reads an item of OpenAI's Responses API. The items of an answer are one message.
func (r *rollout) item(e, item object) error {
	switch kind := item.text("type"); kind {
	case "message":
		return r.message(e, item)
	case "reasoning":
		r.think(e, item)
	case "function_call", "custom_tool_call":
		input := item.text("arguments")
		if kind == "custom_tool_call" {
			input = item.text("input")
		}
		p := recall.Part{Type: recall.ToolCall, CallID: item.text("call_id"), Name: item.text("name"), Input: input}
		if kind == "custom_tool_call" {
			p.Kind = recall.CustomCall
		}
		return r.call(e, p)
	case "local_shell_call":
		return r.call(e, recall.Part{Type: recall.ToolCall, CallID: item.text("call_id"), Name: "local_shell",
			Input: string(item.fields["action"].raw)})
	case "function_call_output", "custom_tool_call_output":
		return r.result(e, item)
	default:
		r.t.leaveOut(kind)
	}
	return nil
}

func (r *rollout) message(e, item object) error {
	if !item.hasItems("content") && item.text("content") == "" {
		r.t.leaveOut("messages without a text")
		return nil
	}
	drafts, err := r.chat(item)
	if err != nil {
		return err
	}
	if item.text("role") == "assistant" {
		r.say(e, drafts[0].Content...)
		return nil
	}
	r.open = false
	r.t.add(e, drafts)
	return nil
}

// think reads a reasoning. One that is only encrypted says nothing.
func (r *rollout) think(e, item object) {
	var texts []string
	for _, name := range []string{"summary", "content"} {
		var parts []struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(item.fields[name].raw, &parts) != nil {
			continue
		}
		for _, p := range parts {
			texts = append(texts, p.Text)
		}
	}
	if text := strings.Join(texts, "\n"); text != "" {
		r.say(e, recall.Part{Type: recall.Reasoning, Text: text})
		return
	}
	r.t.leaveOut("reasonings without a text")
}

func (r *rollout) call(e object, p recall.Part) error {
	if p.CallID == "" || p.Name == "" {
		return r.fail(e.at, "a call has a call_id and a name")
	}
	r.say(e, p)
	return nil
}

// say adds parts to the answer.
func (r *rollout) say(e object, parts ...recall.Part) {
	if !r.open {
		r.answer = len(r.t.Drafts)
		r.t.add(e.without("id"), []recall.Draft{{Role: recall.Assistant}})
		r.open = true
	}
	answer := &r.t.Drafts[r.answer]
	answer.Content = append(answer.Content, parts...)
}

// result reads what a tool returned: a text, a list of parts, or an object that says whether the call succeeded.
func (r *rollout) result(e, item object) error {
	failed := false
	if item.isObject("output") {
		output, err := r.object(item.fields["output"])
		if err != nil {
			return err
		}
		failed = string(output.fields["success"].raw) == "false"
		text := output.text("content")
		if !output.has("content") {
			text = string(item.fields["output"].raw)
		}
		item = item.with(map[string]any{"output": text})
	}
	drafts, err := r.chat(item.with(map[string]any{"role": "tool", "tool_call_id": item.text("call_id"),
		"content": item.fields["output"].raw}))
	if err != nil {
		return err
	}
	p := &drafts[0].Content[0]
	var ran struct {
		Metadata struct {
			ExitCode int `json:"exit_code"`
		} `json:"metadata"`
	}
	p.IsError = failed || json.Unmarshal([]byte(p.Text), &ran) == nil && ran.Metadata.ExitCode != 0
	r.open = false
	r.t.add(e.without("id"), drafts)
	return nil
}

// event reads what the provider counted, and turns that were rolled back. The other events repeat messages.
func (r *rollout) event(payload object) {
	switch kind := payload.text("type"); kind {
	case "token_count":
		info, err := r.object(payload.fields["info"])
		total := string(info.fields["total_token_usage"].raw)
		if err != nil || r.answer < 0 || total != "" && total == r.total {
			return // the same count again, with other limits of the account
		}
		r.total = total
		var last struct {
			Input  int `json:"input_tokens"`
			Cached int `json:"cached_input_tokens"`
			Write  int `json:"cache_write_input_tokens"`
		}
		if json.Unmarshal(info.fields["last_token_usage"].raw, &last) == nil {
			r.t.count(r.answer, chat.Usage{Prompt: last.Input, CacheRead: last.Cached, CacheWrite: last.Write},
				r.model)
		}
		r.open = false
	case "thread_rolled_back":
		var turns int
		if json.Unmarshal(payload.fields["num_turns"].raw, &turns) == nil {
			r.rollBack(turns)
		}
	default:
		r.t.leaveOut(kind)
	}
}

// rollBack removes the newest turns. A message of the user begins one, unless Codex wrote it, which begins with a tag.
func (r *rollout) rollBack(turns int) {
	r.open = false
	for i, draft := range slices.Backward(r.t.Drafts) {
		if turns <= 0 {
			break
		}
		if draft.Role == recall.User && !strings.HasPrefix(strings.TrimSpace(textOf(draft)), "<") {
			turns--
		}
		r.t.LeftOut[abandoned]++
		r.t.cut(i)
	}
	r.answer = -1
}
