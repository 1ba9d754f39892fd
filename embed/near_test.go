package embed_test

import (
	"slices"
	"testing"

	"github.com/loci-memory/loci/embed"
)

func TestTermsNearEachOtherGain(t *testing.T) {
	t.Parallel()
	r := embed.Ranking{Query: embed.NewIDF(sampled("fox", "house"), 2).Query("red fox house"), BestWords: 2,
		Weights: embed.Weights{Words: 1}}
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
	if gain := (embed.Ranking{}).Near("red fox"); gain != 0 {
		t.Errorf("without a query: got %v, want 0", gain)
	}
}
