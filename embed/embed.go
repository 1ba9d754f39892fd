// Package embed defines what all makers of vectors share: items, unit vectors (their inner product is the cosine) and
// the [Embedder], which makes vectors for items. Its subpackages turn texts into word weights, which need no model
// (lexicon), and into vectors (endpoint, local), and search by both (rank).
// Its files, in order: embed.go bulk.go
package embed

import (
	"context"
	"math"
)

// Item is a text to embed. The caller chooses the ID; the vector has the same one.
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
// order of the items. If the provider refuses some texts, it returns the other vectors and an error with an
// *endpoint.RefusedError for each refused text. If the provider fails, it returns no vector and an error without any
// *endpoint.RefusedError.
type Embedder interface {
	Embed(ctx context.Context, items []Item) ([]Vector, error)
}

// Normalize returns v scaled to the L2 norm 1 in a new slice. It returns nil if v has no direction: if it is all zero,
// empty or not finite.
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
