package agenttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/loci-memory/loci/compaction/llm/llmtest"
)

// sound checks that a provider accepts a prompt's messages: each result stands behind its call, and each call has a
// result, except calls of the last message while one is open.
func sound(messages []llmtest.Message, open bool) error {
	waiting := map[string]bool{}
	for i, m := range messages {
		if m.Role == "tool" {
			if !waiting[m.ToolCallID] {
				return fmt.Errorf("message %d is the result of the call %q, which does not stand before it", i, m.ToolCallID)
			}
			delete(waiting, m.ToolCallID)
		} else if len(waiting) > 0 {
			return fmt.Errorf("message %d of role %s stands between calls and their results", i, m.Role)
		}
		if m.Content != nil && strings.Contains(*m.Content, "result of this call was not recorded") {
			return fmt.Errorf("message %d says of a call that was answered: %s", i, *m.Content)
		}
		var calls []chatCall
		if len(m.ToolCalls) > 0 {
			if err := json.Unmarshal(m.ToolCalls, &calls); err != nil {
				return fmt.Errorf("message %d: %w", i, err)
			}
		}
		for _, c := range calls {
			waiting[c.ID] = true
		}
	}
	if len(waiting) > 0 && !open {
		return fmt.Errorf("%d calls at the end have no result", len(waiting))
	}
	if len(messages) == 0 || messages[0].Role != "system" {
		return errors.New("it does not begin with the system prompt")
	}
	return nil
}
