package model

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/loci-memory/loci/embed/provider"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

// anthropicReader joins a stream's events into an answer.
type anthropicReader struct {
	at     *provider.Endpoint
	show   func(Delta)
	blocks []*block
	calls  int
	bytes  int64  // size of what the events say
	stop   string // the server's stop reason; empty before the message ended
	ended  bool   // the stream announced its end
	usage  anthropicUsage
}

// readAnthropic reads the answer in a stream, or in a body without one.
func readAnthropic(ctx context.Context, at *provider.Endpoint, stream io.Reader, show func(Delta)) (Answer, error) {
	read, from := anthropicReader{at: at, show: show}, newEvents(stream, at.MaxAnswerBytes)
	for !read.ended {
		raw, err := from.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = read.event(ctx, raw, from.json != nil)
		}
		if err == nil && read.bytes > at.MaxAnswerBytes {
			err = provider.ErrTooBig
		}
		if err != nil {
			return Answer{}, faultOf(ctx, at, err)
		}
	}
	return read.answer(ctx)
}

// anthropicEvent has the fields that are read of a stream's event. Some servers answer with a whole message although
// they are asked for a stream. A field of an unknown form reads as empty.
type anthropicEvent struct {
	Type  text            `json:"type"`
	Index int             `json:"index"`
	Block json.RawMessage `json:"content_block"`
	Usage json.RawMessage `json:"usage"`
	Error json.RawMessage `json:"error"`

	Delta   lenient[blockDelta] `json:"delta"`
	Message lenient[struct {
		Usage json.RawMessage `json:"usage"`
	}] `json:"message"` // in some errors a text

	Content lenient[[]json.RawMessage] `json:"content"`     // of a whole message
	Stop    text                       `json:"stop_reason"` // of a whole message
}

// blockDelta is the part of an event that extends a block or the message.
type blockDelta struct {
	Type      text            `json:"type"`
	Text      text            `json:"text"`
	Thinking  text            `json:"thinking"`
	Signature text            `json:"signature"`
	Input     text            `json:"partial_json"`
	Citation  json.RawMessage `json:"citation"`
	Stop      text            `json:"stop_reason"`
}

// event adds an event. plain is set if the answer has lines that are not events.
func (a *anthropicReader) event(ctx context.Context, raw []byte, plain bool) error {
	var e anthropicEvent
	if err := json.Unmarshal(raw, &e); err != nil {
		if plain { // a server's own form of an error
			return reply{body: raw}.fault(ctx, a.at)
		}
		return broken(a.at, "with a stream whose events are no JSON")
	}
	switch e.Type {
	case "message_start":
		a.usage.add(e.Message.of.Usage)
	case "content_block_start":
		return a.begin(e.Index, e.Block)
	case "content_block_delta":
		return a.delta(e.Index, e.Delta.of)
	case "content_block_stop":
		return a.end(e.Index)
	case "message_delta":
		a.stop = string(e.Delta.of.Stop)
		a.usage.add(e.Usage)
	case "message_stop":
		a.ended = true
	case "message":
		return a.whole(e)
	default:
		if plain || e.Type == "error" || isSet(e.Error) {
			return reply{body: raw}.fault(ctx, a.at)
		}
	}
	return nil
}

// whole adds a message that came in one piece.
func (a *anthropicReader) whole(e anthropicEvent) error {
	for i, raw := range e.Content.of {
		if err := a.begin(i, raw); err != nil {
			return err
		}
		if err := a.end(i); err != nil {
			return err
		}
	}
	a.usage.add(e.Usage)
	a.stop, a.ended = string(e.Stop), true
	return nil
}

