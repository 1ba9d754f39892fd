package model

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"

	"github.com/loci-memory/loci/embed/provider"
)

const (
	anthropicURL     = "https://api.anthropic.com"
	anthropicVersion = "2023-06-01"

	// anthropicManagement is the beta feature that a prompt with the field context_management needs.
	anthropicManagement = "context-management-2025-06-27"

	// defaultMaxTokens bounds the answer if the prompt names no bound, because Anthropic requires one.
	defaultMaxTokens = 8192
)

// Anthropic is a Client for Anthropic's POST /v1/messages.
type Anthropic struct {
	at     *provider.Endpoint
	client *http.Client
}

// NewAnthropic checks the configuration without sending a request. An error names the setting to change.
func NewAnthropic(c Config) (*Anthropic, error) {
	c.BaseURL, c.Model = cmp.Or(c.BaseURL, anthropicURL), cmp.Or(c.Model, "claude")
	endpoint := c.endpoint("LOCI_ANTHROPIC")
	endpoint.ModelOf = "the agent's model"
	if _, err := endpoint.Client(); err != nil {
		return nil, err
	}
	return &Anthropic{endpoint, endpoint.HTTPClient()}, nil
}

// Format implements Client.
func (a *Anthropic) Format() string { return FormatAnthropic }

// Address implements Client.
func (a *Anthropic) Address() string { return a.at.BaseURL }

// Answer implements Client.
func (a *Anthropic) Answer(ctx context.Context, r Request, show func(Delta)) (Answer, error) {
	endpoint := *a.at
	endpoint.Model = r.Model
	var fields struct {
		MaxTokens int `json:"max_tokens"`
		Thinking  struct {
			Type string `json:"type"`
		} `json:"thinking"`
		Management json.RawMessage `json:"context_management"`
	}
	if err := json.Unmarshal(r.Prompt, &fields); err != nil {
		return Answer{}, err
	}
	over := map[string]any{"model": r.Model, "max_tokens": cmp.Or(fields.MaxTokens, defaultMaxTokens), "stream": true}
	thinks := fields.Thinking.Type != "" && fields.Thinking.Type != "disabled"
	switch { // a model that thinks cannot be forced to call a tool
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
	header := map[string]string{"Anthropic-Version": anthropicVersion}
	if fields.Management != nil {
		header["Anthropic-Beta"] = anthropicManagement
	}
	if endpoint.APIKey != "" {
		header["X-Api-Key"] = endpoint.APIKey
	}
	stream, err := post(ctx, a.client, &endpoint, posted{"/v1/messages", header, exact})
	if err != nil {
		return Answer{}, err
	}
	defer stream.Close()
	return readAnthropic(ctx, &endpoint, stream, show)
}
