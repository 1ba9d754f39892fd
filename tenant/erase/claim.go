package erase

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loci-memory/loci/db"
)

// claim is how long the server that works on an erasure may be silent before another one takes it over.
const claim = 20 * time.Second

// whileClaimed works on an erasure, and says every quarter of the claim that this server still does.
func (s *Store) whileClaimed(ctx context.Context, org db.Org, e Erasure) error {
	stop := db.Renew(ctx, claim, func(ctx context.Context) {
		_ = db.Exec(ctx, s.DB, `UPDATE erasures SET claimed_at = now() WHERE org = $1 AND key = $2`, org, e.Key)
	})
	defer stop()
	return s.work(ctx, org, e)
}

// Run works on the erasures that are running, of every organization, and returns how many it ended, and what failed. It
// takes over those of a server that stopped: what is erased already has no occurrence any more, so that they begin
// again. One that fails is tried again later, and holds up no other.
func (s *Store) Run(ctx context.Context) (ended int, err error) {
	for {
		list, failed := s.next(ctx)
		if failed != nil || len(list) == 0 {
			return ended, errors.Join(err, failed)
		}
		e, org := list[0], db.Org(list[0].Org)
		switch failed = s.whileClaimed(db.WithOrg(ctx, org), org, e.Erasure); {
		case errors.Is(failed, errAtWork):
			failed = s.giveBack(ctx, org, e.Key, lookAgain)
		case failed != nil && ctx.Err() != nil: // another server may go on at once
			failed = errors.Join(failed, s.giveBack(context.WithoutCancel(ctx), org, e.Key, 0))
		case failed != nil:
			failed = errors.Join(fmt.Errorf("erasure %s: %w", e.ID, failed), s.giveBack(ctx, org, e.Key, afterFailure))
		default:
			ended++
		}
		if err = errors.Join(err, failed); ctx.Err() != nil {
			return ended, err
		}
	}
}

// afterFailure is when an erasure that failed is tried again.
const afterFailure = time.Minute

// giveBack lets any server go on with an erasure after a time.
func (s *Store) giveBack(ctx context.Context, org db.Org, key int64, after time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return db.Exec(ctx, s.DB, `
		UPDATE erasures SET claimed_at = now() - $3::interval WHERE org = $1 AND key = $2`, org, key, claim-after)
}

// claimed is an erasure of an organization.
type claimed struct {
	Org int32 `db:"org"`
	Erasure
}

// next claims an erasure of any organization that no living server works on; the list is empty if all are worked on.
func (s *Store) next(ctx context.Context) ([]claimed, error) {
	return db.All[claimed](ctx, s.DB, `
		WITH next AS MATERIALIZED (
			SELECT org, key FROM erasures
			WHERE status = 'running' AND (claimed_at IS NULL OR claimed_at < now() - $1::interval)
			ORDER BY org, key
			LIMIT 1
			FOR UPDATE SKIP LOCKED
		)
		UPDATE erasures e SET claimed_at = now()
		FROM next
		WHERE e.org = next.org AND e.key = next.key
		RETURNING e.org, e.key, e.ends_as, e.id, e.status, e.texts, e.message_id, e.whole_words, e.reason, e.requested_by,
		          e.decided_by, e.report, e.created_at, e.ended_at`, claim)
}
