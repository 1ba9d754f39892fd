package recall

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Suspects are the messages of a view from before a turn. A provider may refuse or fail a prompt because of one of them
// without saying which.
type Suspects struct {
	All   []Message   // includes the summary
	Parts [][]Message // All split: the summary, the turns; the last answer that ended a turn is a part of its own
}

// Suspects returns the messages of the view from before the turn of these runs. It returns none if that turn does not
// begin with a user's message, for example if it continues with the results of calls.
func (s *Store) Suspects(ctx context.Context, org db.Org, c Conversation, runs []string) (all Suspects, err error) {
	view, err := s.View(ctx, org, c)
	if err != nil {
		return all, err
	}
	turn := slices.IndexFunc(view, func(m Message) bool { return m.RunID != nil && slices.Contains(runs, *m.RunID) })
	if turn < 0 || view[turn].Role != User {
		return all, nil
	}
	var earlier, summary []Message
	for _, m := range view[1:turn] {
		switch {
		case m.Role != Summary:
			earlier = append(earlier, m)
		case m.Refused == nil:
			summary = append(summary, m)
		}
	}
	if len(summary) > 0 {
		all.Parts = append(all.Parts, summary)
	}
	if n := lastAnswer(earlier); n >= 0 {
		all.Parts = slices.Concat(all.Parts, TurnsOf(earlier[:n+1]), [][]Message{earlier[n : n+1]}, TurnsOf(earlier[n+1:]))
	} else {
		all.Parts = append(all.Parts, TurnsOf(earlier)...)
	}
	all.All = slices.Concat(summary, earlier)
	return all, nil
}

// lastAnswer returns the index of the last answer that ended a turn; -1 if there is none.
func lastAnswer(said []Message) int {
	n := len(said) - 1
	for n >= 0 && (said[n].Role != Assistant || hasCall(said[n])) {
		n--
	}
	return n
}

// suspectSets returns sets of earlier messages, in the order in which a prompt is tried without them: what followed the
// last answer that ended a turn; the same with that answer; with the whole turn of that answer; the summary; the last
// 2, 4, 8, … turns; everything.
func suspectSets(earlier, summary []Message) (sets [][]Message) {
	begun := len(earlier) // index in said where the last set begins
	add := func(set []Message) {
		if len(set) > 0 && len(set) < len(earlier)+len(summary) {
			sets = append(sets, set)
		}
	}
	from := func(i int) {
		if i >= 0 && i < begun {
			begun = i
			add(earlier[i:])
		}
	}
	answered := lastAnswer(earlier)
	turns := TurnsOf(earlier)
	begins := make([]int, len(turns)) // turns counted from the end
	for begin, i := len(earlier), len(turns)-1; i >= 0; i-- {
		begin -= len(turns[i])
		begins[len(turns)-1-i] = begin
	}
	from(answered + 1)
	from(answered)
	for n := 1; n <= len(turns); n *= 2 {
		if from(begins[n-1]); n == 1 {
			add(summary)
		}
	}
	if all := append(slices.Clone(summary), earlier...); len(all) > 0 {
		sets = append(sets, all)
	}
	return sets
}

// Hide takes messages out of the view. It may only be called in a transaction that is rolled back, because it does not
// update the counts.
func (s *Store) Hide(ctx context.Context, org db.Org, c Conversation, messages []Message) error {
	_, err := s.db.Exec(ctx, `
		UPDATE messages SET refused = '{}' WHERE org = $1 AND conversation_key = $2 AND position = ANY ($3)`,
		org, c.Key, positionsOf(messages))
	return db.Error(err)
}

// LeaveOut takes messages out of a conversation's view, because a provider fails with them and answers without them.
// p.Note tells the model. Nothing else is appended to the conversation until the store's transaction ends.
func (s *Store) LeaveOut(ctx context.Context, org db.Org, c Conversation, p RefusedPrompt, left []Message) error {
	return db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		r := refusing{Store: s.With(tx), tx: tx, org: org, of: p}
		end, err := r.lockEnd(ctx, org, c.AgentID, c.ID)
		if err != nil {
			return err
		}
		redactor, err := r.redactor(ctx, org)
		if err != nil {
			return err
		}
		r.c, r.of.Refused = end.Conversation, *p.cleaned(redactor)
		next := LastRefusal{Trial: r.was().Trial + 1}
		if err := r.leave(ctx, left, next.Trial); err != nil {
			return err
		}
		if err := r.note(ctx, &next, withoutSummary(left), false); err != nil {
			return err
		}
		return r.finish(ctx, next)
	})
}
