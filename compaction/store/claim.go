package store

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

const (
	claimLease  = 8 * time.Second // a claim that is not renewed for so long ends, because its server has stopped
	claimPause  = 20 * time.Millisecond
	maxPause    = 500 * time.Millisecond
	releaseTime = 5 * time.Second
)

// Claim waits until no other request, on any server, compacts the conversation. Other requests then wait until the
// caller calls release. Claim returns ErrBusy if it has waited for patience, or if the other request has worked for
// patience already: so a model that hangs delays only the first caller for the whole time. With patience 0, Claim waits
// without end.
func (s *Store) Claim(ctx context.Context, org db.Org, c recall.Conversation, patience time.Duration) (release func(),
	err error) {
	began := time.Now()
	for pause := claimPause; ; pause = min(2*pause, maxPause) {
		holder, err := uuid.NewV7() // its time is the time of the claim
		if err != nil {
			return nil, err
		}
		ours, err := s.tryClaim(ctx, org, c.Key, holder)
		if err != nil {
			return nil, err
		}
		if ours {
			return s.keepClaim(ctx, org, c.Key, holder), nil
		}
		age, err := s.claimAge(ctx, org, c.Key)
		if err != nil {
			return nil, err
		}
		if patience > 0 && max(age, time.Since(began)) >= patience {
			return nil, db.Busy("Another request compacts conversation %s; try again in some seconds", c.ID)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// claimAge returns the age of a conversation's claim; 0 if there is none.
func (s *Store) claimAge(ctx context.Context, org db.Org, conversation int64) (time.Duration, error) {
	holder, err := db.One[uuid.UUID](ctx, s.DB, `
		SELECT holder FROM compaction_claims WHERE org = $1 AND conversation_key = $2`, org, conversation)
	if errors.Is(err, db.ErrNotFound) || err == nil && holder.Version() != 7 {
		return 0, nil
	}
	return time.Since(time.Unix(holder.Time().UnixTime())), err
}

// tryClaim makes or renews a claim. It reports whether the holder has it now.
func (s *Store) tryClaim(ctx context.Context, org db.Org, conversation int64, holder uuid.UUID) (bool, error) {
	tag, err := s.DB.Exec(ctx, `
		UPDATE compaction_claims SET holder = $3, held_until = now() + make_interval(secs => $4)
		WHERE org = $1 AND conversation_key = $2 AND (holder = $3 OR held_until < now())`,
		org, conversation, holder, claimLease.Seconds())
	if err == nil && tag.RowsAffected() == 0 {
		tag, err = s.DB.Exec(ctx, `
			INSERT INTO compaction_claims (org, conversation_key, holder, held_until)
			VALUES ($1, $2, $3, now() + make_interval(secs => $4))
			ON CONFLICT DO NOTHING`, org, conversation, holder, claimLease.Seconds())
	}
	return tag.RowsAffected() > 0, db.Error(err)
}

// keepClaim renews a claim until release is called; release ends the claim.
func (s *Store) keepClaim(ctx context.Context, org db.Org, conversation int64, holder uuid.UUID) (release func()) {
	stop := db.Renew(ctx, claimLease, func(ctx context.Context) {
		_, _ = s.tryClaim(ctx, org, conversation, holder) // if this fails the claim ends, and two requests may summarize
	})
	return func() {
		stop()
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
		defer cancel()
		// If the deletion fails, the claim ends with its lease.
		_, _ = s.DB.Exec(ending, `
			DELETE FROM compaction_claims WHERE org = $1 AND conversation_key = $2 AND holder = $3`, org, conversation, holder)
	}
}
