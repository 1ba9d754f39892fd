package apikey

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/loci-memory/loci/db"
)

// closed remembers, for closedFor, that requests need a key. Requests without one then cost no SQL statement.
type closed struct{ at atomic.Pointer[time.Time] }

// closedFor is how long a server may still refuse requests without a key after another process called Reopen.
const closedFor = time.Second

func (c *closed) is() bool {
	at := c.at.Load()
	return at != nil && time.Since(*at) < closedFor
}

// OpenOrg returns the default organization until the first key is created. From then on it returns ErrNotFound, even if
// all keys are revoked.
func (s *Store) OpenOrg(ctx context.Context) (db.Org, error) {
	if s.closed.is() {
		return 0, db.ErrNotFound
	}
	org, err := db.One[db.Org](ctx, s.DB, `
		SELECT org FROM organizations WHERE name = $1 AND NOT EXISTS (SELECT FROM keys_required)`, DefaultOrg)
	if errors.Is(err, db.ErrNotFound) {
		s.closed.at.Store(new(time.Now()))
	}
	return org, err
}

// Reopen makes OpenOrg return the default organization again, unless a key exists.
func (s *Store) Reopen(ctx context.Context) error {
	_, err := s.DB.Exec(ctx, `DELETE FROM keys_required WHERE NOT EXISTS (SELECT FROM api_keys)`)
	s.closed.at.Store(nil)
	return db.Error(err)
}
