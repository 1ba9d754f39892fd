package agent

import (
	"encoding/json"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

// Format names a provider's API.
type Format string

// The formats.
const (
	OpenAI    Format = "openai"    // chat completions
	Anthropic Format = "anthropic" // messages
	Responses Format = "responses" // OpenAI's Responses API
)

// converted returns messages in a format, and their tokens.
func converted(f Format, messages []recall.Message, count func(string) int) ([]json.RawMessage, int) {
	switch f {
	case Anthropic:
		return chat.Anthropic(messages, count)
	case Responses:
		return chat.Responses(messages, count)
	}
	return chat.OpenAI(messages, count)
}
