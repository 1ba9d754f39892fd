package agent_test

import (
	"math"
	"testing"

	"github.com/loci-memory/loci/agent"
)

// In 15 sessions of Memory System v2, tool results are 82.6 % of the characters, the system prompts 12.0 %, the
// assistant's messages 2.9 %, and the user's 2.5 %.
func TestClaims209To212TheSharesOfFifteenSessions(t *testing.T) {
	t.Parallel()
	all := []agent.Category{{Category: "tool_results", Chars: 1_842_300}, {Category: "system", Chars: 268_100},
		{Category: "assistant", Chars: 64_700}, {Category: "user", Chars: 55_900}}
	agent.Share(all)
	for i, want := range []float64{82.6, 12.0, 2.9, 2.5} {
		if got := 100 * all[i].Share; math.Abs(got-want) > 0.05 {
			t.Errorf("%s: %.2f %%, want %.1f", all[i].Category, got, want)
		}
	}
}
