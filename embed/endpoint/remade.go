package endpoint

import (
	"context"

	"github.com/loci-memory/loci/db"
)

// Remade is a memory whose vectors Reembed makes anew.
type Remade struct {
	Vectors
	Key      string // the column of Table by which the rows are read: Row, or that of rows with several vectors
	Openings bool   // as that of Worker

	// Read returns those of the rows with some keys that lack a vector in a space; nil if none does.
	Read func(ctx context.Context, org db.Org, space Space, keys []int64) (Rows, error)
	// Begin and Complete are called before the first row of an organization in a space and after the last; nil for
	// nothing.
	Begin, Complete func(ctx context.Context, org db.Org, space int16) error
}

// Remade lets Reembed make the vectors of the queue's rows in another space.
func (q *Queue[K]) Remade(read func(ctx context.Context, org db.Org, space Space, keys []int64) (Rows, error)) Remade {
	return Remade{Vectors: q.Vectors, Key: q.Row, Openings: q.Openings, Read: read}
}
