package capture

import (
	"encoding/json"

	"github.com/loci-memory/loci/recall/chat"
)

// recordedCount is what a provider counted for the prompt that a message answered.
type recordedCount struct {
	tokens int
	model  string
}

// countOf returns what a provider counted for the prompt that a message answered. It ignores a malformed usage,
// because the message is valid without it.
func countOf(m chat.Object) int {
	return chat.NewObject(map[string]json.RawMessage{"usage": m.JSON("usage")}, nil).Usage("usage").Prompt
}
