package lab_test

import (
	"errors"
	"math"
	"testing"

	"github.com/loci-memory/loci/compaction/lab"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest/scale"
)

// The smaller the share of a session that prompts hold, the fewer tokens they have, and the less is in view.
func TestRatioReplaysHoldAShareOfTheSession(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	session := lab.NewSession(work(60))
	before := lab.Result{Tokens: math.MaxInt}
	for _, ratio := range lab.Ratios {
		under, err := lab.AtRatio(session, ratio, policy.UsualPrices)
		if err != nil {
			t.Fatal(err)
		}
		r, err := lab.ReplayOf(t.Context(), session, under)
		if err != nil {
			t.Fatal(err)
		}
		if most := int(ratio * float64(session.Tokens())); r.Most > most*5/4 || r.PairErrors+r.TooLarge > 0 ||
			r.Tokens > before.Tokens || (r.Compactions == 0) != (ratio == 1) {
			t.Errorf("%v of %d tokens: %d tokens, at most %d, %d compactions", ratio, session.Tokens(), r.Tokens, r.Most,
				r.Compactions)
		}
		if ratio == 1 && r.Evidence.Share() != 1 || ratio == 0.1 && r.Evidence.Share() == 1 {
			t.Errorf("%v: %+v", ratio, r.Evidence)
		}
		before = r
	}
	for _, ratio := range []float64{0, -1, 1.1, math.NaN(), math.Inf(1)} {
		if _, err := lab.AtRatio(session, ratio, policy.UsualPrices); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("%v: %v", ratio, err)
		}
	}
}
