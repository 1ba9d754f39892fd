package agent

import (
	"slices"
	"strings"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// PromptSettings say how an agent's prompts are written. Empty fields use defaults.
type PromptSettings struct {
	StateRole string `json:"state_role,omitempty" required:"false" enum:"user,system" doc:"Of the state at the end; user."`
	Marks     *bool  `json:"cache_marks,omitempty" required:"false" doc:"Marks for Anthropic's cache; true if absent."`
	CacheKey  string `json:"cache_key,omitempty" required:"false" enum:"auto,always,never" doc:"For OpenAI's; auto."`
	Results   string `json:"tool_results,omitempty" required:"false" enum:"plain,letta" doc:"Form of results; plain."`
}

// The forms in which a model reads results of tools.
const (
	PlainResults = "plain"
	LettaResults = "letta" // in an envelope, as Letta's models read them
)

// When a request has the field prompt_cache_key.
const (
	keyAuto   = "auto" // if the provider is known to take it
	keyAlways = "always"
	keyNever  = "never"
)

// check returns ErrInvalid for the first setting with a wrong value.
func (p PromptSettings) check() error {
	for name, of := range map[string]struct {
		value string
		known []string
	}{"state_role": {p.StateRole, []string{"", string(recall.User), string(recall.System)}},
		"cache_key":    {p.CacheKey, []string{"", keyAuto, keyAlways, keyNever}},
		"tool_results": {p.Results, []string{"", PlainResults, LettaResults}}} {
		if !slices.Contains(of.known, of.value) {
			return db.Invalid("prompt.%s is %q; it must be one of %v", name, db.Short(of.value), of.known[1:])
		}
	}
	return nil
}

// role returns the role of the item at the end of a prompt.
func (p *PromptSettings) role() recall.Role {
	if p == nil || p.StateRole == "" {
		return recall.User
	}
	return recall.Role(p.StateRole)
}

// marks reports whether prompts for Anthropic mark what its cache is to keep.
func (p *PromptSettings) marks() bool { return p == nil || p.Marks == nil || *p.Marks }

// enveloped returns messages with the envelopes in which a model reads results of tools; without any unless the
// settings say so. zone is the agent's timezone.
func (p *PromptSettings) enveloped(messages []recall.Message, zone *time.Location) []recall.Message {
	wraps := p != nil && p.Results == LettaResults
	all := slices.Clone(messages)
	for i, m := range all {
		if m.Role != recall.Tool {
			continue
		}
		all[i].Content = slices.Clone(m.Content)
		for k := range all[i].Content {
			switch part := &all[i].Content[k]; {
			case !wraps:
				part.Envelope = nil
			case part.Envelope == nil:
				part.Envelope = &recall.Envelope{Time: m.CreatedAt.In(zone).Format(recall.EnvelopeTime)}
			}
		}
	}
	return all
}

// keyProviders are the providers that are known to take prompt_cache_key, as handles of models name them.
var keyProviders = []string{"openai", "azure", "openai-proxy"}

// keyed reports whether requests in a format for a model have the field prompt_cache_key, by which a provider sends the
// prompts of a conversation to the same cache. Anthropic has no such field; OpenAI's Responses API always has it.
func (p *PromptSettings) keyed(f Format, model string) bool {
	setting := keyAuto
	if p != nil && p.CacheKey != "" {
		setting = p.CacheKey
	}
	provider, _, named := strings.Cut(model, "/")
	return f != Anthropic && setting != keyNever &&
		(setting == keyAlways || f == Responses || named && slices.Contains(keyProviders, provider))
}
