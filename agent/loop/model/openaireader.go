package model

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/loci-memory/loci/embed/provider"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

// openAIReader joins a stream's events into an answer.
type openAIReader struct {
	at            *provider.Endpoint
	show          func(Delta)
	tagged        chat.Thoughts // thoughts in the text
	thought, said strings.Builder
	field         recall.PartKind // the field in which the server sends thoughts; empty if none
	details       chat.ReasoningDetails
	calls         []*call
	refused       bool
	began         bool   // a choice has arrived
	whole         bool   // the message came in one piece
	bytes         int64  // size of what the events say
	finish        string // the server's finish reason; empty before the answer ended
	usage         Usage
	other         json.RawMessage // the last event without a choice
}

// readOpenAI reads the answer in a stream, or in a body without one.
func readOpenAI(ctx context.Context, at *provider.Endpoint, stream io.Reader, show func(Delta)) (Answer, error) {
	read, from := openAIReader{at: at, show: show}, newEvents(stream, at.MaxAnswerBytes)
	for {
		raw, err := from.next()
		if errors.Is(err, io.EOF) {
			return read.answer(ctx, from)
		}
		if err == nil {
			err = read.chunk(ctx, raw)
		}
		switch {
		case err == nil && read.bytes > at.MaxAnswerBytes:
			err = provider.ErrTooBig
		case err == nil && len(read.calls) > maxCalls:
			err = tooManyCalls(at)
		}
		if err != nil {
			return Answer{}, faultOf(ctx, at, err)
		}
	}
}

// call is a call with arguments that arrive piece by piece.
type call struct {
	index    int
	given    string // the provider's id; empty if not known yet
	id, name string // id is unique in the answer
	input    strings.Builder

	signature string // signature of the thought before it
}

// chunk adds an event.
func (o *openAIReader) chunk(ctx context.Context, raw []byte) error {
	var c chunk
	if err := json.Unmarshal(raw, &c); err != nil {
		return broken(o.at, "with a stream whose events are no JSON")
	}
	if u, ok := openAIUsage(c.Usage); ok {
		o.usage = u
	}
	if isSet(c.Error) || c.Object == "error" {
		return reply{body: raw}.fault(ctx, o.at)
	}
	switch {
	case c.Base.of.Code != 0:
		return reply{status: c.Base.of.status(), body: []byte(c.Base.of.Message)}.fault(ctx, o.at)
	case c.Feedback.of.Reason != "":
		return withheld(o.at, string(c.Feedback.of.Reason))
	case len(c.Choices) == 0:
		o.other = raw
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 { // only one choice is asked for
			continue
		}
		o.began = true
		if isSet(choice.Error) {
			return reply{body: choice.Error}.fault(ctx, o.at)
		}
		if u, ok := openAIUsage(choice.Usage); ok {
			o.usage = u
		}
		o.delta(choice.Delta)
		if choice.Message != nil {
			o.delta(*choice.Message)
			o.whole = true
		}
		o.finish = cmp.Or(string(choice.Finish), o.finish)
	}
	return nil
}

// delta adds an event's delta to the answer.
func (o *openAIReader) delta(d delta) {
	switch {
	case d.Thought != "":
		o.field = recall.ReasoningContent
	case d.Reasoning != "" && o.field == "":
		o.field = recall.ReasoningField
	}
	o.think(string(cmp.Or(d.Thought, d.Reasoning)))
	o.details.Add(d.Details)
	o.bytes += int64(len(d.Details))
	for _, p := range d.Content {
		if p.kind == recall.Reasoning {
			o.think(p.text)
			continue
		}
		thought, text := o.tagged.Add(p.text)
		o.think(thought)
		o.say(text)
	}
	o.say(string(d.Refusal))
	o.refused = o.refused || d.Refusal != ""
	for _, piece := range d.Calls {
		o.call(piece)
	}
	if d.Function != nil {
		o.call(piece{Index: new(int), Function: *d.Function})
	}
}

func (o *openAIReader) think(piece string) {
	if piece != "" {
		o.bytes += int64(len(piece))
		o.thought.WriteString(piece)
		o.show(Delta{Kind: recall.Reasoning, Text: piece})
	}
}

