package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

// manageTimeout is how long a request may wait until its messages are stored and its window is kept. A model may write
// a summary meanwhile.
const manageTimeout = time.Minute

// answerShare is the share of a window that is kept for the answer. Of a request that asks for more, the window is
// smaller by the rest.
const answerShare = 0.1

// manage keeps the request within its model's window: what no longer fits is replaced as the agent's policy says. It
// stores the request's messages first. A request that only has what is new, or whose model has no known window, stays
// as it is; so does one whose newest messages alone do not fit. notes stand behind its messages. manage returns the
// view that the request shows; nil: all of it.
func (x *exchange) manage(ctx context.Context, notes map[string]string) (shown *agent.FittedView, err error) {
	target, window := x.promptTarget() //nolint:contextcheck // it reads the request's key
	if window == 0 || x.named().appends || x.named().response != "" {
		return nil, nil //nolint:nilnil // as documented
	}
	var c recall.Conversation
	if x.place.exists {
		if c, err = x.Recall.Conversation(ctx, x.place.org, x.place.agent.ID, x.place.conversation); err != nil {
			return nil, err
		}
	}
	if len(x.body.raw) <= window/2 && !agent.IsCompacted(c) { // a token has at least a byte
		return nil, nil //nolint:nilnil // as documented
	}
	for _, u := range x.place.units {
		if u.place >= c.FirstVisible {
			target.Around = append(target.Around, cmp.Or(notes[u.otid], notes[u.stored]))
		}
	}
	ctx, cancel := context.WithTimeout(db.WithPatience(context.WithoutCancel(ctx), keepTimeout), manageTimeout)
	defer cancel()
	defer context.AfterFunc(x.Request.Context(), cancel)() //nolint:contextcheck // the client may leave
	kept, err := x.keep(ctx, x.place)
	if err != nil {
		return nil, err
	}
	x.kept, target.Conversation = &kept, kept.conversation
	view, fits, err := x.Agents.FitView(ctx, x.place.org, target)
	if err != nil || !fits {
		return nil, err
	}
	if c, err = x.Recall.Conversation(ctx, x.place.org, x.place.agent.ID, kept.conversation); err == nil {
		x.kept.behind = c.Messages // a summary may stand behind the messages
	}
	x.show(view, window)
	return &view, err
}

// promptTarget returns the prompt that the request is like, without its conversation, and the window of its model in
// tokens; 0 if that is unknown.
func (x *exchange) promptTarget() (target agent.PromptTarget, window int) {
	of := x.place.agent
	if handle := x.dialect.handle(x.model); of.WindowLimit == nil && handle != "" {
		of.Model, target.Model = &handle, &handle
	}
	if window = of.Window(); window == 0 {
		return target, 0
	}
	answer := 0
	for _, name := range []string{"max_completion_tokens", "max_tokens", "max_output_tokens"} {
		_ = json.Unmarshal(x.body.field(name), &answer) // anything but a number asks for nothing
	}
	if answer > 0 && answer < window {
		window = min(window, int(float64(window-answer)/(1-answerShare)))
	}
	window -= min(cmp.Or(x.recallSettings().Budget(), tool.NoteTokens), window/20) // of the note behind the newest message
	target.AgentID, target.Window = of.ID, max(window, 1)
	target.Format, target.System, target.OnlyTools = formats[x.dialect.format], new(""), []string{}
	target.Compaction = json.RawMessage(`{"warning": false}`)
	for _, t := range x.offers() {
		target.OnlyTools = append(target.OnlyTools, t.Name)
	}
	for _, name := range []string{"tools", "system", "instructions", "response_format", "text"} {
		if raw := x.body.field(name); raw != nil {
			target.Around = append(target.Around, string(raw))
		}
	}
	return target, window
}

// formats are the formats of prompts, by those of requests.
var formats = map[string]agent.Format{OpenAI: agent.OpenAI, Anthropic: agent.Anthropic, "responses": agent.Responses}

// show leaves out of the request what the view hides, and shortens what it shortens.
func (x *exchange) show(view agent.FittedView, window int) {
	edits := view.Edits
	if view.Tokens+x.longer(view) > int((1-answerShare)*float64(window)) {
		edits = view.Shorter
	}
	hides := map[int]recall.Role{} // indexes of items of which messages are hidden, and the role of the last
	shows := map[int]bool{}
	for i := range x.place.units {
		u := &x.place.units[i]
		if u.hidden = view.Compacts && !view.Shown[u.key()]; !u.hidden {
			x.shorten(*u, edits[u.key()])
		}
		for _, index := range u.items {
			if u.hidden {
				hides[index] = u.Role
			} else {
				shows[index] = true
			}
		}
	}
	var gone []int
	for index := range x.body.items {
		role, hidden := hides[index]
		switch {
		case hidden && shows[index]:
			x.body.leaveOutParts(index, role == recall.Tool)
		case hidden:
			gone = append(gone, index)
		}
	}
	if len(gone) == 0 {
		return
	}
	var summary json.RawMessage
	if view.Summary != "" {
		summary = chat.Encode(struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		}{"user", view.Summary})
	}
	x.body.leaveOut(gone, summary)
}

// key returns the otid by which the unit is stored; empty if it has none.
func (u unit) key() string { return cmp.Or(u.stored, u.otid) }

// longer estimates how many tokens the request's own results have more than those that the view shows.
func (x *exchange) longer(view agent.FittedView) (n int) {
	for _, u := range x.place.units {
		for _, e := range view.Shorter[u.key()] {
			if e.Part < len(u.Content) && len(u.Content) == e.Content {
				n += x.Agents.CountTokens(x.place.agent, u.Content[e.Part].Text) -
					x.Agents.CountTokens(x.place.agent, e.Shown.Text)
			}
		}
		for _, e := range view.Edits[u.key()] {
			if e.Part < len(u.Content) && len(u.Content) == e.Content {
				n -= x.Agents.CountTokens(x.place.agent, u.Content[e.Part].Text) -
					x.Agents.CountTokens(x.place.agent, e.Shown.Text)
			}
		}
	}
	return max(n, 0)
}

// shorten shows parts of a unit as the edits say. A thought stays: its provider leaves out old ones itself.
func (x *exchange) shorten(u unit, edits []agent.PartEdit) {
	if len(edits) == 0 {
		return
	}
	var slots []slot
	for _, index := range u.items {
		slots = append(slots, x.body.slotsOf(index)...)
	}
	for _, e := range edits {
		if len(u.Content) != e.Content {
			continue // the log has kept the message in another form
		}
		if s, found := slotOf(slots, u.Content, e.Part); found {
			x.body.fill(s, e.Shown)
		}
	}
}

// slotOf returns the slot of a part of a message's content.
func slotOf(slots []slot, content []recall.Part, part int) (found slot, ok bool) {
	of, before := content[part], 0
	for _, p := range content[:part] {
		if p.Type == of.Type && p.CallID == of.CallID {
			before++
		}
	}
	for _, s := range slots {
		if s.kind != of.Type || of.Type != recall.Text && s.id != of.CallID {
			continue
		}
		if before == 0 {
			return s, true
		}
		before--
	}
	return slot{}, false
}
