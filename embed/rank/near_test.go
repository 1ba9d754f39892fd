package rank_test

import (
	"slices"
	"testing"

	"github.com/loci-memory/loci/embed/lexicon"
	"github.com/loci-memory/loci/embed/rank"
)

func TestTermsNearEachOtherGain(t *testing.T) {
	t.Parallel()
	var sample [][]int64
	for _, text := range []string{"fox", "house"} {
		sample = append(sample, lexicon.Owned(7, lexicon.Document(text).Terms))
	}
	r := rank.Ranking{Query: lexicon.NewIDF(sample, 2).Query("red fox house"), BestWords: 2,
		Weights: rank.Weights{Words: 1}}
	texts := []string{"a fox and many small brown animals of deep forests whose fur quite often grows red",
		"the fox, quick and clever, is red", "red quick fox", "red fox", "red fox house"}
	var gains []float64
	for _, text := range texts {
		gains = append(gains, r.Near(text))
	}
	if gains[0] != 0 || gains[1] == 0 || !slices.IsSorted(gains) || gains[2] == gains[3] || gains[3] == gains[4] {
		t.Errorf("%q gain %v, want them ascending from 0", texts, gains)
	}
	if once, twice := r.Near("red fox"), r.Near("red fox, red fox"); once != twice {
		t.Errorf("a phrase gains %v, the phrase twice %v, want the same", once, twice)
	}
	if gain := (rank.Ranking{}).Near("red fox"); gain != 0 {
		t.Errorf("without a query: got %v, want 0", gain)
	}
}
