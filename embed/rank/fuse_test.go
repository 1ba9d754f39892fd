package rank_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/loci-memory/loci/embed/rank"
)

// many returns n hits with ids from first and scores that fall evenly from best to last.
func many(n int, first int64, best, last float64) []rank.Hit {
	var hits []rank.Hit
	for i := range n {
		hits = append(hits, rank.Hit{ID: first + int64(i), Score: best - (best-last)*float64(i)/float64(max(1, n-1))})
	}
	return hits
}

func TestFuse(t *testing.T) {
	t.Parallel()
	type hits = []rank.Hit
	for _, c := range []struct {
		name           string
		words, meaning hits
		weight         float64
		want           []rank.Scored
	}{
		{"nothing", nil, nil, 1, []rank.Scored{}},
		{"words alone are shares of the best", hits{{1, 8}, {2, 2}}, nil, 1, []rank.Scored{
			{1, 1, 0, 0, 1, 1, 0}, {2, 0.25, 0, 0, 0.25, 2, 0}}},
		{"a row without a word in common is not found by words", hits{{1, 8}, {2, 0}, {3, -1}}, nil, 1, []rank.Scored{
			{1, 1, 0, 0, 1, 1, 0}}},
		{"a lone row by meaning has it all", nil, hits{{5, 0.7}}, 0.5, []rank.Scored{
			{5, 0, 1, 0, 0.5, 0, 1}}},
		{"close rows of a short arm have close shares", nil, hits{{1, 0.85}, {2, 0.84}, {3, 0.80}}, 1, []rank.Scored{
			{1, 0, 1, 0, 1, 0, 1}, {2, 0, 0.97, 0, 0.97, 0, 2}, {3, 0, 0.85, 0, 0.85, 0, 3}}},
		{"far rows of a short arm have their ratio", nil, hits{{1, 0.8}, {2, 0.2}}, 1, []rank.Scored{
			{1, 0, 1, 0, 1, 0, 1}, {2, 0, 0.25, 0, 0.25, 0, 2}}},
		{"a cosine of no likeness gives nothing", nil, hits{{1, 0.8}, {2, -0.2}}, 1, []rank.Scored{
			{1, 0, 1, 0, 1, 0, 1}, {2, 0, 0, 0, 0, 0, 2}}},
		{"an arm of no likeness gives nothing", nil, hits{{1, 0}, {2, -0.2}}, 1, []rank.Scored{
			{1, 0, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 0, 2}}},
		{"both add up, the weight counts, words break ties", hits{{9, 4}, {3, 2}}, hits{{3, 0.6}, {7, 0.3}}, 0.5,
			[]rank.Scored{{9, 1, 0, 0, 1, 1, 0}, {3, 0.5, 1, 0, 1, 2, 1}, {7, 0, 0.5, 0, 0.25, 0, 2}}},
		{"other ties go by id", hits{{9, 4}, {3, 4}}, nil, 1, []rank.Scored{{3, 1, 0, 0, 1, 1, 0}, {9, 1, 0, 0, 1, 2, 0}}},
		{"scores that are no numbers do not count", hits{{1, math.NaN()}, {2, math.Inf(1)}, {3, 2}}, hits{{4, math.NaN()}}, 1,
			[]rank.Scored{
				{3, 1, 0, 0, 1, 1, 0}}},
		{"a row twice in an arm counts once", hits{{1, 2}, {1, 4}, {2, 2}}, nil, 1, []rank.Scored{
			{1, 1, 0, 0, 1, 1, 0}, {2, 0.5, 0, 0, 0.5, 2, 0}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := rank.Fuse(c.words, c.meaning, rank.Weights{Words: 1, Meaning: c.weight})
			if diff := cmp.Diff(c.want, got, cmpopts.EquateApprox(0, 1e-3)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestFullArmCountsFromRank100(t *testing.T) {
	t.Parallel()
	for _, n := range []int{20, 99, 100, 300} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			arm := many(n, 1, 0.9, 0.7)
			floor := arm[min(n, rank.MeaningRows)-1].Score
			rows := rank.Fuse(nil, arm, rank.Weights{Meaning: 1})
			for i, r := range rows {
				want := max(0, (arm[r.ID-1].Score-floor)/(0.9-floor))
				if r.MeaningRank != i+1 || math.Abs(r.Meaning-want) > 1e-9 {
					t.Fatalf("row %d: got share %v at rank %d, want %v at %d", r.ID, r.Meaning, r.MeaningRank, want, i+1)
				}
			}
		})
	}
}

func TestFuseHolds(t *testing.T) {
	t.Parallel()
	hit := rapid.Custom(func(t *rapid.T) rank.Hit {
		return rank.Hit{ID: rapid.Int64Range(1, 40).Draw(t, "id"), Score: rapid.Float64Range(-1, 1).Draw(t, "score")}
	})
	arm := rapid.SliceOfNDistinct(hit, 0, 40, func(h rank.Hit) int64 { return h.ID })
	rapid.Check(t, func(t *rapid.T) {
		words, meaning := arm.Draw(t, "words"), arm.Draw(t, "meaning")
		share := rapid.Float64Range(0, 1)
		weights := rank.Weights{Words: share.Draw(t, "weight of words"), Meaning: share.Draw(t, "weight of meaning")}
		rows := rank.Fuse(words, meaning, weights)
		for i, r := range rows {
			sum := weights.Words*r.Words + weights.Meaning*r.Meaning
			if r.Words < 0 || r.Words > 1 || r.Meaning < 0 || r.Meaning > 1 || r.Score != sum {
				t.Fatalf("row out of bounds: %+v", r)
			}
			if (r.Words > 0) != (r.WordsRank > 0) || r.WordsRank == 0 && r.MeaningRank == 0 {
				t.Fatalf("row of no arm: %+v", r)
			}
			if i > 0 && slices.Compare([]float64{rows[i-1].Score, rows[i-1].Words, -float64(rows[i-1].ID)},
				[]float64{r.Score, r.Words, -float64(r.ID)}) <= 0 {
				t.Fatalf("out of order: %+v before %+v", rows[i-1], r)
			}
		}
		checkOrderKept(t, rows, meaning)
		scaled := slices.Clone(words)
		for i := range scaled {
			scaled[i].Score *= 4
		}
		slices.Reverse(scaled)
		if again := rank.Fuse(scaled, meaning, weights); !slices.Equal(rows, again) {
			t.Fatalf("the words' scale or order matters: %v and %v", rows, again)
		}
	})
}

// checkOrderKept fails if a row with a higher cosine has a smaller share.
func checkOrderKept(t *rapid.T, rows []rank.Scored, meaning []rank.Hit) {
	share := map[int64]float64{}
	for _, r := range rows {
		share[r.ID] = r.Meaning
	}
	for _, a := range meaning {
		for _, b := range meaning {
			if a.Score > b.Score && share[a.ID] < share[b.ID] {
				t.Fatalf("%+v has a smaller share than %+v", a, b)
			}
		}
	}
}
