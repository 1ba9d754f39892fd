package model

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/loci-memory/loci/compaction/llm"
	"github.com/loci-memory/loci/embed/provider"
)

// DefaultMaxAnswerBytes bounds an answer. Models write at most about 128,000 tokens.
const DefaultMaxAnswerBytes = 8 << 20

// Config says where a model is.
type Config struct {
	BaseURL string        // without /chat/completions or /v1/messages; empty means the provider's own
	APIKey  string        // empty if the server needs none
	Model   string        // the default for requests without one
	Timeout time.Duration // until the answer begins, and between two pieces; 0 means 3 min

	MaxAnswerBytes int64 // of an answer; 0 means DefaultMaxAnswerBytes
}

// endpoint returns the endpoint. It sends each request once; the caller decides whether to ask again.
func (c Config) endpoint(setting string) *provider.Endpoint {
	return &provider.Endpoint{Kind: "language model", Setting: setting, Answers: "a streamed answer",
		BaseURL: c.BaseURL, APIKey: c.APIKey, Model: c.Model, Attempts: 1,
		Timeout: cmp.Or(c.Timeout, 3*time.Minute), Streams: true,
		MaxAnswerBytes: cmp.Or(c.MaxAnswerBytes, DefaultMaxAnswerBytes),
		Refuses:        func(status int, body string) bool { return llm.IsOverflow(status, []byte(body)) }}
}

// OpenAI is a Client for endpoints with OpenAI's POST /chat/completions. It also accepts the answers of similar
// servers: vLLM, llama.cpp, Ollama, LM Studio, LiteLLM, Azure, Mistral and Gemini.
type OpenAI struct {
	at     *provider.Endpoint
	client *http.Client

	noKey atomic.Bool // the endpoint refuses the field prompt_cache_key
}

// cacheKey is the field by which OpenAI sends the prompts of a conversation to the same cache. Some servers refuse it.
const cacheKey = "prompt_cache_key"

// NewOpenAI checks the configuration without sending a request. An error names the setting to change.
func NewOpenAI(c Config) (*OpenAI, error) {
	at := c.endpoint("LOCI_LLM")
	if _, err := at.Client(); err != nil {
		return nil, err
	}
	return &OpenAI{at: at, client: at.HTTPClient()}, nil
}

// Format implements Client.
func (o *OpenAI) Format() string { return FormatOpenAI }

// Address implements Client.
func (o *OpenAI) Address() string { return o.at.BaseURL }

// Answer implements Client.
func (o *OpenAI) Answer(ctx context.Context, r Request, show func(Delta)) (Answer, error) {
	endpoint := *o.at
	endpoint.Model = cmp.Or(r.Model, endpoint.Model)
	over := map[string]any{"model": endpoint.Model, "stream": true,
		"stream_options": map[string]bool{"include_usage": true}}
	switch {
	case r.Tool != "":
		over["tool_choice"] = map[string]any{"type": "function", "function": map[string]string{"name": r.Tool}}
	case r.Must:
		over["tool_choice"] = "required"
	}
	stream, err := o.post(ctx, &endpoint, r.Prompt, over)
	if err != nil {
		return Answer{}, err
	}
	defer stream.Close()
	return readOpenAI(ctx, &endpoint, stream, show)
}

// post sends a prompt with some of its fields replaced, and returns the body of a good answer. If the endpoint refuses
// the field prompt_cache_key, it sends this and later prompts without it.
func (o *OpenAI) post(ctx context.Context, endpoint *provider.Endpoint, prompt json.RawMessage, over map[string]any) (
	io.ReadCloser, error) {
	header := map[string]string{}
	if endpoint.APIKey != "" {
		header["Authorization"] = "Bearer " + endpoint.APIKey
	}
	for {
		without := o.noKey.Load()
		exact, err := body(prompt, over)
		if err == nil && without {
			exact, err = bodyWithout(exact, cacheKey)
		}
		if err != nil {
			return nil, err
		}
		stream, err := post(ctx, o.client, endpoint, posted{"/chat/completions", header, exact})
		f, isFault := errors.AsType[*Fault](err)
		if without || !isFault || f.Status != http.StatusBadRequest && f.Status != http.StatusUnprocessableEntity ||
			!strings.Contains(f.Words, cacheKey) {
			return stream, err
		}
		o.noKey.Store(true)
	}
}
