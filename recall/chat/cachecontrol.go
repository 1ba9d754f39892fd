package chat

import (
	"encoding/json"
	"slices"

	"github.com/loci-memory/loci/recall"
)

// CacheControl marks a part of a request: Anthropic's cache keeps the request up to there.
type CacheControl struct {
	Type string `json:"type"`
	TTL  string `json:"ttl,omitempty"` // "5m" or "1h"; empty: five minutes
}

// maxMarks is how many marks Anthropic takes in a request.
const maxMarks = 4

const (
	ephemeral = "ephemeral"
	anHour    = "1h"
)

// markOf returns the mark that a client sent with a part; nil if there is none that Anthropic takes.
func markOf(p recall.Part) *CacheControl {
	var mark CacheControl
	raw := extraFields(p, recall.AnthropicAPI)["cache_control"]
	if raw == nil || json.Unmarshal(raw, &mark) != nil || mark.Type != ephemeral ||
		!slices.Contains([]string{"", "5m", anHour}, mark.TTL) {
		return nil
	}
	return &mark
}

// DropMarks takes the marks out of a message that a client sends, if own says that they are Loci's. It asks only if
// there are any.
func DropMarks(d *recall.Draft, own func() bool) {
	for i, p := range d.Content {
		fields := extraFields(p, recall.AnthropicAPI)
		if fields["cache_control"] == nil || !own() {
			continue
		}
		if delete(fields, "cache_control"); len(fields) == 0 {
			d.Content[i].Extra = ""
			continue
		}
		d.Content[i].Extra = string(Encode(map[string]any{recall.AnthropicAPI: fields}))
	}
}
