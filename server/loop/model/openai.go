package model

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sashabaranov/go-openai"

	"github.com/loci-memory/loci/compaction/llm"
	"github.com/loci-memory/loci/embed/provider"
	"github.com/loci-memory/loci/recall"
)

// maxAnswerBytes bounds an answer. Models write at most some 128,000 tokens, each in an event of its own.
const maxAnswerBytes = 128 << 20

// Config says where a model is.
type Config struct {
	BaseURL string // up to and without /chat/completions or /v1/messages; empty means the provider's own
	APIKey  string // empty if the server needs none
	Model   string // default for requests that name none

	Attempts   int           // of a request until its answer begins; 0 means 3
	Timeout    time.Duration // for the answer's beginning, and between two of its pieces; 0 means 3 min
	FirstPause time.Duration // before the second attempt; 0 means 500 ms
}

func (c Config) endpoint(setting string) *provider.Endpoint {
	return &provider.Endpoint{Kind: "language model", Setting: setting, Answers: "a streamed answer",
		BaseURL: c.BaseURL, APIKey: c.APIKey, Model: c.Model, Attempts: cmp.Or(c.Attempts, 3),
		Timeout: cmp.Or(c.Timeout, 3*time.Minute), FirstPause: c.FirstPause, MaxAnswerBytes: maxAnswerBytes, Streams: true,
		Refuses: func(status int, body string) bool { return llm.IsOverflow(status, []byte(body)) }}
}

// OpenAI is a Client of an endpoint that speaks OpenAI's POST /chat/completions.
type OpenAI struct {
	at     *provider.Endpoint
	client *openai.Client
}

// NewOpenAI checks the configuration without sending a request. An error names the setting to change.
func NewOpenAI(c Config) (*OpenAI, error) {
	at := c.endpoint("LOCI_LLM")
	at.HTTP = &http.Client{Transport: exactBody{http.DefaultTransport}}
	client, err := at.Client()
	return &OpenAI{at, client}, err
}

// Format implements Client.
func (o *OpenAI) Format() string { return FormatOpenAI }

// Address implements Client.
func (o *OpenAI) Address() string { return o.at.BaseURL }

type contextKey int

// keyBody is the key of a request's body in its context.
const keyBody contextKey = iota

// exactBody sends the body in a request's context in place of the one that go-openai wrote, because a provider's cache
// needs the same bytes each time, and because go-openai leaves fields out that it does not know.
type exactBody struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t exactBody) RoundTrip(r *http.Request) (*http.Response, error) {
	if exact, ok := r.Context().Value(keyBody).(json.RawMessage); ok && r.Body != nil {
		_ = r.Body.Close() // it is in memory
		r = r.Clone(r.Context())
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(exact)), int64(len(exact))
	}
	return t.next.RoundTrip(r)
}

// Answer implements Client.
func (o *OpenAI) Answer(ctx context.Context, r Request, show func(Delta)) (Answer, error) {
	at := *o.at
	at.Model = cmp.Or(r.Model, at.Model)
	over := map[string]any{"model": at.Model, "stream": true, "stream_options": map[string]bool{"include_usage": true}}
	switch {
	case r.Tool != "":
		over["tool_choice"] = map[string]any{"type": "function", "function": map[string]string{"name": r.Tool}}
	case r.Must:
		over["tool_choice"] = "required"
	}
	exact, err := body(r.Prompt, over)
	if err != nil {
		return Answer{}, err
	}
	ctx = context.WithValue(ctx, keyBody, exact)
	stream, err := o.client.CreateChatCompletionStream(ctx, openai.ChatCompletionRequest{Model: "model"})
	if err != nil {
		return Answer{}, faultOf(ctx, &at, err)
	}
	defer stream.Close()
	read := openAIReader{show: show}
	for {
		raw, err := stream.RecvRaw()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = read.chunk(ctx, &at, raw)
		}
		if err != nil {
			return Answer{}, faultOf(ctx, &at, err)
		}
	}
	return read.answer(ctx, &at)
}

