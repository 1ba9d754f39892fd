package rank_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/embed/rank"
)

// angles makes vectors with a known cosine to the question.
type angles map[string]float64

func (a angles) Embed(_ context.Context, items []embed.Item) (all []embed.Vector, err error) {
	for _, item := range items {
		if cosine, known := a[item.Text]; known {
			sine := math.Sqrt(1 - cosine*cosine)
			all = append(all, embed.Vector{ID: item.ID, Values: []float32{float32(cosine), float32(sine)}})
		}
	}
	return all, nil
}

func TestMeaningCountsByHowFarItIsAboveTheOthers(t *testing.T) {
	t.Parallel()
	const question = "why is the disk full"
	texts := []string{"the disk", "no space left on the device", "apples", "pears", "plums"}
	rankTexts := func(weight float64, cosines ...float64) []int64 {
		model := angles{question: 1}
		for i, c := range cosines {
			model[texts[i]] = c
		}
		endpoint := &endpoint.Endpoint{Embedder: model, Weight: weight}
		ranking, _ := rank.Texts(t.Context(), endpoint, question, texts, rank.Arms{Words: true, Meaning: true})
		var ids []int64
		for _, row := range ranking.Rows {
			ids = append(ids, row.ID)
		}
		return ids
	}
	for _, test := range []struct {
		name    string
		weight  float64
		cosines []float64
		best    int64
	}{
		{"far above", rank.BuiltinWeight, []float64{0.3, 0.7, 0.02, 0.01, 0}, 1},
		{"hardly above", rank.BuiltinWeight, []float64{0.30, 0.31, 0.30, 0.30, 0.29}, 0},
		{"of a low weight", 0.05, []float64{0.3, 0.7, 0.02, 0.01, 0}, 0},
		{"of a model that is not known", 0, []float64{0.30, 0.31, 0.30, 0.30, 0.29}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := rankTexts(test.weight, test.cosines...); got[0] != test.best {
				t.Errorf("ranked %v", got)
			}
		})
	}
}

func TestWeightsOfArms(t *testing.T) {
	t.Parallel()
	const question = "a red fox"
	texts := []string{"red fox", "blue whale"}
	for _, test := range []struct {
		name  string
		model angles
		arms  rank.Arms
		want  rank.Weights
	}{
		{"words alone", nil, rank.Arms{Words: true}, rank.Weights{Words: 1}},
		{"a model without vectors", angles{question: 1}, rank.Arms{Words: true, Meaning: true}, rank.Weights{Words: 1}},
		{"no likeness", angles{question: 1, texts[0]: 0, texts[1]: 0}, rank.Arms{Words: true, Meaning: true},
			rank.Weights{Words: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			endpoint := &endpoint.Endpoint{Embedder: test.model, Weight: 1}
			ranking, _ := rank.Texts(t.Context(), endpoint, question, texts, test.arms)
			found := slices.ContainsFunc(ranking.Rows, func(r rank.Scored) bool { return r.ID == 0 })
			if ranking.Weights != test.want || !found {
				t.Errorf("got %+v for %+v", ranking.Weights, ranking.Rows)
			}
		})
	}
	endpoint := &endpoint.Endpoint{Embedder: angles{question: 1, texts[1]: 0.5}, Weight: 1}
	ranking, _ := rank.Texts(t.Context(), endpoint, question, texts, rank.Arms{Words: true, Meaning: true})
	if w := ranking.Weights; max(w.Words, w.Meaning) != 1 || min(w.Words, w.Meaning) <= 0 {
		t.Errorf("a single row with a vector has the weights %+v", w)
	}
}
