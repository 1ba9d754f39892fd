package capture

import (
	"encoding/json"
	"math"

	"github.com/loci-memory/loci/recall"
)

// providerUsage is what providers count of a call: OpenAI's and Letta's fields, and Anthropic's, which does not count
// what it read from its cache, or wrote there, among the input.
type providerUsage struct {
	Prompt        float64 `json:"prompt_tokens"`
	Input         float64 `json:"input_tokens"`
	CacheRead     float64 `json:"cache_read_input_tokens"`
	CacheCreation float64 `json:"cache_creation_input_tokens"`
}

// promptTokens are the tokens of the prompt that a provider counted; 0 where the request does not say, or gives
// impossible numbers.
func (b *Batch) promptTokens() int {
	raw := b.fields["usage"]
	if raw == nil {
		var response struct {
			Usage json.RawMessage `json:"usage"`
		}
		if json.Unmarshal(b.fields["response_dict"], &response) == nil {
			raw = response.Usage
		}
	}
	var u providerUsage
	if raw == nil || json.Unmarshal(raw, &u) != nil {
		return 0
	}
	tokens := u.Prompt
	if tokens == 0 {
		tokens = u.Input + u.CacheRead + u.CacheCreation
	}
	if tokens < 1 || tokens > math.MaxInt32 {
		return 0
	}
	return int(tokens)
}

// PromptPosition is the position of the last message of the prompt that the last message of the assistant answers;
// without one, of the last.
func (b *Batch) PromptPosition(appended []recall.Appended) int {
	if b.answer >= 0 {
		return appended[b.answer].Position - 1
	}
	return appended[len(appended)-1].Position
}
