package endpoint

import (
	"context"

	"github.com/loci-memory/loci/db"
)

// ReembedSource is a memory for which Reembed makes new vectors.
type ReembedSource struct {
	Vectors
	Key      string // column of Table by which rows are read: Row, or another one if rows have several vectors
	Openings bool   // as in Worker

	// Read returns the rows, among those with the given keys, that lack a vector in a space; nil if none does.
	Read func(ctx context.Context, org db.Org, space Space, keys []int64) (Rows, error)
	// Begin is called before the first row of an organization in a space, and Complete after the last. Each may be nil.
	Begin, Complete func(ctx context.Context, org db.Org, space int16) error
}

// ReembedSource lets Reembed make the vectors of the queue's rows in another space.
func (q *Queue[K]) ReembedSource(read func(ctx context.Context, org db.Org, space Space, keys []int64) (Rows, error),
) ReembedSource {
	return ReembedSource{Vectors: q.Vectors, Key: q.Row, Openings: q.Openings, Read: read}
}
