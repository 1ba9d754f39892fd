// Package llm asks language models for summaries, at any endpoint with OpenAI's POST /chat/completions: OpenAI, Ollama,
// vLLM, llama.cpp, LM Studio, OpenRouter and others.
//
// Its files, in order: transport.go sends tools byte for byte and reads the original answer; overflow.go recognizes the
// answers to a request that is too large; models.go lists the models of the endpoint; fuse.go says whether a model may
// be asked; llm.go asks for a summary.
package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sashabaranov/go-openai"

	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/provider"
	"github.com/loci-memory/loci/recall/chat"
)

// maxAnswerBytes bounds an answer. Models write at most about 128,000 tokens.
const maxAnswerBytes = 8 << 20 // unless Config says otherwise

// Config says where the model is.
type Config struct {
	BaseURL string // without /chat/completions; empty means OpenAI's own
	APIKey  string // empty if the server needs none
	Model   string // the default for requests that name no model
	Window  int    // the model's context window in tokens; 0 if unknown

	HTTP     *http.Client  // nil means a new one; redirects are never followed, and its Timeout is ignored
	Attempts int           // attempts per request; 0 means 3
	Timeout  time.Duration // bound of one attempt; 0 means 3 min

	FirstPause time.Duration // pause before the second attempt; doubled before each further one; 0 means 500 ms

	MaxAnswerBytes int64 // 0 means 8 MiB
}

// Client is a summary.Summarizer. It is safe for concurrent use.
type Client struct {
	at     provider.Endpoint
	client *openai.Client
	window int
	// completion is set once the endpoint has asked for max_completion_tokens instead of max_tokens.
	completion atomic.Bool
	list       modelList
	fuses      sync.Map // fuseKey → *fuse
}

var _ summary.Summarizer = (*Client)(nil)

// New checks the configuration without sending a request. An error names the setting to change.
func New(c Config) (*Client, error) {
	if c.Window < 0 {
		return nil, fmt.Errorf("LOCI_LLM_CONTEXT_WINDOW is %d: set it to the tokens of the model's context window, or leave "+
			"it empty if that is unknown", c.Window)
	}
	base := *cmp.Or(c.HTTP, &http.Client{})
	most := cmp.Or(c.MaxAnswerBytes, maxAnswerBytes)
	base.Transport = &transport{next: base.Transport, most: most}
	llm := &Client{window: c.Window, at: provider.Endpoint{Kind: "language model", Setting: "LOCI_LLM",
		Answers: "a chat completion",
		BaseURL: c.BaseURL, APIKey: c.APIKey, Model: c.Model,
		HTTP: &base, Attempts: cmp.Or(c.Attempts, 3), Timeout: cmp.Or(c.Timeout, 3*time.Minute),
		MaxAnswerBytes: most,
		FirstPause:     c.FirstPause}}
	llm.at.Refuses = llm.overflows
	var err error
	llm.client, err = llm.at.Client()
	return llm, err
}

// Model returns the name of the default model.
func (c *Client) Model() string { return c.at.Model }

// Window returns the default model's context window in tokens; 0 if it is unknown.
func (c *Client) Window() int { return c.window }

// Complete implements summary.Summarizer. It returns a *summary.Overflow for a request that is too large, even if the
// provider cuts it without an error. A model that failed an organization three times in a row, or timed out once, gets
// none of its requests for five minutes. If its provider asks for a pause, it gets none for that time. Any other error,
// except ctx's, is a sentence for the operator that names the setting to check.
func (c *Client) Complete(ctx context.Context, r summary.Request) (summary.Reply, error) {
	r.Model = cmp.Or(r.Model, c.at.Model)
	endpoint := c.at
	endpoint.Model = r.Model // errors name it
	fuse := c.fuse(fuseKey{db.OrgOf(ctx), r.Model})
	if rest, last := fuse.blown(time.Now()); rest > 0 {
		return summary.Reply{}, notAsked(r.Model+" at "+endpoint.Host(), (rest + time.Second - 1).Truncate(time.Second), last)
	}
	answer, x, err := c.send(ctx, r)
	if c.wantsOtherLimit(r, x, err) {
		answer, x, err = c.send(ctx, r)
	}
	var told error
	if err != nil {
		told = c.explain(ctx, &endpoint, x, err)
	}
	ours := x.status == http.StatusBadRequest || x.status == http.StatusUnprocessableEntity ||
		errors.Is(err, context.Canceled) || c.overflows(x.status, x.words)
	fuse.record(outcome{err: err, status: x.status, after: x.after, ours: ours, now: time.Now()}, told)
	if told != nil {
		return summary.Reply{}, told
	}
	if len(answer.Choices) == 0 {
		return summary.Reply{}, endpoint.Wrong("without a choice")
	}
	reply := replyOf(answer)
	if reply.Text == "" && reply.Finish == string(openai.FinishReasonLength) {
		return reply, &summary.Overflow{Window: reply.PromptTokens + reply.OutputTokens, Sent: reply.PromptTokens,
			Told: r.Model + " ended for its length before a word was written"}
	}
	if cut(r, answer.Usage) {
		return reply, &summary.Overflow{Window: reply.PromptTokens, Counted: true,
			Told: fmt.Sprintf("%s read %d tokens of a longer request, and did not say so", r.Model, reply.PromptTokens)}
	}
	return reply, nil
}

