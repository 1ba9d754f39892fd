// Package embed holds what the makers of vectors agree on: items, unit vectors, whose inner product is the cosine, and
// the [Embedder] that makes the ones from the others. Its parts turn texts into word weights, which need no model
// (lexicon), and into vectors (endpoint, local), and search by both (rank).
//
// Its files, in order: embed.go bulk.go
package embed

import (
	"context"
	"math"
)

// Item is a text to embed. The ID is the caller's; it comes back with the vector.
type Item struct {
	ID   int64
	Text string
}

// Vector is the embedding of the item with the same ID. Its L2 norm is 1.
type Vector struct {
	ID     int64
	Values []float32
}

// Embedder makes vectors of texts, all of one dimension. It returns a vector for each text that is not blank, in the
// order of the items. If the provider refuses some texts, it returns the other vectors with an error that holds an
// *endpoint.RefusedError for each refused text. If the provider fails, it returns no vector and an error that holds
// none.
type Embedder interface {
	Embed(ctx context.Context, items []Item) ([]Vector, error)
}

// Normalize returns v scaled to the L2 norm 1 in a new slice, or nil if v has no direction: all zero, empty, or not
// finite.
func Normalize(v []float32) []float32 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if !(sum > 0) || math.IsInf(sum, 0) {
		return nil
	}
	norm := math.Sqrt(sum)
	unit := make([]float32, len(v))
	for i, x := range v {
		unit[i] = float32(float64(x) / norm)
	}
	return unit
}
