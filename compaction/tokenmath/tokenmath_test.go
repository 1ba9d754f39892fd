package tokenmath_test

import (
	"math"
	"testing"

	"github.com/loci-memory/loci/compaction/tokenmath"
)

func TestAddStaysWithinItsType(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		a, b, want int
	}{
		{"two numbers are added", 2, 3, 5},
		{"a negative number counts as 0", -7, 3, 3},
		{"two negative numbers are 0", -7, math.MinInt, 0},
		{"the largest sum that fits is exact", math.MaxInt - 1, 1, math.MaxInt},
		{"a larger sum is the largest number", math.MaxInt, 1, math.MaxInt},
		{"the two largest numbers are the largest", math.MaxInt, math.MaxInt, math.MaxInt},
	} {
		if got := tokenmath.Add(c.a, c.b); got != c.want {
			t.Errorf("%s: Add(%d, %d) = %d, want %d", c.name, c.a, c.b, got, c.want)
		}
		if got := tokenmath.Add(c.b, c.a); got != c.want {
			t.Errorf("%s: Add(%d, %d) = %d, want %d", c.name, c.b, c.a, got, c.want)
		}
	}
}

func TestARatioConvertsWithoutOverflow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		ratio   tokenmath.Ratio
		x, want int
	}{
		{"the same counts change nothing", tokenmath.Ratio{Num: 7, Den: 7}, 123, 123},
		{"a ratio of 0 to 0 changes nothing", tokenmath.Ratio{}, 123, 123},
		{"more tokens", tokenmath.Ratio{Num: 3, Den: 2}, 10, 15},
		{"a fraction is dropped", tokenmath.Ratio{Num: 2, Den: 3}, 10, 6},
		{"a product beyond 64 bits is exact", tokenmath.Ratio{Num: 1 << 61, Den: 1 << 62},
			1 << 40, 1 << 39},
		{"a result beyond int is the largest", tokenmath.Ratio{Num: 2, Den: 1}, math.MaxInt, math.MaxInt},
		{"a quotient beyond 64 bits is the largest", tokenmath.Ratio{Num: 1 << 62, Den: 2}, 8, math.MaxInt},
	} {
		if got := c.ratio.Of(c.x); got != c.want {
			t.Errorf("%s: %+v of %d is %d, want %d", c.name, c.ratio, c.x, got, c.want)
		}
	}
}

func TestARatioIsFromAHalfTo2(t *testing.T) {
	t.Parallel()
	const most = math.MaxInt / 4
	for _, c := range []struct {
		name              string
		reported, counted int
		want              tokenmath.Ratio
	}{
		{"a report within the bounds is taken", 150, 100, tokenmath.Ratio{Num: 150, Den: 100}},
		{"2 is taken", 200, 100, tokenmath.Ratio{Num: 200, Den: 100}},
		{"more than 2 is 2", 201, 100, tokenmath.Ratio{Num: 200, Den: 100}},
		{"a half is taken", 50, 100, tokenmath.Ratio{Num: 50, Den: 100}},
		{"less than a half is a half", 49, 100, tokenmath.Ratio{Num: 50, Den: 100}},
		{"a report of 0 is no ratio of 0", 0, 1, tokenmath.Ratio{Num: 1, Den: 1}},
		{"without our count the ratio is 1", 50, 0, tokenmath.Ratio{Num: 1, Den: 1}},
		{"a negative count of ours is none", 50, -3, tokenmath.Ratio{Num: 1, Den: 1}},
		{"huge counts are capped", math.MaxInt, math.MaxInt, tokenmath.Ratio{Num: most, Den: most}},
	} {
		if got := tokenmath.Of(c.reported, c.counted); got != c.want {
			t.Errorf("%s: Of(%d, %d) = %+v, want %+v", c.name, c.reported, c.counted, got, c.want)
		}
	}
}

func TestAShareOfAWindow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		of           float64
		window, want int
	}{
		{"a fraction of a token is dropped", 0.5, 101, 50},
		{"a sum of shares that is slightly too small is rounded up", 0.7 + 0.1, 1_000, 800},
		{"a product that is slightly too small is rounded up", 0.29, 100, 29},
		{"all", 1, 128_000, 128_000},
		{"nothing", 0, 128_000, 0},
	} {
		if got := tokenmath.Share(c.of, c.window); got != c.want {
			t.Errorf("%s: %v of %d is %d, want %d", c.name, c.of, c.window, got, c.want)
		}
	}
}
