// Package embed turns texts into word weights, which need no model, and into vectors, which an embeddings endpoint
// makes, and searches by both. It owns the tokenizer, the BM25 weights of documents and queries, the fusion of both
// rankings, the queue of texts that wait for vectors, the client of OpenAI-compatible endpoints, and the table of
// embedding spaces.
//
// Words: [Document] weighs a text without knowing any other text; [IDF] weighs a query by a sample of the texts it
// searches; their inner product is BM25. Meaning: an [Embedder] gives unit vectors, whose inner product is the cosine.
// [Fuse] ranks by both.
//
// Each file uses those that are named before it:
//   - what all of the package work with: embed.go bulk.go turns.go
//   - from a text to its terms: stem.go wordlists.go words.go propernames.go sieve.go tokenize.go
//   - weights of words, of texts and of queries: expand.go bm25.go pairs.go idf.go
//   - the client of an endpoint: openai.go refusal.go batch.go spaces.go batchsize.go pace.go endpoint.go
//     queryvector.go recent.go made.go
//   - vectors of rows, and the queue of texts that wait for them: queue.go vectorindex.go
//   - vectors of another model: remade.go reembed.go reembedprogress.go reembedslice.go reembedrun.go
//   - searches: fuse.go rerank.go ranking.go sharing.go confidence.go weights.go near.go remarks.go bywords.go
//     search.go spelling.go explain.go reweigh.go texts.go
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
// order of the items. If the provider refuses some texts, it returns the other vectors with an error that holds a
// *[RefusedError] for each refused text. If the provider fails, it returns no vector and an error that holds none.
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

func opening(text string, chars int) string {
	if len(text) <= chars {
		return text
	}
	n := 0
	for at := range text {
		if n == chars {
			return text[:at]
		}
		n++
	}
	return text
}
