package model

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/loci-memory/loci/embed/provider"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

const (
	anthropicURL = "https://api.anthropic.com"

	// defaultMaxTokens bounds the answer to a prompt that names no bound, which Anthropic requires.
	defaultMaxTokens = 8192
)

// Anthropic is a Client of Anthropic's POST /v1/messages.
type Anthropic struct {
	at     *provider.Endpoint
	client anthropic.Client
}

// NewAnthropic checks the configuration without sending a request. An error names the setting to change.
func NewAnthropic(c Config) (*Anthropic, error) {
	c.BaseURL, c.Model = cmp.Or(c.BaseURL, anthropicURL), cmp.Or(c.Model, "claude")
	at := c.endpoint("LOCI_ANTHROPIC")
	if _, err := at.Client(); err != nil {
		return nil, err
	}
	return &Anthropic{at, anthropic.NewClient(option.WithoutEnvironmentDefaults(), option.WithAPIKey(c.APIKey),
		option.WithBaseURL(strings.TrimRight(at.BaseURL, "/")+"/"), option.WithMaxRetries(0),
		option.WithMiddleware(streamed(at.MaxAnswerBytes)),
		option.WithHTTPClient(at.HTTPClient()))}, nil
}

// Format implements Client.
func (a *Anthropic) Format() string { return FormatAnthropic }

// Address implements Client.
func (a *Anthropic) Address() string { return a.at.BaseURL }

// Answer implements Client.
func (a *Anthropic) Answer(ctx context.Context, r Request, show func(Delta)) (Answer, error) {
	at := *a.at
	at.Model = r.Model
	var given struct {
		MaxTokens int `json:"max_tokens"`
		Thinking  struct {
			Type string `json:"type"`
		} `json:"thinking"`
	}
	if err := json.Unmarshal(r.Prompt, &given); err != nil {
		return Answer{}, err
	}
	over := map[string]any{"model": r.Model, "max_tokens": cmp.Or(given.MaxTokens, defaultMaxTokens)}
	thinks := given.Thinking.Type != "" && given.Thinking.Type != "disabled"
	switch { // a model that thinks cannot be made to call a tool
	case thinks:
	case r.Tool != "":
		over["tool_choice"] = map[string]string{"type": "tool", "name": r.Tool}
	case r.Must:
		over["tool_choice"] = map[string]string{"type": "any"}
	}
	exact, err := body(r.Prompt, over)
	if err != nil {
		return Answer{}, err
	}
	var after time.Duration
	stream := a.client.Messages.NewStreaming(provider.WithRetryAfter(ctx, &after), anthropic.MessageNewParams{},
		option.WithRequestBody("application/json", []byte(exact)))
	defer stream.Close()
	var message anthropic.Message
	calls := blockCalls{}
	var usage anthropicUsage
	var bytes int64
	for stream.Next() {
		event := stream.Current()
		usage.add(event)
		if bytes += saidBytes(event); bytes > at.MaxAnswerBytes {
			return Answer{}, faultOf(ctx, &at, provider.ErrTooBig)
		}
		if err := message.Accumulate(event); err != nil {
			return Answer{}, broken(&at, "with a stream whose events have no order")
		}
		if d, ok := anthropicDelta(message, event); ok {
			if d.Kind == recall.ToolCall {
				d.CallID = calls.add(event.Index, d)
			}
			if len(calls) > maxCalls {
				return Answer{}, tooManyCalls(&at)
			}
			show(d)
		}
	}
	if err := stream.Err(); err != nil {
		return Answer{}, anthropicFault(ctx, &at, after, err)
	}
	if message.StopReason == "" {
		return Answer{}, cut(ctx, &at)
	}
	answer := anthropicAnswer(message, calls)
	answer.Usage = usage.total()
	return finish(&at, answer)
}

// saidBytes returns the bytes of what an event adds to an answer.
func saidBytes(e anthropic.MessageStreamEventUnion) int64 {
	switch e.Type {
	case "content_block_delta":
		return int64(len(e.Delta.Text) + len(e.Delta.Thinking) + len(e.Delta.PartialJSON) + len(e.Delta.Signature))
	case "content_block_start":
		return int64(len(e.RawJSON()))
	}
	return 0
}

// anthropicUsage is what a stream says of its tokens. Its last event repeats counts of the first.
type anthropicUsage struct {
	Input      tokens `json:"input_tokens"`
	Cached     tokens `json:"cache_read_input_tokens"`
	CacheWrite tokens `json:"cache_creation_input_tokens"`
	Output     tokens `json:"output_tokens"`
	impossible bool
}

