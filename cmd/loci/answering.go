package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/metrics"
)

// maxAnswers is how many answers may be requested from models at the same time.
const maxAnswers = 256

// sharedModel divides the concurrent model calls among organizations.
type sharedModel struct {
	model.Client
	calls  *db.Shares
	counts *metrics.Metrics
}

// Answer implements model.Client. It waits until the organization may make another call.
func (s *sharedModel) Answer(ctx context.Context, r model.Request, show func(model.Delta)) (model.Answer, error) {
	org := db.OrgOf(ctx)
	if err := s.calls.Take(ctx, org, 1); err != nil {
		return model.Answer{}, err
	}
	defer s.calls.Give(org, 1)
	ctx, span := startSpan(ctx, "model answer")
	start := time.Now()
	answer, err := s.Client.Answer(ctx, r, show)
	endSpan(span, err)
	s.counts.ModelCall("answer", err, answer.Usage.Prompt, answer.Usage.Completion, time.Since(start))
	return answer, err
}

// answering checks the settings, and returns a function that maps a handle to the model that answers agents. It returns
// nil if no model is configured.
func (c *serving) answering(counts *metrics.Metrics) (func(handle string) (loop.Model, error), error) {
	named, err := c.named()
	if err != nil {
		return nil, err
	}
	calls := db.NewShares(maxAnswers, maxAnswers/4)
	clients := map[string]model.Client{} // by the name of their upstream
	var chat model.Client                // for handles of other providers
	if l := c.language; l.BaseURL != "" {
		client, err := model.NewOpenAI(model.Config{BaseURL: l.BaseURL, APIKey: string(l.Key), Model: l.Model,
			MaxAnswerBytes: l.MaxAnswerBytes})
		if err != nil {
			return nil, settingError{err}
		}
		chat = &sharedModel{client, calls, counts}
	}
	if c.AnthropicKey != "" {
		named, err = named.With(model.Upstream{Name: model.FormatAnthropic, API: model.FormatAnthropic, URL: c.AnthropicURL,
			Key: string(c.AnthropicKey)})
		if err != nil {
			return nil, settingError{fmt.Errorf("LOCI_ANTHROPIC_BASE_URL: %w", err)}
		}
	}
	for _, u := range named {
		client, err := u.Client(c.language.Model, c.MaxAnswerBytes)
		if err != nil {
			return nil, settingError{err}
		}
		clients[u.Name] = &sharedModel{client, calls, counts}
		if chat == nil && u.API == model.FormatOpenAI {
			chat = clients[u.Name]
		}
	}
	if chat == nil && len(clients) == 0 {
		return nil, nil
	}
	return func(handle string) (loop.Model, error) {
		provider, name, hasProvider := strings.Cut(handle, "/")
		if !hasProvider {
			name = handle
		}
		client := chat
		switch {
		case hasProvider && clients[provider] != nil:
			client = clients[provider]
		case hasProvider && provider == model.FormatAnthropic && chat != nil: // such endpoints know it by the whole handle
			name = handle
		}
		if client == nil {
			return loop.Model{}, fmt.Errorf("%w for the handle %q", loop.ErrNoModel, handle)
		}
		return loop.Model{Client: client, Name: cmp.Or(name, c.language.Model)}, nil
	}, nil
}