// begin begins a block.
func (a *anthropicReader) begin(index int, raw json.RawMessage) error {
	b := &block{raw: raw}
	if index != len(a.blocks) || json.Unmarshal(raw, &b.of) != nil {
		return a.disordered()
	}
	a.blocks = append(a.blocks, b)
	a.bytes += int64(len(raw))
	b.text.WriteString(string(b.of.Text))
	b.thinking.WriteString(string(b.of.Thinking))
	b.signature.WriteString(string(b.of.Signature))
	switch b.of.Type {
	case "text":
		a.tell(Delta{Kind: recall.Text, Text: string(b.of.Text)})
	case "thinking":
		a.tell(Delta{Kind: recall.Reasoning, Text: string(b.of.Thinking)})
	case "tool_use":
		if a.calls++; a.calls > maxCalls {
			return tooManyCalls(a.at)
		}
		b.callID = string(b.of.ID)
		if b.callID == "" || slices.ContainsFunc(a.blocks[:index], func(o *block) bool { return o.callID == b.callID }) {
			b.callID = newCallID()
		}
		a.show(Delta{Kind: recall.ToolCall, CallID: b.callID, Name: string(b.of.Name)})
	}
	return nil
}

// delta adds a piece to a block.
func (a *anthropicReader) delta(index int, d blockDelta) error {
	if index < 0 || index >= len(a.blocks) {
		return a.disordered()
	}
	b := a.blocks[index]
	a.bytes += int64(len(d.Text) + len(d.Thinking) + len(d.Signature) + len(d.Input) + len(d.Citation))
	switch d.Type {
	case "text_delta":
		b.text.WriteString(string(d.Text))
		a.tell(Delta{Kind: recall.Text, Text: string(d.Text)})
	case "thinking_delta":
		b.thinking.WriteString(string(d.Thinking))
		a.tell(Delta{Kind: recall.Reasoning, Text: string(d.Thinking)})
	case "signature_delta":
		b.signature.WriteString(string(d.Signature))
	case "input_json_delta":
		a.input(b, string(d.Input))
	case "citations_delta":
		if isSet(d.Citation) {
			b.citations = append(b.citations, d.Citation)
		}
	}
	return nil
}

// end ends a block. Some servers send a call's whole input at the beginning of its block; Anthropic sends {} there.
func (a *anthropicReader) end(index int) error {
	if index < 0 || index >= len(a.blocks) {
		return a.disordered()
	}
	if b := a.blocks[index]; b.of.Type == "tool_use" && b.input.Len() == 0 && isSet(b.of.Input) {
		if whole := cmp.Or(textOf(b.of.Input), string(oneLine(b.of.Input))); whole != "{}" && whole != `""` {
			a.input(b, whole)
		}
	}
	return nil
}

// input adds a piece to a call's input. Inputs of Anthropic's own tools are not shown.
func (a *anthropicReader) input(b *block, piece string) {
	b.input.WriteString(piece)
	if b.of.Type == "tool_use" {
		a.tell(Delta{Kind: recall.ToolCall, CallID: b.callID, Text: piece})
	}
}

// tell shows a delta unless it is empty.
func (a *anthropicReader) tell(d Delta) {
	if d.Text != "" {
		a.show(d)
	}
}

func (a *anthropicReader) disordered() error {
	return broken(a.at, "with a stream whose events have no order")
}

// answer returns the whole answer.
func (a *anthropicReader) answer(ctx context.Context) (Answer, error) {
	if a.stop == "" {
		return Answer{}, cut(ctx, a.at)
	}
	answer := Answer{Finish: Stop, Usage: a.usage.total()}
	switch a.stop {
	case "max_tokens", "model_context_window_exceeded":
		answer.Finish = Length
	case "pause_turn":
		answer.Finish = Paused
	case "refusal":
		answer.Finish = Refused
	}
	for _, b := range a.blocks {
		answer.Content = append(answer.Content, b.part())
	}
	return finish(a.at, answer)
}

// block is a block of a message's content.
type block struct {
	raw json.RawMessage // its JSON at the beginning
	of  struct {
		Type      text            `json:"type"`
		ID        text            `json:"id"`
		Name      text            `json:"name"`
		Text      text            `json:"text"`
		Thinking  text            `json:"thinking"`
		Signature text            `json:"signature"`
		Data      text            `json:"data"`
		Input     json.RawMessage `json:"input"`
		Citations json.RawMessage `json:"citations"`
	}
	text, thinking, signature, input strings.Builder
	citations                        []json.RawMessage
	callID                           string // id of a call; unique in the message
}

