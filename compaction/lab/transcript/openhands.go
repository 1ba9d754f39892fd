package transcript

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

// isOpenHands reports whether entries are events of OpenHands: actions and observations, or those of its agent SDK.
func isOpenHands(entries []object) bool {
	return slices.ContainsFunc(entries, func(e object) bool {
		if e.has("role") {
			return false
		}
		isAction := e.text("action") != "" && (e.has("args") || e.has("source"))
		isObservation := e.text("observation") != "" && (e.has("extras") || e.has("cause"))
		return isAction != isObservation || isSDKEvent(e)
	})
}

// events reads a session of OpenHands.
type events struct {
	document
	t     Transcript
	calls map[string]string // id of an action → id of its call
	users map[string]bool   // ids of the user's own actions
	said  map[string]bool   // ids of answers with a text that was read
	last  string            // id of the newest call, for observations that name no action
}

// openHands reads events. In the files of evaluations, an action and its observation may be a pair.
func (d document) openHands(entries []object) (Transcript, error) {
	r := events{document: d, t: Transcript{Format: OpenHands, LeftOut: map[string]int{}}, calls: map[string]string{},
		users: map[string]bool{}, said: map[string]bool{}}
	for i, e := range entries {
		var err error
		switch {
		case isSDKEvent(e):
			err = r.sdkEvent(e)
		case e.text("action") != "":
			err = r.action(i, e)
		case e.text("observation") != "":
			r.observation(e)
		default:
			r.t.leaveOut(e.text("kind"))
		}
		if d.refuses(err) {
			return r.t, err
		}
	}
	return r.t, nil
}

// id returns an event's id, which is a number in older versions; empty if it has none.
func (o object) id(name string) string {
	if !o.has(name) {
		return ""
	}
	return strings.Trim(string(o.fields[name].raw), `"`)
}

// own returns the event with its id as a text.
func (o object) own() object { return o.with(map[string]any{"id": o.id("id")}) }

// ofHarness are actions that no model took.
var ofHarness = []string{"recall", "change_agent_state", "condensation", "condensation_request", "pause", "resume",
	"start", "null"}

func (r *events) action(i int, e object) error {
	args, err := r.object(e.fields["args"])
	if err != nil && e.has("args") {
		return err
	}
	kind, byUser := e.text("action"), e.text("source") == "user"
	switch {
	case slices.Contains(ofHarness, kind):
		r.t.leaveOut(kind)
	case kind == "system":
		r.t.addSystem(args.text("content"))
	case kind == "message" && byUser:
		r.say(e, recall.User, args.text("content"))
	case kind == "message":
		r.answer(e, args, recall.Part{Type: recall.Text, Text: args.text("content")})
	case kind == "finish":
		text := args.text("final_thought")
		if text == "" {
			text = e.text("message")
		}
		r.answer(e, args, recall.Part{Type: recall.Text, Text: text})
	case byUser:
		r.users[e.id("id")] = true
		r.say(e, recall.User, "Ran "+args.text("command"))
	default:
		r.call(i, e, args)
	}
	return nil
}

// say adds a message with a text.
func (r *events) say(e object, role recall.Role, text string) {
	r.t.add(e.own(), []recall.Draft{{Role: role, Content: []recall.Part{{Type: recall.Text, Text: text}}}})
}

// modelCall is what an event says about the call that the model made.
type modelCall struct {
	Tool     string `json:"function_name"`
	CallID   string `json:"tool_call_id"`
	Response struct {
		ID      string `json:"id"`
		Model   string `json:"model"`
		Choices []struct {
			Message struct {
				Calls []struct {
					ID       string `json:"id"`
					Function struct {
						Arguments string `json:"arguments"`
					} `json:"function"`
				} `json:"tool_calls"`
			} `json:"message"`
		} `json:"choices"`
		Usage json.RawMessage `json:"usage"`
	} `json:"model_response"`
}

func modelCallOf(e object) (m modelCall) {
	_ = json.Unmarshal(e.fields["tool_call_metadata"].raw, &m) // an event of another shape says nothing about the call
	return m
}

