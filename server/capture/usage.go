package capture

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

// providerUsage is a provider's count of a call: the fields of OpenAI and Letta, and those of Anthropic, whose
// input_tokens do not include the tokens that it read from or wrote to its cache.
type providerUsage struct {
	Prompt        float64 `json:"prompt_tokens"`
	Input         float64 `json:"input_tokens"`
	CacheRead     float64 `json:"cache_read_input_tokens"`
	CacheCreation float64 `json:"cache_creation_input_tokens"`
}

// promptTokens returns a provider's count of the prompt in tokens; 0 if the request has none, or an impossible one.
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

// checkUsage refuses a usage that is no object, or whose counts of the prompt are no numbers of tokens. Counts under
// names that Loci does not know are ignored.
func checkUsage(in chat.Object, raw json.RawMessage) {
	if !in.Has("usage") {
		return
	}
	of := in.Object("usage")
	var counts map[string]json.RawMessage
	_ = json.Unmarshal(raw, &counts) // what is no object is refused already
	for _, name := range []string{"prompt_tokens", "input_tokens", "cache_read_input_tokens",
		"cache_creation_input_tokens"} {
		var n float64
		if of.Has(name) && (json.Unmarshal(counts[name], &n) != nil || n < 0 || n > math.MaxInt32) {
			of.Refuse(name, fmt.Sprintf("expected a number of 0 to %d", math.MaxInt32))
		}
	}
}

// PromptPosition returns the position of the last message of the prompt that was counted: the message before the last
// one of the assistant or, without one, the last of all.
func (b *Batch) PromptPosition(appended []recall.Appended) int {
	if b.answer >= 0 {
		return appended[b.answer].Position - 1
	}
	return appended[len(appended)-1].Position
}
