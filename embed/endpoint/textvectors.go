package endpoint

import (
	"context"
	"errors"
	"fmt"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/provider"
)

// Limits of one call of Make.
const (
	MaxMadeTexts = 2048
	MaxMadeBytes = 1_000_000
)

// TextVectors are the vectors of texts that Loci does not store.
type TextVectors struct {
	Model   string
	Vectors [][]float32 // norm 1, in the order of the texts
	Tokens  int         // of all texts together, estimated
}

// ErrNoVectors says that no embedding model is in use.
var ErrNoVectors = errors.New("No vectors are made now")

// Make returns the vectors of texts in the active space, for a caller that keeps them. It treats a single text like a
// search; several texts wait behind the texts of the queue. db.ErrInvalid if a text gets no vector (the error names
// it), or if there are too many texts.
func (d *Endpoint) Make(ctx context.Context, texts []string) (TextVectors, error) {
	if _, ok := d.Space(); !ok {
		return TextVectors{}, ErrNoVectors
	}
	from := d.source()
	made := TextVectors{Model: from.space.Model, Vectors: make([][]float32, len(texts))}
	items, size := make([]embed.Item, len(texts)), 0
	for i, text := range texts {
		items[i] = embed.Item{ID: int64(i), Text: text}
		made.Tokens += tokens(text)
		size += len(text)
	}
	switch {
	case len(texts) == 0:
		return TextVectors{}, db.Invalid("input has no text")
	case len(texts) > MaxMadeTexts:
		return TextVectors{}, db.Invalid("input has %d texts; a request takes at most %d", len(texts), MaxMadeTexts)
	case size > MaxMadeBytes:
		return TextVectors{}, db.Invalid("input has %d bytes of text; a request takes at most %d", size, MaxMadeBytes)
	}
	embedder := from.of.Embedder
	if len(texts) == 1 && from.of.Queries != nil {
		embedder = from.of.Queries
	}
	vectors, err := embedder.Embed(embed.WithBulk(ctx), items)
	for _, refused := range Refusals(err) {
		return TextVectors{}, db.Invalid("input[%d] gets no vector: %s", refused.ID, refused.Reason)
	}
	if ctx.Err() != nil {
		return TextVectors{}, ctx.Err()
	}
	if err != nil {
		return TextVectors{}, fmt.Errorf("%w: %s", ErrNoVectors, provider.Public(err))
	}
	for _, v := range vectors {
		made.Vectors[v.ID] = v.Values
	}
	for i, v := range made.Vectors {
		if v == nil {
			return TextVectors{}, db.Invalid("input[%d] is blank: a text without words gets no vector", i)
		}
	}
	return made, nil
}
