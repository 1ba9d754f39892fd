package agent_test

import (
	"testing"

	"github.com/loci-memory/loci/agent"
)

// TestFlushThresholds checks the documented numbers of flushes: 4,000 tokens before the trigger, and a checkpoint at
// 50,000 tokens.
func TestFlushThresholds(t *testing.T) {
	t.Parallel()
	no := false
	flush, checkpoint := agent.FlushSettings{Mode: agent.FlushOn}, agent.FlushSettings{Mode: agent.Checkpoint,
		BeforeCompaction: &no}
	for _, test := range []struct {
		name           string
		settings       agent.FlushSettings
		tokens, window int
		want           string
	}{
		{"a token below the soft threshold", flush, 175_999, 200_000, ""},
		{"at the soft threshold", flush, 176_000, 200_000, agent.ForCompaction},
		{"a small window keeps a tenth", flush, 6_400, 8_000, agent.ForCompaction},
		{"below it", flush, 6_399, 8_000, ""},
		{"at 50,000 tokens there is no checkpoint", checkpoint, 50_000, 200_000, ""},
		{"at 50,001 there is", checkpoint, 50_001, 200_000, agent.ForTokens},
		{"a number of its own", agent.FlushSettings{Mode: agent.FlushOn, Tokens: 20_000}, 20_001, 200_000, agent.ForTokens},
	} {
		if got := agent.FlushDue(test.settings, test.tokens, test.window); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}
