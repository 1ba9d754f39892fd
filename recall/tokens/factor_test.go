package tokens_test

import (
	"math"
	"testing"

	"github.com/loci-memory/loci/recall/tokens"
)

func TestFactorAfterReports(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		was            tokens.Factor
		reported, ours int
		first          bool
		want           tokens.Factor
	}{
		"the first report raises it at once": {1.05, 1700, 1000, true, 1.7},
		"a later one by a half at most":      {1.05, 1700, 1000, false, 1.55},
		"it falls slowly":                    {1.5, 1000, 1000, false, 1.45},
		"and slowly at first":                {1.05, 600, 1000, true, 1},
		"it is at least 0.9":                 {0.92, 600, 1000, false, 0.9},
		"and at most 2":                      {1.9, 2400, 1000, false, 2},
		"a report of a cut prompt":           {1.2, 499, 1000, false, 1.2},
		"a report of another prompt":         {1.2, 2501, 1000, true, 1.2},
		"a report of nothing we counted":     {1.2, 100, 0, true, 1.2},
	} {
		if got := c.was.After(c.reported, c.ours, c.first); math.Abs(float64(got-c.want)) > 1e-9 {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
	if got := tokens.InitialFactor("openai/gpt-4o"); got != 1 {
		t.Errorf("a model of a known vocabulary has the factor %v, want 1", got)
	}
	if got := tokens.InitialFactor("acme/large"); got != tokens.Uncalibrated {
		t.Errorf("a model of an unknown vocabulary has the factor %v, want %v", got, tokens.Uncalibrated)
	}
}