// faultOf returns the fault of a request that failed, or the error of ctx.
func faultOf(ctx context.Context, at *provider.Endpoint, err error) error {
	if isFault(err) {
		return err
	}
	status, reason := at.Answered(err)
	return newFault(ctx, at, reply{status, reason, err})
}

// reply is a provider's error.
type reply struct {
	status int
	reason string // its words, cleaned; empty if there are none
	err    error  // as provider.Endpoint explains it
}

func newFault(ctx context.Context, at *provider.Endpoint, r reply) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f := &Fault{Kind: Failed, Err: at.Explain(ctx, r.err)}
	switch {
	case llm.IsOverflow(r.status, []byte(r.reason)):
		f.Kind = Overflow
	case r.status == http.StatusPaymentRequired || strings.Contains(r.reason, "insufficient_quota") ||
		strings.Contains(r.reason, "credit balance") || strings.Contains(r.reason, "exceeded your current quota"):
		f.Kind = Credits
	case r.status == 0: // the stream broke off
		f.Again = !errors.Is(r.err, context.DeadlineExceeded)
	}
	return f
}

// chunk is what is read of an event of the stream.
type chunk struct {
	Choices []struct {
		Index        int             `json:"index"`
		FinishReason string          `json:"finish_reason"`
		Error        json.RawMessage `json:"error"`
		Delta        struct {
			Content   string            `json:"content"`
			Refusal   string            `json:"refusal"`
			Thought   string            `json:"reasoning_content"`
			Reasoning json.RawMessage   `json:"reasoning"` // of some endpoints a text, of others an object
			Calls     []openai.ToolCall `json:"tool_calls"`
		} `json:"delta"`
	} `json:"choices"`
	Usage json.RawMessage `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// openAIReader joins the events of a stream to an answer.
type openAIReader struct {
	show          func(Delta)
	thought, said strings.Builder
	calls         []*call
	refused       bool
	finish        string
	usage         Usage
}

// call is a call whose arguments arrive piece by piece.
type call struct {
	index    int
	given    string // the provider's id; empty before it is known
	id, name string // id is unique in the answer
	input    strings.Builder
}

func (o *openAIReader) chunk(ctx context.Context, at *provider.Endpoint, raw []byte) error {
	var c chunk
	if err := json.Unmarshal(raw, &c); err != nil {
		return broken(at, "with a stream whose events are no JSON")
	}
	if u, ok := openAIUsage(c.Usage); ok {
		o.usage = u
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return streamFault(ctx, at, c.Error)
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue
		}
		if len(choice.Error) > 0 && string(choice.Error) != "null" {
			return streamFault(ctx, at, choice.Error)
		}
		d := choice.Delta
		o.add(recall.Reasoning, &o.thought, cmp.Or(d.Thought, textOf(d.Reasoning)))
		o.add(recall.Text, &o.said, d.Content)
		o.add(recall.Text, &o.said, d.Refusal)
		o.refused = o.refused || d.Refusal != ""
		for _, piece := range d.Calls {
			o.call(piece)
		}
		o.finish = cmp.Or(choice.FinishReason, o.finish)
	}
	return nil
}

// streamFault returns the fault of an error within a stream.
func streamFault(ctx context.Context, at *provider.Endpoint, raw json.RawMessage) error {
	var said struct {
		Message string `json:"message"`
		Code    any    `json:"code"`
	}
	_ = json.Unmarshal(raw, &said) // an error that is a text has no fields
	status := http.StatusInternalServerError
	if code, ok := said.Code.(float64); ok && code >= http.StatusBadRequest && code < 600 {
		status = int(code)
	}
	return newFault(ctx, at, reply{status, string(raw), &openai.APIError{HTTPStatusCode: status,
		Message: cmp.Or(said.Message, string(raw))}})
}

// textOf returns a JSON text, empty for any other JSON.
func textOf(raw json.RawMessage) (text string) {
	_ = json.Unmarshal(raw, &text)
	return text
}

// openAIUsage reads a provider's counts; false if it has none, or if one is impossible.
func openAIUsage(raw json.RawMessage) (Usage, bool) {
	var u struct {
		Prompt     tokens `json:"prompt_tokens"`
		Completion tokens `json:"completion_tokens"`
		OfPrompt   struct {
			Cached tokens `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		OfCompletion struct {
			Reasoning tokens `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	}
	if len(raw) == 0 || string(raw) == "null" || json.Unmarshal(raw, &u) != nil {
		return Usage{}, false
	}
	return Usage{Prompt: int(u.Prompt), Completion: int(u.Completion), Cached: int(u.OfPrompt.Cached),
		Reasoning: int(u.OfCompletion.Reasoning)}, true
}

// add adds a piece of a text and shows it.
func (o *openAIReader) add(kind recall.PartType, to *strings.Builder, piece string) {
	if piece != "" {
		to.WriteString(piece)
		o.show(Delta{Kind: kind, Text: piece})
	}
}

// call adds a piece of a call and shows it under the id that the call keeps.
func (o *openAIReader) call(piece openai.ToolCall) {
	at := o.callOf(piece)
	if at == nil {
		at = &call{index: len(o.calls), given: piece.ID, id: piece.ID}
		if piece.Index != nil {
			at.index = *piece.Index
		}
		if at.id == "" || slices.ContainsFunc(o.calls, func(c *call) bool { return c.id == at.id }) {
			at.id = newCallID()
		}
		o.calls = append(o.calls, at)
	}
	at.given, at.name = cmp.Or(at.given, piece.ID), cmp.Or(at.name, piece.Function.Name)
	at.input.WriteString(piece.Function.Arguments)
	o.show(Delta{Kind: recall.ToolCall, CallID: at.id, Name: piece.Function.Name, Text: piece.Function.Arguments})
}

// callOf returns the call that a piece goes on with; nil if it begins one. A piece without an index, which some
// endpoints send, begins a call if it has an id or a name. So does one with the index of another call and an id and a
// name of its own: some endpoints give all calls the index 0.
func (o *openAIReader) callOf(piece openai.ToolCall) *call {
	for _, c := range slices.Backward(o.calls) {
		switch {
		case piece.Index == nil && (piece.ID != "" || piece.Function.Name != ""):
			return nil
		case piece.Index == nil:
			return c
		case c.index != *piece.Index:
		case piece.Function.Name != "" && piece.ID != "" && c.given != "" && piece.ID != c.given:
			return nil
		default:
			return c
		}
	}
	return nil
}

// answer returns the whole answer. An answer without a reason for its end broke off.
func (o *openAIReader) answer(ctx context.Context, at *provider.Endpoint) (Answer, error) {
	if o.finish == "" {
		if ctx.Err() != nil {
			return Answer{}, ctx.Err()
		}
		return Answer{}, &Fault{Kind: Failed, Again: true, Err: at.Wrong("with a stream that ends before the answer does")}
	}
	a := Answer{Finish: Stop, Usage: o.usage}
	switch {
	case o.finish == "length":
		a.Finish = Length
	case o.finish == "content_filter" || o.refused:
		a.Finish = Refused
	}
	if o.thought.Len() > 0 {
		a.Content = append(a.Content, recall.Part{Type: recall.Reasoning, Text: o.thought.String(), Native: true})
	}
	if o.said.Len() > 0 {
		a.Content = append(a.Content, recall.Part{Type: recall.Text, Text: o.said.String()})
	}
	for _, c := range o.calls {
		a.Content = append(a.Content,
			recall.Part{Type: recall.ToolCall, CallID: c.id, Name: c.name, Input: cmp.Or(c.input.String(), "{}")})
	}
	return finish(at, a)
}
