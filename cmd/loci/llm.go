package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/loci-memory/loci/compaction/llm"
	"github.com/loci-memory/loci/compaction/store"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/metrics"
)

// language holds the settings of the language model that writes summaries. Without a base URL, summaries are extracted.
type language struct {
	BaseURL string `name:"llm-base-url" env:"LOCI_LLM_BASE_URL" help:"OpenAI-compatible model of agents and summaries."`
	Key     secret `name:"llm-api-key" env:"LOCI_LLM_API_KEY" help:"Key of the chat endpoint, if it asks for one."`
	Model   string `name:"llm-model" env:"LOCI_LLM_MODEL" help:"Model for agents that name none."`
	Window  int    `name:"llm-context-window" env:"LOCI_LLM_CONTEXT_WINDOW" help:"Window of this model, in tokens."`

	TurnPatience  time.Duration `name:"turn-patience" env:"LOCI_TURN_PATIENCE" default:"45s" help:"How long a message to an agent at work waits for its turn; 0: it is refused."`                                                 //nolint:lll // a tag is one line
	LimitPatience time.Duration `name:"llm-limit-patience" env:"LOCI_LLM_LIMIT_PATIENCE" default:"3s" help:"How long agents' models are asked again after a 429, however often. A longer Retry-After ends the attempts at once."` //nolint:lll // a tag is one line

	MaxAnswerBytes int64 `name:"llm-max-answer-bytes" env:"LOCI_LLM_MAX_ANSWER_BYTES" default:"8388608" help:"Largest answer of a language model, in bytes."` //nolint:lll // likewise

	// Shorter than the time limit of a request that makes a summary.
	SummaryPatience time.Duration `hidden:"" default:"150s" help:"How long models may take for one summary."`
}

// extracted returns a function that logs that a summary was extracted, because the model did not write it.
func extracted(log *slog.Logger) func(context.Context, store.Compaction, string) {
	return func(ctx context.Context, c store.Compaction, detail string) {
		log.WarnContext(ctx, "a summary was extracted, because the language model did not write it",
			"agent", c.AgentID, "compaction", c.ID, "model_calls", c.ModelCalls, "why", *c.Why, "detail", detail)
	}
}

// maxSummaries is how many summaries may be requested from models at the same time.
const maxSummaries = 16

// sharedSummarizer divides the concurrent model calls for summaries among organizations.
type sharedSummarizer struct {
	summary.Summarizer
	calls  *db.Shares
	counts *metrics.Metrics
}

// Complete implements summary.Summarizer. It waits until the organization may make another call.
func (s *sharedSummarizer) Complete(ctx context.Context, r summary.Request) (summary.Reply, error) {
	org := db.OrgOf(ctx)
	if err := s.calls.Take(ctx, org, 1); err != nil {
		return summary.Reply{}, &summary.NotAsked{Err: err}
	}
	defer s.calls.Give(org, 1)
	ctx, span := startSpan(ctx, "model summary")
	start := time.Now()
	reply, err := s.Summarizer.Complete(ctx, r)
	endSpan(span, err)
	s.counts.ModelCall("summary", err, reply.PromptTokens, reply.OutputTokens, time.Since(start))
	return reply, err
}

// models checks the settings, and returns a function that maps a handle to its model. It returns nil without a base
// URL.
func (c language) models(counts *metrics.Metrics) (func(context.Context, string) *summary.Model, error) {
	if c.BaseURL == "" {
		if c.Model != "" || c.Key != "" || c.Window != 0 {
			return nil, settingError{errors.New("LOCI_LLM_MODEL, _API_KEY or _CONTEXT_WINDOW is set without " +
				"LOCI_LLM_BASE_URL: set the URL of the endpoint, such as http://localhost:11434/v1, or none of them")}
		}
		return nil, nil
	}
	client, err := llm.New(llm.Config{BaseURL: c.BaseURL, APIKey: string(c.Key), Model: c.Model, Window: c.Window,
		MaxAnswerBytes: c.MaxAnswerBytes})
	if err != nil {
		return nil, settingError{err}
	}
	shared := &sharedSummarizer{Summarizer: client, calls: db.NewShares(maxSummaries, maxSummaries/4),
		counts: counts}
	return func(_ context.Context, handle string) *summary.Model {
		name := handle[strings.IndexByte(handle, '/')+1:]
		m := &summary.Model{Summarizer: shared, Name: name, Patience: c.SummaryPatience, List: client.Models}
		if m.Name == "" || m.Name == client.Model() {
			m.Name, m.Window = client.Model(), client.Window()
		}
		return m
	}, nil
}

// anthropic holds the settings of Anthropic's API, which serves agents with anthropic/ handles.
type anthropic struct {
	AnthropicKey secret `name:"anthropic-api-key" env:"LOCI_ANTHROPIC_API_KEY" help:"Key of Anthropic's API for agents."`
	AnthropicURL string `name:"anthropic-base-url" env:"LOCI_ANTHROPIC_BASE_URL" help:"Its address, if another."`
}
