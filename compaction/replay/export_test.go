package replay

import (
	"context"

	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/db"
)

// WorkSlice does the work of the job of a replay's slice, which counts from 0.
func (s *Store) WorkSlice(ctx context.Context, org db.Org, id string, slice int) error {
	return s.slice(ctx, &river.Job[args]{Args: args{Org: org, ID: id, Slice: slice}})
}

// Fail does what the last failure of a replay's job does.
func (s *Store) Fail(ctx context.Context, org db.Org, id, why string) error {
	return s.fail(ctx, args{Org: org, ID: id}, why)
}

// Check checks the sizes of a request with a number of policies and windows.
func (r Request) Check(each int) (messages int, err error) { return r.check(each) }
