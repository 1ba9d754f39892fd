package erase

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// check returns ErrInvalid unless the request names texts or a message that can be erased.
func (s *Store) check(ctx context.Context, org db.Org, r *Request) error {
	if (len(r.Texts) > 0) == (r.MessageID != "") {
		return db.Invalid("give either texts or message_id")
	}
	if r.MessageID != "" {
		if r.WholeWords {
			return db.Invalid("whole_words is for texts; leave it out with message_id")
		}
		_, err := s.messageKey(ctx, org, r.MessageID)
		r.MessageID = "message-" + db.UUID("message-", r.MessageID).String() // the form that events of runs use
		return err
	}
	for i, t := range r.Texts {
		r.Texts[i] = strings.TrimSpace(db.Clean(t))
	}
	_, err := newMatcher(r.Texts, r.WholeWords)
	return err
}

func (s *Store) messageKey(ctx context.Context, org db.Org, id string) (int64, error) {
	key, err := db.One[int64](ctx, s.DB, `SELECT key FROM messages WHERE org = $1 AND id = $2`, org,
		db.UUID("message-", id))
	return key, db.OrNotFound(err, "Message with ID %s not found", db.Short(id))
}

// Create records a request. An operator's request is worked on at once; an agent's request waits for approval.
// ErrInvalid if a text is too short; ErrNotFound if the message does not exist.
func (s *Store) Create(ctx context.Context, org db.Org, r Request) (Erasure, error) {
	if err := s.check(ctx, org, &r); err != nil {
		return Erasure{}, err
	}
	return s.record(ctx, org, r)
}

// record stores a request that was checked, and begins to work on it unless an agent asks.
func (s *Store) record(ctx context.Context, org db.Org, r Request) (Erasure, error) {
	status := Running
	if r.By.Agent != "" {
		status = Pending
	}
	args := pgx.StrictNamedArgs{"org": org, "status": status, "texts": r.Texts, "message": nil, "whole": r.WholeWords,
		"reason": nil, "by": r.By, "user": nil}
	if r.User != "" {
		args["user"] = r.User
	}
	if r.MessageID != "" {
		args["message"] = r.MessageID
	}
	if reason := strings.TrimSpace(db.Clean(r.Reason)); reason != "" {
		args["reason"] = db.Beginning(reason, 2_000)
	}
	id, err := db.One[string](ctx, s.DB, `
		INSERT INTO erasures (org, status, texts, message_id, user_id, whole_words, reason, requested_by, report, began_at)
		VALUES (@org, @status, @texts, @message, @user, @whole, @reason, @by, '{}',
		        now() + CASE WHEN @status = 'running' THEN interval '0' END)
		RETURNING id`, args)
	if err != nil {
		return Erasure{}, err
	}
	e, err := s.Erasure(ctx, org, id)
	if err != nil || status == Pending {
		return e, err
	}
	return s.begin(ctx, org, e)
}

// begin works on an erasure, unless a background loop does.
func (s *Store) begin(ctx context.Context, org db.Org, e Erasure) (Erasure, error) {
	if s.InBackground {
		return e, nil
	}
	for {
		e, err := s.Erasure(ctx, org, e.ID)
		if err != nil || e.Status != Running {
			return e, err
		}
		if err := s.work(ctx, org, e); errors.Is(err, errAtWork) {
			select {
			case <-time.After(lookAgain / 40):
			case <-ctx.Done():
				return e, ctx.Err()
			}
		} else if err != nil {
			return e, err
		}
	}
}

// Preview reports the changes that a request would make, and makes none. After an erasure it shows whether anything is
// left.
func (s *Store) Preview(ctx context.Context, org db.Org, r Request) (Report, error) {
	if err := s.check(ctx, org, &r); err != nil {
		return Report{}, err
	}
	e := Erasure{Texts: r.Texts, WholeWords: r.WholeWords}
	if r.MessageID != "" {
		e.MessageID = &r.MessageID
	}
	w, err := s.sweep(org, e)
	if err != nil {
		return Report{}, err
	}
	w.dry = true
	if r.MessageID != "" {
		if err := w.message(ctx, r.MessageID); err != nil || w.erased {
			return w.report, err
		}
		if err := w.countDerived(ctx); err != nil {
			return w.report, err
		}
	}
	if w.m != nil {
		_, err = w.pass(ctx)
	}
	return w.report, err
}

// Decide approves or denies an erasure that an agent asked for. ErrConflict if it no longer waits for a decision.
func (s *Store) Decide(ctx context.Context, org db.Org, id string, approve bool, decider Requester) (Erasure, error) {
	status := Denied
	if approve {
		status = Running
	}
	err := db.Exec(ctx, s.DB, `
		UPDATE erasures
		SET status = @status, decided_by = @by, texts = CASE WHEN @approve THEN texts END,
		    ended_at = now() + CASE WHEN NOT @approve THEN interval '0' END,
		    began_at = now() + CASE WHEN @approve THEN interval '0' END
		WHERE org = @org AND id = @id AND status = 'pending'`,
		pgx.StrictNamedArgs{"org": org, "id": id, "status": status, "by": decider, "approve": approve})
	undecidable := errors.Is(err, db.ErrNotFound)
	if err != nil && !undecidable {
		return Erasure{}, err
	}
	e, err := s.Erasure(ctx, org, id)
	if err == nil && undecidable {
		err = db.Conflict("erasure %s does not wait for a decision: it is %s", id, e.Status)
	}
	if err != nil || !approve {
		return e, err
	}
	return s.begin(ctx, org, e)
}