func (o *openAIReader) say(piece string) {
	if piece != "" {
		o.bytes += int64(len(piece))
		o.said.WriteString(piece)
		o.show(Delta{Kind: recall.Text, Text: piece})
	}
}

// call adds a piece of a call. It shows it under the id that the call keeps.
func (o *openAIReader) call(p piece) {
	known := o.callOf(p)
	if known == nil {
		known = &call{index: len(o.calls), given: string(p.ID), id: string(p.ID)}
		if p.Index != nil {
			known.index = *p.Index
		}
		if known.id == "" || slices.ContainsFunc(o.calls, func(c *call) bool { return c.id == known.id }) {
			known.id = newCallID()
		}
		o.calls = append(o.calls, known)
	}
	shown := Delta{Kind: recall.ToolCall, CallID: known.id, Text: string(p.Function.Arguments)}
	if known.name == "" { // some servers repeat it in each piece
		known.name, shown.Name = string(p.Function.Name), string(p.Function.Name)
	}
	known.given = cmp.Or(known.given, string(p.ID))
	known.signature = cmp.Or(known.signature, chat.ThoughtSignature(p.Extra))
	known.input.WriteString(shown.Text)
	o.bytes += int64(len(p.ID) + len(shown.Name) + len(shown.Text) + len(p.Extra))
	if shown.Name != "" || shown.Text != "" {
		o.show(shown)
	}
}

// callOf returns the call that a piece continues; nil if the piece begins a call.
func (o *openAIReader) callOf(p piece) *call {
	for _, c := range slices.Backward(o.calls) {
		if p.Index == nil || c.index == *p.Index {
			if c.endsBefore(p) {
				return nil
			}
			return c
		}
	}
	return nil
}

// endsBefore reports whether a piece, with the call's index or without one, begins another call. Some servers send
// whole calls without an index, some give every call index 0, and some give calls no ids or all the same. A piece
// without a name always continues a call.
func (c *call) endsBefore(p piece) bool {
	switch {
	case p.Function.Name == "" && (p.Index != nil || p.ID == ""):
		return false
	case p.ID != "" && c.given != "" && string(p.ID) != c.given:
		return true
	case p.Function.Name != "" && c.name != "" && string(p.Function.Name) != c.name:
		return true
	case p.Index == nil && p.ID == "":
		return true
	}
	return p.Function.Arguments != "" && json.Valid([]byte(c.input.String()))
}

// answer returns the whole answer. A stream without a finish reason and without an end mark broke off. An answer
// without a stream and without a choice cannot be read.
func (o *openAIReader) answer(ctx context.Context, from *events) (Answer, error) {
	if !o.began && !from.done && from.plain {
		f := broken(o.at, "with what is neither a stream nor an answer")
		f.Words = wordsFor(o.at, string(innermost(o.other).Message))
		return Answer{}, f
	}
	if o.finish == "" && !from.done && !o.whole || finishOf(o.finish) == broke {
		return Answer{}, cut(ctx, o.at)
	}
	thought, text := o.tagged.End()
	o.think(thought)
	o.say(text)
	a := Answer{Finish: finishOf(o.finish), Usage: o.usage}
	if _, why, says := strings.Cut(o.finish, ":"); says {
		a.Why = "content filter: " + strings.TrimSpace(why)
	}
	if o.refused {
		a.Finish = Refused
	}
	if extra := o.details.Extra(); o.thought.Len() > 0 || extra != "" {
		a.Content = append(a.Content, recall.Part{Type: recall.Reasoning, Text: o.thought.String(), Native: true,
			Kind: o.field, Extra: extra})
	}
	if o.said.Len() > 0 {
		a.Content = append(a.Content, recall.Part{Type: recall.Text, Text: o.said.String()})
	}
	for _, c := range o.calls {
		a.Content = append(a.Content,
			recall.Part{Type: recall.ToolCall, CallID: c.id, Name: c.name, Input: c.input.String(),
				Signature: c.signature})
	}
	return finish(o.at, a)
}
