package agent

import (
	"cmp"
	"strings"

	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/recall"
)

// windows are the context windows, in tokens, of models by the start of their names, the longest first where one begins another.
// Source: the tables of Letta's server.
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

// Window is the model's context window in tokens: the limit the operator set, else what is known of the model; 0 is unknown.
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

// in is the agent as it is in a conversation, which may have a model or a window of its own.
func (a Agent) in(c recall.Conversation) Agent {
	if c.Model != nil {
		a.Model, a.WindowLimit = c.Model, nil
	}
	if c.WindowLimit != nil {
		a.WindowLimit = c.WindowLimit
	}
	return a
}

// model is the agent's model, empty if it names none.
func (a Agent) model() string {
	if a.Model == nil {
		return ""
	}
	return *a.Model
}

// modelName is a model's handle without its provider.
func modelName(handle string) string { return handle[strings.LastIndexByte(handle, '/')+1:] }

// Limits are the agent's own, where the operator set them, and its tier's.
func (a Agent) Limits() files.Limits {
	l := files.TierFor(a.Window())
	l.MaxOpen, l.ViewChars = orTier(a.MaxFilesOpen, l.MaxOpen), orTier(a.ViewChars, l.ViewChars)
	return l
}

func orTier(own *int, tier int) int {
	if own == nil {
		return tier
	}
	return cmp.Or(*own, tier)
}
