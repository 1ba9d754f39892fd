package erase

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loci-memory/loci/db"
)

// claim is a timeout: if a server is silent for so long, another server takes over its erasure.
const claim = 20 * time.Second

// whileClaimed works on an erasure, and renews this server's claim every quarter of claim.
func (s *Store) whileClaimed(ctx context.Context, org db.Org, e Erasure) error {
	stop := db.Renew(ctx, claim, func(ctx context.Context) {
		_ = db.Exec(ctx, s.DB, `UPDATE erasures SET claimed_at = now() WHERE org = $1 AND key = $2`, org, e.Key)
	})
	defer stop()
	return s.work(ctx, org, e)
}

// Run works on the running erasures of every organization. It returns how many it ended, and the errors. It takes over
// erasures from servers that stopped, and starts them from the beginning; texts erased already are not found again. An
// erasure that fails is tried again later and does not hold up the others.
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
		// Let another server go on at once.
		case failed != nil && ctx.Err() != nil:
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

// afterFailure is how long a failed erasure waits before it is tried again.
const afterFailure = time.Minute

// giveBack lets any server continue the erasure after the given time.
func (s *Store) giveBack(ctx context.Context, org db.Org, key int64, after time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return db.Exec(ctx, s.DB, `
		UPDATE erasures SET claimed_at = now() - $3::interval WHERE org = $1 AND key = $2`, org, key, claim-after)
}

// claimed is an erasure and its organization.
type claimed struct {
	Org int32 `db:"org"`
	Erasure
}

// next claims an erasure, of any organization, on which no living server works. The list is empty if there is none.
func (s *Store) next(ctx context.Context) (list []claimed, err error) {
	err = db.EachOrg(ctx, s.DB, func(org db.Org) error {
		if len(list) > 0 {
			return nil
		}
		list, err = s.nextOf(ctx, org)
		return err
	}, `
		SELECT DISTINCT org FROM erasures
		WHERE status = 'running' AND (claimed_at IS NULL OR claimed_at < now() - $1::interval)
		ORDER BY org`, claim)
	if len(list) > 0 {
		return list, nil
	}
	return list, err
}

// nextOf is next for one organization.
func (s *Store) nextOf(ctx context.Context, org db.Org) ([]claimed, error) {
	return db.All[claimed](ctx, s.DB, `
		WITH next AS MATERIALIZED (
			SELECT key FROM erasures
			WHERE org = $1 AND status = 'running' AND (claimed_at IS NULL OR claimed_at < now() - $2::interval)
			ORDER BY key
			LIMIT 1
			FOR UPDATE SKIP LOCKED
		)
		UPDATE erasures e SET claimed_at = now()
		FROM next
		WHERE e.org = $1 AND e.key = next.key
		RETURNING e.org, e.key, e.ends_as, e.id, e.status, e.texts, e.message_id, e.user_id, e.whole_words, e.reason,
		          e.requested_by, e.decided_by, e.report, e.created_at, e.ended_at`, org, claim)
}
