package files_test

import (
	"testing"

	"github.com/loci-memory/loci/files"
)

func TestLimitsForHoldsAtEachBoundary(t *testing.T) {
	t.Parallel()
	unknown := files.Limits{MaxOpen: 5, ViewChars: 15_000}
	tiers := []struct {
		from, to int
		want     files.Limits
	}{
		{-1 << 62, -1, unknown},
		{0, 0, unknown},
		{1, 8_192, files.Limits{MaxOpen: 3, ViewChars: 5_000}},
		{8_193, 32_768, files.Limits{MaxOpen: 5, ViewChars: 15_000}},
		{32_769, 131_072, files.Limits{MaxOpen: 10, ViewChars: 25_000}},
		{131_073, 200_000, files.Limits{MaxOpen: 10, ViewChars: 40_000}},
		{200_001, 1 << 62, files.Limits{MaxOpen: 15, ViewChars: 40_000}},
	}
	for _, c := range tiers {
		for _, window := range []int{c.from, min(c.from+1, c.to), c.from/2 + c.to/2, max(c.to-1, c.from), c.to} {
			want := c.want
			want.WindowTokens = window
			if got := files.LimitsFor(window); got != want {
				t.Errorf("LimitsFor(%d) = %+v, want %+v", window, got, want)
			}
		}
	}
}

func TestLimitsForFillsAtMostSixtyPercentOfANominalWindow(t *testing.T) {
	t.Parallel()
	for _, window := range []int{8_192, 32_768, 131_072, 200_000} {
		tier := files.LimitsFor(window)
		if tokens := tier.MaxOpen * tier.ViewChars / 4; tokens*10 > window*6 {
			t.Errorf("LimitsFor(%d) = %+v: %d tokens, want at most 60 %%", window, tier, tokens)
		}
	}
}