// arguments returns the arguments of the call as the model wrote them; empty if the event lacks them.
func (m modelCall) arguments() string {
	for _, choice := range m.Response.Choices {
		for _, c := range choice.Message.Calls {
			if c.ID == m.CallID {
				return c.Function.Arguments
			}
		}
	}
	return ""
}

// ofRunner are arguments that the harness adds to a call.
var ofRunner = []string{"thought", "confirmation_state", "is_confirmed", "blocking", "hidden", "is_static", "is_input",
	"security_risk", "keep_prompt", "cwd", "impl_source", "return_browser_output"}

// call adds an action of the agent as a call of a tool.
func (r *events) call(i int, e, args object) {
	m := modelCallOf(e)
	p := recall.Part{Type: recall.ToolCall, CallID: m.CallID, Name: m.Tool, Input: m.arguments()}
	if p.Name == "" {
		p.Name = e.text("action")
	}
	if id := e.id("id"); p.CallID == "" && id != "" {
		p.CallID = "event-" + id
	} else if p.CallID == "" {
		p.CallID = fmt.Sprintf("event+%d", i+1)
	}
	if p.Input == "" {
		given := map[string]json.RawMessage{}
		for name, v := range args.fields {
			if !slices.Contains(ofRunner, name) && args.has(name) {
				given[name] = v.raw
			}
		}
		p.Input = string(chat.Encode(given))
	}
	if r.last = p.CallID; e.id("id") != "" {
		r.calls[e.id("id")] = p.CallID
	}
	r.answer(e, args, p)
}

// answer adds a part of an answer of the model, with the thought before it.
func (r *events) answer(e, args object, p recall.Part) {
	m := modelCallOf(e)
	draft := recall.Draft{Role: recall.Assistant}
	if id := m.Response.ID; id != "" {
		draft.StepID = &id
		if !r.said[id] {
			usage := object{fields: map[string]value{"usage": {raw: m.Response.Usage}}}
			r.t.count(len(r.t.Drafts), usage.usage(), m.Response.Model)
		}
	}
	if thought := args.thought(); thought != "" && thought != p.Text && !r.said[m.Response.ID] {
		draft.Content = append(draft.Content, recall.Part{Type: recall.Text, Text: thought})
	}
	if m.Response.ID != "" {
		r.said[m.Response.ID] = true
	}
	draft.Content = append(draft.Content, p)
	r.t.add(e.own(), []recall.Draft{draft})
}

// thought returns what the model said with an action: a text or, in newer versions, an object.
func (o object) thought() string {
	var in struct {
		Text string `json:"text"`
	}
	if text := o.text("thought"); text != "" {
		return text
	}
	_ = json.Unmarshal(o.fields["thought"].raw, &in) // without a thought there is none to read
	return in.Text
}

// notTold are observations that no model reads.
var notTold = []string{"null", "recall", "agent_state_changed", "condense", "loop_detection"}

// observation adds a result. One of the user's own command is what the user said. One of no call, such as a change of
// the agent's state, is left out, unless it is an error, which the model was told.
func (r *events) observation(e object) {
	kind, text := e.text("observation"), e.text("content")
	id := modelCallOf(e).CallID
	if id == "" {
		id = r.calls[e.id("cause")]
	}
	if id == "" && !e.has("cause") && e.id("id") == "" && !slices.Contains(notTold, kind) {
		id, r.last = r.last, ""
	}
	switch {
	case id != "" && !slices.Contains(notTold, kind):
		var extras struct {
			ExitCode int `json:"exit_code"`
			Metadata struct {
				ExitCode int `json:"exit_code"`
			} `json:"metadata"`
		}
		_ = json.Unmarshal(e.fields["extras"].raw, &extras) // most results have no exit code
		failed := kind == "error" || extras.ExitCode > 0 || extras.Metadata.ExitCode > 0
		r.t.add(e.own(), []recall.Draft{{Role: recall.Tool, Content: []recall.Part{{Type: recall.ToolReturn, CallID: id,
			Text: text, IsError: failed}}}})
	case text != "" && (kind == "error" || kind == "user_rejected" || r.users[e.id("cause")]):
		r.say(e, recall.User, text)
	default:
		r.t.leaveOut("observations " + kind)
	}
}
