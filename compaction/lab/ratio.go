package lab

import (
	"fmt"

	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db"
)

// Ratios are the default shares for ratio replays.
var Ratios = []float64{1, 0.5, 0.3, 0.2, 0.1}

// leastRoom is the least room in the window of a ratio replay, besides the system prompt. With less room, no compaction
// finds messages that can leave.
const leastRoom = 8_000

// AtRatio returns the settings of a replay with prompts that hold a share of the whole session. Above that share the
// oldest messages are summarized, and the newest ones, up to half of it, stay. A share of 1 shows everything. The
// window is so large that nothing else compacts. ErrInvalid unless the share is above 0 and at most 1.
func AtRatio(s *Session, ratio float64, prices policy.CachePrices) (Settings, error) {
	if !(ratio > 0 && ratio <= 1) {
		return Settings{}, db.Invalid("A ratio is %v; it must be above 0 and at most 1", ratio)
	}
	most := max(int(ratio*float64(s.Tokens())), 1)
	p, err := policy.Parse(policy.UpTo(most))
	return Settings{Name: fmt.Sprintf("ratio %g", ratio), Policy: p, Window: max(most*10/9+1, s.fixed+leastRoom),
		Ratio: ratio, Prices: prices}, err
}
