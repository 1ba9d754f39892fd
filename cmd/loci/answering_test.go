package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/loci-memory/loci/server/loop"
)

// A handle has the provider that it names: without the settings of that provider no other one is asked.
func TestAHandleHasTheProviderThatItNames(t *testing.T) {
	t.Parallel()
	chat := language{BaseURL: "http://127.0.0.1:1/v1", Model: "m"}
	for _, c := range []struct {
		name     string
		serve    serveCmd
		handle   string
		provider string // empty: no model
		model    string
	}{
		{"OpenAI's", serveCmd{language: chat}, "openai/gpt-4o", "openai", "gpt-4o"},
		{"another's behind the endpoint", serveCmd{language: chat}, "acme/large", "openai", "large"},
		{"none", serveCmd{language: chat}, "", "openai", "m"},
		{"Anthropic's without its key", serveCmd{language: chat}, "anthropic/claude", "", ""},
		{"Anthropic's", serveCmd{language: chat, anthropic: anthropic{AnthropicKey: "k"}}, "anthropic/claude", "anthropic",
			"claude"},
		{"OpenAI's without an endpoint", serveCmd{anthropic: anthropic{AnthropicKey: "k"}}, "openai/gpt-4o", "", ""},
	} {
		models, err := c.serve.answering()
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