// part returns the block as a part of a message.
func (b *block) part() recall.Part {
	switch b.of.Type {
	case "text":
		return recall.Part{Type: recall.Text, Text: b.text.String(), Extra: chat.BlockExtra(b.now(), "citations")}
	case "thinking":
		return recall.Part{Type: recall.Reasoning, Text: b.thinking.String(), Signature: b.signature.String(), Native: true}
	case "redacted_thinking":
		return recall.Part{Type: recall.RedactedReasoning, Data: string(b.of.Data)}
	case "tool_use":
		return recall.Part{Type: recall.ToolCall, CallID: b.callID, Name: string(b.of.Name), Input: b.input.String(),
			Extra: chat.BlockExtra(b.raw, "caller")}
	}
	return chat.SealedBlock(b.now()) // output of Anthropic's own tools
}

// now returns the block with everything that deltas added. Without any it is byte for byte as it began.
func (b *block) now() json.RawMessage {
	added := map[string]any{}
	for name, piece := range map[string]struct{ began, is string }{"text": {string(b.of.Text), b.text.String()},
		"thinking": {string(b.of.Thinking), b.thinking.String()}, "signature": {string(b.of.Signature), b.signature.String()},
	} {
		if piece.is != piece.began {
			added[name] = piece.is
		}
	}
	if input := json.RawMessage(b.input.String()); json.Valid(input) {
		added["input"] = input
	}
	if len(b.citations) > 0 {
		var before []json.RawMessage
		_ = json.Unmarshal(b.of.Citations, &before) // none, or null
		added["citations"] = append(before, b.citations...)
	}
	if len(added) == 0 {
		return b.raw
	}
	return withFields(b.raw, added)
}

// withFields sets fields of a JSON object. Existing fields keep their order; new ones come last.
func withFields(raw json.RawMessage, values map[string]any) json.RawMessage {
	var out bytes.Buffer
	field := func(name string, value any) {
		if out.Len() > 0 {
			out.WriteByte(',')
		}
		out.Write(chat.Encode(name))
		out.WriteByte(':')
		out.Write(chat.Encode(value))
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	_, _ = decoder.Token() // it was parsed before
	for decoder.More() {
		var value json.RawMessage
		name, _ := decoder.Token()
		_ = decoder.Decode(&value)
		text, _ := name.(string)
		if other, is := values[text]; is {
			field(text, other)
			delete(values, text)
			continue
		}
		field(text, value)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		field(name, values[name])
	}
	return json.RawMessage("{" + out.String() + "}")
}

// anthropicUsage is a stream's count of tokens. The last event repeats counts of the first.
type anthropicUsage struct {
	Input      tokens `json:"input_tokens"`
	Cached     tokens `json:"cache_read_input_tokens"`
	CacheWrite tokens `json:"cache_creation_input_tokens"`
	Output     tokens `json:"output_tokens"`
	impossible bool
}

// add adds the counts in an event.
func (u *anthropicUsage) add(raw json.RawMessage) {
	if len(raw) > 0 && json.Unmarshal(raw, u) != nil {
		u.impossible = true
	}
}

// total returns the token counts; zero counts if one of them is impossible.
func (u *anthropicUsage) total() Usage {
	prompt := u.Input + u.Cached + u.CacheWrite
	if u.impossible || prompt > maxTokens {
		return Usage{}
	}
	return Usage{Prompt: int(prompt), Completion: int(u.Output), Cached: int(u.Cached), CacheWrite: int(u.CacheWrite)}
}

// oneLine returns JSON without white space between its tokens.
func oneLine(raw json.RawMessage) []byte {
	var compact bytes.Buffer
	_ = json.Compact(&compact, raw) // it was parsed before, or is empty
	return compact.Bytes()
}
