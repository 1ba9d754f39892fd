package recall

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
)

// Refuse changes a conversation's view after a provider refused the newest prompt for its content, so that the next
// turn can go on:
//
//   - The refused turn leaves the view. If the turn had already been answered before the refused prompt, only the last
//     answer and what came after it leave, and a note tells the model. The view is then the last that the provider
//     answered.
//   - If a caller's own loop then reports that the rest is refused too, the whole turn leaves.
//   - If refusals follow each other, earlier messages may be the cause. A trial asks without each of suspectSets in
//     turn, first with the turn back in view that left at the refusal before. Either the provider accepts the rest, or
//     these messages come back and the turn leaves. A refused summary keeps its place in the view: there it says only
//     that it was refused.
//   - If the provider refuses something outside of the messages, no message leaves, and the turn that left last comes
//     back.
//   - A report changes nothing if nothing was asked since the report before.
//
// Nothing else is appended to the conversation until the store's transaction ends. Calls without a result in the
// messages that leave get a result.
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
	previous, last := r.was(), r.lastAnswer()
	inARow, nothingNew := previous.At > r.answered, r.of.Runs == nil && r.c.Messages == previous.At
	if inARow && previous.Closed && nothingNew {
		r.out.Unchanged, r.out.Closed = true, true
		return nil
	}
	if inARow && previous.From > 0 {
		return r.tryNext(ctx, previous)
	}
	if inARow && previous.Part && previous.Begin > 0 && len(r.after(previous.At+1)) == 0 {
		return r.leaveRest(ctx, previous)
	}
	if from := r.turnStart(last, previous.At); inARow && from <= r.c.Messages && !r.of.Alone {
		earlier := slices.DeleteFunc(previous.Turn, func(position int) bool { return position >= from })
		return r.tryNext(ctx, LastRefusal{From: from, Trial: previous.Trial + 1, Turn: earlier})
	}
	left, part := r.refusedTurn(last, previous, inARow)
	if len(left) == 0 && r.of.Runs == nil && r.of.WithheldAt == 0 {
		r.out.Unchanged = true
		return nil
	}
	return r.leaveTurn(ctx, previous, left, part)
}

// keepTurn ends a refusal of something outside of the messages. In a caller's own loop, the turn that left at the
// report before comes back into the view.
func (r *refusing) keepTurn(ctx context.Context, previous LastRefusal) error {
	if r.of.Runs == nil && previous.At > r.answered {
		if previous.From > 0 { // a trial is under way
			if err := r.bringBack(ctx, &previous); err != nil {
				return err
			}
		}
		if err := r.readmit(ctx, previous.Turn); err != nil {
			return err
		}
	}
	if r.of.Runs == nil {
		previous = LastRefusal{Trial: previous.Trial}
	}
	return r.finish(ctx, previous)
}

// leaveTurn takes a refused turn, or a part of one, out of the view.
func (r *refusing) leaveTurn(ctx context.Context, previous LastRefusal, left []Message, part bool) error {
	if err := r.leave(ctx, left, 0); err != nil {
		return err
	}
	next := LastRefusal{Trial: previous.Trial, Closed: !part, Part: part && r.of.Runs == nil}
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

// leaveRest takes the rest of a turn out of the view. The turn's last answer left before, and the provider refused the
// rest, too.
func (r *refusing) leaveRest(ctx context.Context, previous LastRefusal) error {
	left := slices.DeleteFunc(slices.Clone(r.after(previous.Begin)), func(m Message) bool {
		return m.Role == System && m.Position == previous.At // the note about the part that left before
	})
	if err := r.leave(ctx, left, 0); err != nil {
		return err
	}
	next := LastRefusal{Trial: previous.Trial, Closed: true}
	if err := r.note(ctx, &next, left, slices.ContainsFunc(left, hasCall)); err != nil {
		return err
	}
	return r.finish(ctx, next)
}

// Readmit brings users' messages back into the view if one of these runs began with them, because their turn is tried
// again. It must be called in a transaction.
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
	err = db.Exec(ctx, s.db, endFlushes("$1", "$2")+`
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