// notAsked returns the error that a model is not asked, with the reason: its last failure.
func notAsked(model string, rest time.Duration, last error) error {
	public, all := "it did not answer", "it did not answer"
	if last != nil {
		all = last.Error()
	}
	if told, ok := errors.AsType[interface {
		error
		Public() string
	}](last); ok {
		public = told.Public()
	}
	return &summary.NotAsked{Err: provider.Told(
		fmt.Errorf("%s is not asked again for %v, because of its last answer: %s", model, rest, all),
		"the model is not asked again for %v, because of its last answer: %s", rest, public)}
}

// send sends a request once. The exchange holds the provider's answer.
func (c *Client) send(ctx context.Context, r summary.Request) (openai.ChatCompletionResponse, *exchange, error) {
	ask := openai.ChatCompletionRequest{Model: r.Model, Messages: messages(r.Messages), ReasoningEffort: r.Effort}
	if r.Temperature != nil && !reasons(r.Model) { // go-openai does not send a plain 0
		ask.Temperature = max(*r.Temperature, math.SmallestNonzeroFloat32)
	}
	if c.completion.Load() || reasons(r.Model) {
		ask.MaxCompletionTokens = r.MaxTokens
	} else {
		ask.MaxTokens = r.MaxTokens //nolint:staticcheck // most servers know no other
	}
	x := &exchange{tools: r.Tools, least: max(leastTokensOf(r), leastTokens)}
	ctx = provider.WithRetryAfter(context.WithValue(ctx, keyExchange, x), &x.after)
	answer, err := c.client.CreateChatCompletion(ctx, ask)
	return answer, x, err
}

// wantsOtherLimit reports whether an endpoint refuses max_tokens and asks for max_completion_tokens. It returns true
// only once, because later requests use the new name.
func (c *Client) wantsOtherLimit(r summary.Request, x *exchange, err error) bool {
	if err == nil || r.MaxTokens == 0 || c.completion.Load() {
		return false
	}
	asksForOther := x.status == http.StatusBadRequest && strings.Contains(x.words, "max_completion_tokens") &&
		!c.overflows(x.status, x.words)
	return (asksForOther || errors.Is(err, openai.ErrReasoningModelMaxTokensDeprecated)) &&
		c.completion.CompareAndSwap(false, true)
}

// reasons reports whether a model is one of OpenAI's reasoning models, which refuse max_tokens.
func reasons(model string) bool {
	for _, series := range []string{"o1", "o3", "o4", "gpt-5", "gpt-6"} {
		if strings.HasPrefix(model, series) {
			return true
		}
	}
	return false
}

func messages(turns []chat.Message) []openai.ChatCompletionMessage {
	all := make([]openai.ChatCompletionMessage, len(turns))
	for i, t := range turns {
		all[i] = openai.ChatCompletionMessage{Role: t.Role, Content: t.Content, ToolCallID: t.CallID}
		for _, call := range t.Calls {
			all[i].ToolCalls = append(all[i].ToolCalls, openai.ToolCall{ID: call.ID, Type: openai.ToolTypeFunction,
				Function: openai.FunctionCall{Name: call.Name, Arguments: call.Arguments}})
		}
	}
	return all
}

// replyOf returns the text of an answer, without reasoning and calls. If there is only a refusal, it returns that with
// the finish Refused.
func replyOf(answer openai.ChatCompletionResponse) summary.Reply {
	choice := answer.Choices[0]
	reply := summary.Reply{Text: choice.Message.Content, Finish: string(choice.FinishReason),
		PromptTokens: answer.Usage.PromptTokens, OutputTokens: answer.Usage.CompletionTokens}
	for _, part := range choice.Message.MultiContent {
		reply.Text += part.Text
	}
	reply.Text = strings.ToValidUTF8(strings.TrimSpace(reply.Text), "\uFFFD")
	if reply.Text == "" && choice.Message.Refusal != "" {
		reply.Text, reply.Finish = choice.Message.Refusal, summary.Refused
	}
	return reply
}

func (c *Client) explain(ctx context.Context, endpoint *provider.Endpoint, x *exchange, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	status, reason := endpoint.Answered(err)
	if o := overflow(status, x.words, c.window, x.least); o != nil {
		o.Reason = cmp.Or(reason, o.Reason)
		return o
	}
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		refused := fmt.Errorf("the language model provider at %s refuses the request (status %d: %s): check LOCI_LLM_MODEL "+
			"(%s) and LOCI_LLM_BASE_URL", endpoint.Host(), status, reason, endpoint.Model)
		return withWords(provider.Told(refused, "the language model provider refuses the request (status %d)", status),
			reason, endpoint.Model)
	case 0, http.StatusUnauthorized, http.StatusForbidden: // a message about the server's key is the operator's
		return endpoint.Explain(ctx, err)
	}
	return withWords(endpoint.Explain(ctx, err), reason, endpoint.Model)
}

// withWords returns an error with the plain words of the provider's message behind what organizations read.
func withWords(err error, message, model string) error {
	words := provider.Plain(message, model)
	if words == "" {
		return err
	}
	return provider.Told(err, "%s: %s", provider.Public(err), words)
}
