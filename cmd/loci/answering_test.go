package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/metrics"
)

// A handle gets the provider that it names. Without settings for that provider, no other one is asked.
func TestAHandleHasTheProviderThatItNames(t *testing.T) {
	t.Parallel()
	chat := language{BaseURL: "http://127.0.0.1:1/v1", Model: "m"}
	for _, c := range []struct {
		name     string
		serve    serving
		handle   string
		provider string // empty if there is no model
		model    string
	}{
		{"OpenAI's", serving{language: chat}, "openai/gpt-4o", "openai", "gpt-4o"},
		{"another's behind the endpoint", serving{language: chat}, "acme/large", "openai", "large"},
		{"none", serving{language: chat}, "", "openai", "m"},
		{"Anthropic's without its key", serving{language: chat}, "anthropic/claude", "openai", "anthropic/claude"},
		{"one of an upstream", serving{language: chat, upstreams: upstreams{Upstreams: `[{"name":"local","url":"http://l/v1"},
			{"name":"claudes","api":"anthropic","url":"http://c"}]`}}, "claudes/opus", "anthropic", "opus"},
		{"Anthropic's", serving{language: chat, anthropic: anthropic{AnthropicKey: "k"}}, "anthropic/claude", "anthropic",
			"claude"},
		{"OpenAI's without an endpoint", serving{anthropic: anthropic{AnthropicKey: "k"}}, "openai/gpt-4o", "", ""},
	} {
		models, err := c.serve.answering(metrics.New(""))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		got, err := models(c.handle)
		switch {
		case c.provider == "" && (!errors.Is(err, loop.ErrNoModel) || !strings.Contains(err.Error(), c.handle)):
			t.Errorf("%s: got %q (%v), want no model for %s", c.name, got.Name, err, c.handle)
		case c.provider != "" && (err != nil || got.Provider() != c.provider || got.Name != c.model):
			t.Errorf("%s: got %s of %s (%v), want %s of %s", c.name, got.Name, got.Provider(), err, c.model, c.provider)
		}
	}
}

// hangingModel answers when its context ends, and reports the organization of each request.
type hangingModel struct {
	model.Client
	asked chan db.Org
}

func (h *hangingModel) Answer(ctx context.Context, _ model.Request, _ func(model.Delta)) (model.Answer, error) {
	h.asked <- db.OrgOf(ctx)
	<-ctx.Done()
	return model.Answer{}, ctx.Err()
}

func (h *hangingModel) Complete(ctx context.Context, _ summary.Request) (summary.Reply, error) {
	h.asked <- db.OrgOf(ctx)
	<-ctx.Done()
	return summary.Reply{}, ctx.Err()
}

// hangingSummarizer is a hangingModel that writes summaries.
type hangingSummarizer struct {
	summary.Summarizer
	*hangingModel
}

func (h hangingSummarizer) Complete(ctx context.Context, r summary.Request) (summary.Reply, error) {
	return h.hangingModel.Complete(ctx, r)
}

// If the model calls of an organization hang, they take up only the organization's share, and do not block others.
func TestHangingModelsOfOneOrganizationHoldNoOtherUp(t *testing.T) {
	t.Parallel()
	const total, reserve = 8, 2
	for name, ask := range map[string]func(h *hangingModel, calls *db.Shares) func(context.Context){
		"answers": func(h *hangingModel, calls *db.Shares) func(context.Context) {
			shared := &sharedModel{h, calls, metrics.New("")}
			return func(ctx context.Context) { _, _ = shared.Answer(ctx, model.Request{}, nil) }
		},
		"summaries": func(h *hangingModel, calls *db.Shares) func(context.Context) {
			shared := &sharedSummarizer{hangingSummarizer{nil, h}, calls, metrics.New("")}
			return func(ctx context.Context) { _, _ = shared.Complete(ctx, summary.Request{}) }
		},
	} {
		h := &hangingModel{asked: make(chan db.Org, 100)}
		call := ask(h, db.NewShares(total, reserve))
		ctx, cancel := context.WithCancel(t.Context())
		var calling sync.WaitGroup
		for range 3 * total {
			calling.Go(func() { call(db.WithOrg(ctx, 1)) })
		}
		for range total - reserve {
			<-h.asked
		}
		calling.Go(func() { call(db.WithOrg(ctx, 2)) })
		if org := <-h.asked; org != 2 {
			t.Errorf("%s: organization %d asks beyond its share", name, org)
		}
		cancel()
		calling.Wait()
	}
}
