package recall

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
)

// Refuse changes the view of a conversation after a provider refused its newest prompt for what it says, so that the
// next turn can go on:
//
//   - The refused turn leaves the view. If the refused prompt was a later one of the turn, the last answer leaves with
//     what came after it, and a note tells the model: the view is the one that the provider answered.
//   - If a caller's own loop reports a second refusal of the rest, the whole turn leaves.
//   - A refusal in a row with another may be for what came before. It is tried without suspectSets, first with
//     the turn that left for the refusal before. Either the provider takes the rest, or these messages come back, and
//     the turn leaves. A refused summary keeps its place in the view: there it says only that it was refused.
//   - If the provider refuses what is outside of the messages, none leaves, and the turn that left last comes back.
//   - A report after which nothing was asked changes nothing.
//
// Nothing else is appended to the conversation until the transaction of the store ends. Calls of these messages that
// have no result get one.
func (s *Store) Refuse(ctx context.Context, org db.Org, c Conversation, p RefusedPrompt) (out RefusedView, err error) {
	err = db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		r := refusing{Store: s.With(tx), tx: tx, org: org, of: p, out: RefusedView{Left: []string{}, Returned: []string{}}}
		end, err := r.lockEnd(ctx, org, c.AgentID, c.ID)
		if err != nil {
			return err
		}
		if r.c = end.Conversation; p.OTID != "" && r.was().OTID == p.OTID {
			out = RefusedView{Left: []string{}, Returned: []string{}, AskAgain: r.was().From > 0, Unchanged: true,
				Closed: r.was().Closed}
			return nil
		}
		redactor, err := r.redactor(ctx, org)
		if err != nil {
			return err
		}
		r.of.Refused = *p.cleaned(redactor)
		if err := r.readView(ctx); err != nil {
			return err
		}
		if r.answered, err = r.lastAnswered(ctx); err != nil {
			return err
		}
		err = r.refuse(ctx)
		out = r.out
		return err
	})
	return out, err
}

func (r *refusing) refuse(ctx context.Context) error {
	if r.of.Frame {
		return r.keepTurn(ctx, r.was())
	}
	was, last := r.was(), r.lastAnswer()
	inARow, nothingNew := was.At > r.answered, r.of.Runs == nil && r.c.Messages == was.At
	if inARow && was.Closed && nothingNew {
		r.out.Unchanged, r.out.Closed = true, true
		return nil
	}
	if inARow && was.From > 0 {
		return r.tryNext(ctx, was)
	}
	if inARow && was.Part && was.Begin > 0 && len(r.after(was.At+1)) == 0 {
		return r.leaveRest(ctx, was)
	}
	if from := r.turn(last, was.At); inARow && from <= r.c.Messages && !r.of.Alone {
		earlier := slices.DeleteFunc(was.Turn, func(position int) bool { return position >= from })
		return r.tryNext(ctx, LastRefusal{From: from, Trial: was.Trial + 1, Turn: earlier})
	}
	left, part := r.refusedTurn(last, was, inARow)
	if len(left) == 0 && r.of.Runs == nil && r.of.WithheldAt == 0 {
		r.out.Unchanged = true
		return nil
	}
	return r.leaveTurn(ctx, was, left, part)
}

// keepTurn ends a refusal of what is outside of the messages. To a caller's own loop the turn comes back that left the
// view for the report before.
func (r *refusing) keepTurn(ctx context.Context, was LastRefusal) error {
	if r.of.Runs == nil && was.At > r.answered {
		if was.From > 0 { // a trial is under way
			if err := r.bringBack(ctx, &was); err != nil {
				return err
			}
		}
		if err := r.readmit(ctx, was.Turn); err != nil {
			return err
		}
	}
	if r.of.Runs == nil {
		was = LastRefusal{Trial: was.Trial}
	}
	return r.finish(ctx, was)
}

// leaveTurn takes a refused turn out of the view, or a part of one.
func (r *refusing) leaveTurn(ctx context.Context, was LastRefusal, left []Message, part bool) error {
	if err := r.leave(ctx, left, 0); err != nil {
		return err
	}
	next := LastRefusal{Trial: was.Trial, Closed: !part, Part: part && r.of.Runs == nil}
	if !part && !r.of.Alone {
		next.Turn = positionsOf(left)
	}
	if part {
		next.Begin = r.beginOf(left[0].Position)
		if err := r.note(ctx, &next, left, true); err != nil {
			return err
		}
	}
	return r.finish(ctx, next)
}

// leaveRest takes the rest of a turn out of the view that the provider refuses without its last answer, too.
func (r *refusing) leaveRest(ctx context.Context, was LastRefusal) error {
	left := slices.DeleteFunc(slices.Clone(r.after(was.Begin)), func(m Message) bool {
		return m.Role == System && m.Position == was.At // the note of the part that left before
	})
	if err := r.leave(ctx, left, 0); err != nil {
		return err
	}
	next := LastRefusal{Trial: was.Trial, Closed: true}
	if err := r.note(ctx, &next, left, slices.ContainsFunc(left, hasCall)); err != nil {
		return err
	}
	return r.finish(ctx, next)
}

// Readmit brings the messages of a user back into the view with which runs began, because their turn is tried again.
// It must be called in a transaction.
func (s *Store) Readmit(ctx context.Context, org db.Org, c Conversation, runs []string) error {
	back, err := db.All[movedMessage](ctx, s.db, `
		UPDATE messages SET refused = NULL
		WHERE org = $1 AND conversation_key = $2 AND run_id = ANY ($3) AND step_id IS NULL AND role <> 'tool'
		  AND refused IS NOT NULL AND NOT refused ?| '{trial,again}'
		RETURNING `+movedColumns, org, c.Key, runs)
	if err != nil || len(back) == 0 {
		return err
	}
	tokens := 0
	for _, m := range back {
		tokens += m.Tokens
	}
	err = db.Exec(ctx, s.db, `
		UPDATE conversations
		SET frame = frame + 1, hidden_tokens = greatest(hidden_tokens - $3, 0), reported_tokens = 0,
		    reported_position = 0, updated_at = now()
		WHERE org = $1 AND key = $2`, org, c.Key, tokens)
	if err != nil {
		return err
	}
	_, err = event.Append(ctx, s.db.(pgx.Tx), org, event.Event{AgentID: c.AgentID, Type: event.RefusalUndone,
		RefID: c.ID})
	return err
}
