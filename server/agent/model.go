package agent

import (
	"cmp"
	"context"
	"strings"
)

// windows are the context windows of models, in tokens, by the beginning of their names, the longest first if one
// begins another. Source: the tables of Letta's server.
var windows = []struct {
	prefix string
	tokens int
}{
	{"gpt-5", 272_000},
	{"gpt-4.1", 256_000},
	{"gpt-4o", 128_000},
	{"gpt-4-turbo", 128_000},
	{"gpt-4", 8_192},
	{"o1", 200_000},
	{"o3", 200_000},
	{"o4-mini", 200_000},
	{"claude-", 200_000},
	{"gemini-", 1_048_576},
}

// Models are the handles of models that clients may choose. An agent may name any other.
var Models = []string{"openai/gpt-5", "openai/gpt-5-mini", "openai/gpt-4.1", "openai/gpt-4.1-mini", "openai/gpt-4o",
	"openai/gpt-4o-mini", "openai/gpt-4-turbo", "openai/gpt-4", "openai/o1", "openai/o3", "openai/o4-mini",
	"anthropic/claude-opus-4-1", "anthropic/claude-sonnet-4-5", "anthropic/claude-haiku-4-5", "google_ai/gemini-2.5-pro",
	"google_ai/gemini-2.5-flash"}

// DefaultModel returns the handle of the model that the server writes summaries with, and its context window in tokens
// as the operator set it, 0 if it is not set. The handle is empty if there is no such model.
func (s *Store) DefaultModel(ctx context.Context) (handle string, window int) {
	if s.Compaction == nil || s.Compaction.Models == nil {
		return "", 0
	}
	m := s.Compaction.Models(ctx, "")
	if m == nil || m.Name == "" {
		return "", 0
	}
	return "openai/" + m.Name, m.Window // the protocol of its endpoint
}

// windowOf returns the limit of a new agent's window: its caller's, or else what the operator says of its model.
func (s *Store) windowOf(ctx context.Context, n New) *int {
	handle, window := s.DefaultModel(ctx)
	if n.WindowLimit != nil || n.Model == nil || window == 0 || *n.Model != handle {
		return n.WindowLimit
	}
	return &window
}

// assumedWindow replaces an unknown window, in tokens. It is the largest window with the file limits of an unknown one.
const assumedWindow = 32_768

// AssumedWindow returns the context window in tokens that prompts are made for: 32,768 if it is unknown.
func (a Agent) AssumedWindow() int { return cmp.Or(a.Window(), assumedWindow) }

// Window returns the context window in tokens: the operator's limit, or else that of the model; 0 if it is unknown.
func (a Agent) Window() int {
	if a.WindowLimit != nil {
		return *a.WindowLimit
	}
	if a.Model == nil {
		return 0
	}
	name := strings.ToLower(modelName(*a.Model))
	for _, w := range windows {
		if strings.HasPrefix(name, w.prefix) {
			return w.tokens
		}
	}
	return 0
}

// model returns the handle of the agent's model, empty if it has none.
func (a Agent) model() string {
	if a.Model == nil {
		return ""
	}
	return *a.Model
}

// modelName returns a model's handle without its provider.
func modelName(handle string) string { return handle[strings.LastIndexByte(handle, '/')+1:] }