// add adds the counts of an event.
func (u *anthropicUsage) add(e anthropic.MessageStreamEventUnion) {
	var of struct {
		Usage   json.RawMessage `json:"usage"`
		Message struct {
			Usage json.RawMessage `json:"usage"`
		} `json:"message"`
	}
	if e.Type != "message_start" && e.Type != "message_delta" || json.Unmarshal([]byte(e.RawJSON()), &of) != nil {
		return
	}
	for _, raw := range []json.RawMessage{of.Message.Usage, of.Usage} {
		if len(raw) > 0 && json.Unmarshal(raw, u) != nil {
			u.impossible = true
		}
	}
}

// total returns the counts; none if one of them is impossible.
func (u *anthropicUsage) total() Usage {
	prompt := u.Input + u.Cached + u.CacheWrite
	if u.impossible || prompt > maxTokens {
		return Usage{}
	}
	return Usage{Prompt: int(prompt), Completion: int(u.Output), Cached: int(u.Cached), CacheWrite: int(u.CacheWrite)}
}

// anthropicFault returns the fault of a request that failed, or the error of ctx.
func anthropicFault(ctx context.Context, at *provider.Endpoint, after time.Duration, err error) error {
	failed, ok := errors.AsType[*anthropic.Error](err)
	if !ok {
		return faultOf(ctx, at, err)
	}
	r := reply{status: failed.StatusCode, body: []byte(failed.RawJSON()), after: after}
	if r.status < http.StatusBadRequest { // the error came within the stream
		r.status = 0
	}
	return r.fault(ctx, at)
}

// anthropicDelta returns what an event adds to a message; false if it adds nothing that is shown.
func anthropicDelta(m anthropic.Message, e anthropic.MessageStreamEventUnion) (Delta, bool) {
	switch e.Type {
	case "content_block_start":
		if b := m.Content[e.Index]; b.Type == "tool_use" {
			return Delta{Kind: recall.ToolCall, CallID: b.ID, Name: b.Name}, true
		}
		return Delta{Kind: recall.Text, Text: m.Content[e.Index].Text}, m.Content[e.Index].Text != ""
	case "content_block_delta":
		switch d := e.Delta; d.Type {
		case "text_delta":
			return Delta{Kind: recall.Text, Text: d.Text}, true
		case "thinking_delta":
			return Delta{Kind: recall.Reasoning, Text: d.Thinking}, true
		case "input_json_delta":
			b := m.Content[e.Index] // the input of Anthropic's own tools is not shown
			return Delta{Kind: recall.ToolCall, CallID: b.ID, Text: d.PartialJSON}, d.PartialJSON != "" && b.Type == "tool_use"
		}
	}
	return Delta{}, false
}

// blockCalls are the calls of an answer, by the indices of their blocks. The message has their inputs only if they are
// JSON.
type blockCalls map[int64]*call

// add adds a piece of the call of a block, and returns the id that the call keeps.
func (b blockCalls) add(index int64, d Delta) string {
	c := b[index]
	if c == nil {
		c = &call{id: cmp.Or(d.CallID, newCallID())}
		for _, other := range b {
			if other.id == c.id {
				c.id = newCallID()
				break
			}
		}
		b[index] = c
	}
	c.input.WriteString(d.Text)
	return c.id
}

func anthropicAnswer(m anthropic.Message, calls blockCalls) Answer {
	a := Answer{Finish: Stop}
	switch m.StopReason {
	case anthropic.StopReasonMaxTokens, "model_context_window_exceeded":
		a.Finish = Length
	case anthropic.StopReasonPauseTurn:
		a.Finish = Paused
	case anthropic.StopReasonRefusal:
		a.Finish = Refused
	}
	for i, b := range m.Content {
		switch b.Type {
		case "text":
			a.Content = append(a.Content, recall.Part{Type: recall.Text, Text: b.Text,
				Extra: chat.BlockExtra(json.RawMessage(b.RawJSON()), "citations")})
		case "thinking":
			a.Content = append(a.Content,
				recall.Part{Type: recall.Reasoning, Text: b.Thinking, Signature: b.Signature, Native: true})
		case "redacted_thinking":
			a.Content = append(a.Content, recall.Part{Type: recall.RedactedReasoning, Data: b.Data})
		case "tool_use":
			c := calls[int64(i)]
			a.Content = append(a.Content, recall.Part{Type: recall.ToolCall, CallID: c.id, Name: b.Name,
				Input: c.input.String(), Extra: chat.BlockExtra(json.RawMessage(b.RawJSON()), "caller")})
		default: // what Anthropic's own tools did
			a.Content = append(a.Content, chat.SealedBlock(json.RawMessage(b.RawJSON())))
		}
	}
	return a
}
