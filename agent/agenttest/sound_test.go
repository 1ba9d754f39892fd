package agenttest_test

import (
	"encoding/json"
	"testing"

	"github.com/loci-memory/loci/agent/agenttest"
	"github.com/loci-memory/loci/compaction/llm/llmtest"
)

func TestSoundPrompts(t *testing.T) {
	t.Parallel()
	message := func(role, text string) llmtest.Message { return llmtest.Message{Role: role, Content: &text} }
	calls := llmtest.Message{Role: "assistant", ToolCalls: json.RawMessage(`[{"id":"a"},{"id":"b"}]`)}
	result := func(id, text string) llmtest.Message {
		return llmtest.Message{Role: "tool", Content: &text, ToolCallID: id}
	}
	system, user := message("system", "Be kind."), message("user", "Look.")
	for _, w := range []struct {
		name     string
		messages []llmtest.Message
		open, ok bool
	}{
		{"calls with their results, in any order", []llmtest.Message{system, user, calls, result("b", "2"), result("a", "1"),
			user}, false, true},
		{"a call that is open at the end", []llmtest.Message{system, user, calls, result("b", "2")}, true, true},
		{"a call that has lost its result at the end", []llmtest.Message{system, user, calls, result("b", "2")}, false,
			false},
		{"a call that has lost its result", []llmtest.Message{system, user, calls, result("b", "2"), user}, true, false},
		{"a result that has lost its call", []llmtest.Message{system, user, result("b", "2")}, false, false},
		{"a result twice", []llmtest.Message{system, calls, result("a", "1"), result("b", "2"), result("b", "2")}, false,
			false},
		{"a call whose result is said to be lost", []llmtest.Message{system, calls,
			result("a", "[The result of this call was not recorded.]"), result("b", "2")}, false, false},
		{"no system prompt", []llmtest.Message{user}, false, false},
		{"nothing", nil, false, false},
	} {
		if err := agenttest.Sound(w.messages, w.open); (err == nil) != w.ok {
			t.Errorf("%s: %v, want sound: %v", w.name, err, w.ok)
		}
	}
}
