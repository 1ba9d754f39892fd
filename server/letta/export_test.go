package letta

import (
	"encoding/json"

	"github.com/loci-memory/loci/server/rest"
)

// ToolRules returns the rules of a request without duplicates.
func ToolRules(sent ...string) (json.RawMessage, error) {
	rules := []ToolRule{}
	for _, raw := range sent {
		rules = append(rules, ToolRule{rest.Object(raw)})
	}
	return toolRules(rules)
}

// CheckThinking checks the thinking budget of model settings.
func CheckThinking(settings string) error { return checkThinking(json.RawMessage(settings)) }
