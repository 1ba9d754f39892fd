package gateway

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

// visible returns an answer without the calls that have results.
func visible(d recall.Draft, results []recall.Part) recall.Draft {
	d.Content = slices.DeleteFunc(slices.Clone(d.Content), func(p recall.Part) bool {
		return p.Type == recall.ToolCall && slices.ContainsFunc(results, func(r recall.Part) bool {
			return r.CallID == p.CallID
		})
	})
	return d
}

// units returns the answer's unit with those that the client does not see.
func (a storedAnswer) units(answer unit) (all []unit) {
	add := func(d recall.Draft, n int) {
		u := unit{Draft: d}
		if answer.otid != "" {
			u.otid = insideOTID(answer.otid, n)
		}
		all = append(all, u)
	}
	for i, d := range a.before {
		add(d, i)
	}
	all = append(all, answer)
	if len(a.results) > 0 {
		add(recall.Draft{Role: recall.Tool, Content: a.results}, -1)
	}
	return all
}

// inner is what a client does not see of an answer.
type inner struct {
	before  []recall.Draft // before the answer
	calls   []recall.Part  // in the answer
	results []recall.Part  // of these
}

// putBack adds to the request what the client did not see of its model's answers: calls of the agent's tools, and their
// results. view says what of them fits the window; nil: all of it.
func (x *exchange) putBack(ctx context.Context, view *agent.FittedView) error {
	p := x.place
	if !p.exists || x.body.items == nil {
		return nil
	}
	answers := map[string]int{p.before: -1} // index of the unit, by its otid
	otids := []string{insideOTID(p.before, -1)}
	for i, u := range p.units {
		if u.Role == recall.Assistant && u.key() != "" && !u.hidden && (i < p.fresh || u.known) {
			answers[u.key()] = i
			otids = append(otids, insideOTID(u.key(), 0), insideOTID(u.key(), -1))
		}
	}
	known, err := x.Recall.KnownByOTID(ctx, p.org, p.agent.Key, otids)
	if err != nil || len(known) == 0 {
		return err
	}
	for otid, i := range answers {
		in, err := x.innerOf(ctx, known, otid, view)
		if err != nil {
			return err
		}
		x.insert(in, i)
	}
	return nil
}

// innerOf reads what the client did not see of the answer with an otid.
func (x *exchange) innerOf(ctx context.Context, known []recall.Known, otid string, view *agent.FittedView) (in inner,
	err error) {
	shown := func(otid string) bool { return view == nil || view.Shown[otid] }
	find := func(otid string) *recall.Known {
		for _, own := range []bool{true, false} {
			for i, k := range known {
				if k.OTID == otid && (!own || k.Conversation == x.place.conversation) && shown(otid) {
					return &known[i]
				}
			}
		}
		return nil
	}
	read := func(k *recall.Known, from, to int) ([]recall.Message, error) {
		c, err := x.Recall.Conversation(ctx, x.place.org, x.place.agent.ID, k.Conversation)
		if err != nil {
			return nil, err
		}
		return x.Recall.Between(ctx, x.place.org, c, max(from, 1), min(to, c.Messages))
	}
	if k := find(insideOTID(otid, 0)); k != nil {
		messages, err := read(k, k.Position, k.Position+2*maxRounds)
		if err != nil {
			return in, err
		}
		for _, m := range messages {
			if !isInside(m) {
				break
			}
			in.before = append(in.before, recall.Draft{Role: m.Role, Content: view.Of(m)})
		}
	}
	k := find(insideOTID(otid, -1))
	if k == nil {
		return in, nil
	}
	messages, err := read(k, k.Position-1, k.Position)
	if err != nil || len(messages) != 2 {
		return in, err
	}
	in.results = view.Of(messages[1])
	for _, call := range view.Of(messages[0]) {
		if call.Type == recall.ToolCall && slices.ContainsFunc(in.results, func(r recall.Part) bool {
			return r.CallID == call.CallID
		}) {
			in.calls = append(in.calls, call)
		}
	}
	return in, nil
}

// insert adds what the client did not see of the answer of a unit; -1: of the answer that the provider has kept, which
// gets only the results.
func (x *exchange) insert(in inner, index int) {
	units := x.place.units
	if index >= 0 && len(in.before) > 0 {
		var all []byte
		for _, item := range x.itemsOf(in.before) {
			all = append(append(all, item...), ',')
		}
		x.body.insert(x.body.items[units[index].items[0]].from, all)
	}
	if len(in.calls) == 0 || index+1 >= len(units) || units[index+1].Role != recall.Tool || units[index+1].hidden {
		return
	}
	items := x.itemsOf([]recall.Draft{{Role: recall.Assistant, Content: in.calls}, {Role: recall.Tool,
		Content: in.results}})
	behind := units[index+1].last()
	answer := -1
	if index >= 0 {
		answer = units[index].last()
	}
	switch x.dialect.format {
	case model.FormatResponses:
		results := resultsIn(items)
		if answer >= 0 {
			x.body.insertItems(answer, items[:len(items)-len(results)])
		}
		x.body.insertItems(behind, results)
	case model.FormatAnthropic:
		if len(items) == 2 && answer >= 0 {
			x.body.insertInList(answer, "content", fieldItems(items[0], "content"), "")
			x.body.insertInList(behind, "content", fieldItems(items[1], "content"), "tool_result")
		}
	default:
		if len(items) > 1 && answer >= 0 {
			x.body.insertInList(answer, "tool_calls", fieldItems(items[0], "tool_calls"), "")
			x.body.insertItems(behind, items[1:])
		}
	}
}

// fieldItems returns the items of a list in a field of an object.
func fieldItems(object json.RawMessage, name string) (items []json.RawMessage) {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(object, &fields) // it was made here
	_ = json.Unmarshal(fields[name], &items)
	return items
}

// insertItems adds messages behind the one with an index.
func (b *body) insertItems(index int, items []json.RawMessage) {
	var more []byte
	for _, item := range items {
		more = append(append(more, ','), item...)
	}
	b.insert(b.items[index].to, more)
}

// insertInList adds items to a list in a field of the message with an index: at its end, or behind the last item of a
// type. A text in the field becomes a part of the list.
func (b *body) insertInList(index int, field string, items []json.RawMessage, behind string) {
	s, has := b.fieldsOf(b.items[index])[field]
	if !has || len(items) == 0 {
		return
	}
	raw := b.of(s)
	if len(raw) > 0 && raw[0] == '"' {
		text := chat.Encode(map[string]any{"type": "text", "text": raw})
		b.edits = append(b.edits, edit{s, chat.Encode(append([]json.RawMessage{text}, items...))})
		return
	}
	at := -1
	for _, part := range itemsOf(raw, s.from) {
		var of struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal(b.of(part), &of) // another form has no type
		if behind == "" || of.Type == behind {
			at = part.to
		}
	}
	if at < 0 {
		return
	}
	var more []byte
	for _, item := range items {
		more = append(append(more, ','), item...)
	}
	b.insert(at, more)
}
