package files

import (
	"context"
	"errors"

	"github.com/loci-memory/loci/db"
)

// used records that an agent used files. If RecordUses runs, it records the use a little later; otherwise it is
// recorded before used returns. Nothing is recorded if the order of use would not change.
func (s *Store) used(ctx context.Context, u use) error {
	if len(u.fileIDs) == 0 || s.uses.add(u) {
		return nil
	}
	return db.UnlessFull(s.openSet(u.org, u.reach()).markUsed(ctx, u.fileIDs))
}

// RecordUses records the uses of files by searches, in the order of the searches, until ctx ends. Then it records those
// that still wait. It calls failed with the error if uses cannot be recorded.
func (s *Store) RecordUses(ctx context.Context, failed func(error)) {
	arrived := s.uses.start()
	for ended := false; !ended; {
		select {
		case <-ctx.Done():
			ended = true
			s.uses.end()
		case <-arrived:
		}
		for u, any := s.uses.next(); any; u, any = s.uses.next() {
			if err := s.recordUses(context.WithoutCancel(ctx), u); err != nil {
				failed(err)
			}
		}
	}
}

// recordUses records the waiting uses of an agent's files. When it returns, they are recorded, by this or another call.
func (s *Store) recordUses(ctx context.Context, u user) error {
	ctx, cancel := context.WithTimeout(db.WithOrg(ctx, u.org), useLength)
	defer cancel()
	fileIDs, done, err := s.uses.take(ctx, u)
	if err != nil || len(fileIDs) == 0 {
		return err
	}
	defer done()
	err = s.openSet(u.org, u.reach()).markUsed(ctx, fileIDs)
	if errors.Is(err, db.ErrNotFound) { // the agent was deleted
		return nil
	}
	return db.UnlessFull(err)
}
