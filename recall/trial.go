package recall

import (
	"context"
	"slices"

	"github.com/loci-memory/loci/db"
)

// tryNext continues a trial: the next set of messages leaves the view, and the provider is asked without them. Every
// set is tried first with the turn back in view that left before the trial, and then without that turn. The trial ends
// after the last set.
func (r *refusing) tryNext(ctx context.Context, t LastRefusal) error {
	if r.of.Alone {
		return r.endTrial(ctx, t)
	}
	if err := r.bringBack(ctx, &t); err != nil {
		return err
	}
	earlier := slices.DeleteFunc(slices.Clone(r.before(t.From)), func(m Message) bool {
		return slices.Contains(t.Turn, m.Position)
	})
	sets := suspectSets(earlier, r.summary)
	if t.Stage == 0 && len(t.Turn) > 0 && len(sets) > 0 {
		if err := r.readmit(ctx, t.Turn); err != nil {
			return err
		}
		t.Back = true
	}
	if t.Stage++; t.Stage > len(sets) && t.Back {
		if err := r.leave(ctx, r.at(t.Turn), 0); err != nil {
			return err
		}
		t.Back, t.Turn, t.Stage = false, nil, 1
	}
	if t.Stage > len(sets) {
		return r.endTrial(ctx, t)
	}
	return r.try(ctx, t, sets[t.Stage-1])
}

// try takes messages from before the refused turn out of the view.
func (r *refusing) try(ctx context.Context, next LastRefusal, left []Message) error {
	if err := r.leave(ctx, left, next.Trial); err != nil {
		return err
	}
	if err := r.note(ctx, &next, withoutSummary(left), false); err != nil {
		return err
	}
	r.out.AskAgain = true
	return r.finish(ctx, next)
}

// endTrial ends a trial in which the provider refused every prompt: the messages that were left out come back, and the
// refused turn leaves.
func (r *refusing) endTrial(ctx context.Context, trial LastRefusal) error {
	if err := r.bringBack(ctx, &trial); err != nil {
		return err
	}
	if err := r.leave(ctx, r.after(trial.From), 0); err != nil {
		return err
	}
	return r.finish(ctx, LastRefusal{Trial: trial.Trial, Closed: true})
}

// bringBack brings the messages of a trial back into the view. The notes to the model about them leave.
func (r *refusing) bringBack(ctx context.Context, trial *LastRefusal) error {
	back, err := db.All[movedMessage](ctx, r.tx, `
		UPDATE messages SET refused = NULL
		WHERE org = $1 AND conversation_key = $2 AND (refused ->> 'trial')::integer = $3
		  AND (position < $4 OR role = 'summary')
		RETURNING `+movedColumns, r.org, r.c.Key, trial.Trial, trial.From)
	if err != nil {
		return err
	}
	r.came(back)
	notes := trial.Notes
	trial.Notes = nil
	if err := r.leave(ctx, r.at(notes), trial.Trial); err != nil {
		return err
	}
	return r.readView(ctx)
}

// readmit brings messages that left the view back into it.
func (r *refusing) readmit(ctx context.Context, positions []int) error {
	back, err := db.All[movedMessage](ctx, r.tx, `
		UPDATE messages SET refused = NULL
		WHERE org = $1 AND conversation_key = $2 AND position = ANY ($3) AND refused IS NOT NULL
		RETURNING `+movedColumns, r.org, r.c.Key, positions)
	r.came(back)
	return err
}

// came records that messages are back in the view.
func (r *refusing) came(back []movedMessage) {
	slices.SortFunc(back, func(a, b movedMessage) int { return a.Position - b.Position })
	for _, m := range back {
		r.out.Returned = append(r.out.Returned, m.ID)
		r.c.HiddenTokens -= int64(m.Tokens)
	}
}

// at returns the view's messages at these positions.
func (r *refusing) at(positions []int) (all []Message) {
	for _, m := range r.view {
		if slices.Contains(positions, m.Position) {
			all = append(all, m)
		}
	}
	return all
}
