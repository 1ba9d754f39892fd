package recall

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Suspects are the messages of a view from before a turn. A provider may refuse a prompt or fail because of one of
// them, and not say so.
type Suspects struct {
	All   []Message   // with the summary
	Parts [][]Message // of All in order: the summary, and each turn; the last answer that ended a turn is a part, too
}

// Suspects returns the messages of a view from before the turn that some runs made; none if it does not begin with a
// message of the user, as a turn that goes on with the results of calls.
func (s *Store) Suspects(ctx context.Context, org db.Org, c Conversation, runs []string) (all Suspects, err error) {
	view, err := s.View(ctx, org, c)
	if err != nil {
		return all, err
	}
	turn := slices.IndexFunc(view, func(m Message) bool { return m.RunID != nil && slices.Contains(runs, *m.RunID) })
	if turn < 0 || view[turn].Role != User {
		return all, nil
	}
	var said, summary []Message
	for _, m := range view[1:turn] {
		switch {
		case m.Role != Summary:
			said = append(said, m)
		case m.Refused == nil:
			summary = append(summary, m)
		}
	}
	if len(summary) > 0 {
		all.Parts = append(all.Parts, summary)
	}
	if n := lastAnswer(said); n >= 0 {
		all.Parts = slices.Concat(all.Parts, TurnsOf(said[:n+1]), [][]Message{said[n : n+1]}, TurnsOf(said[n+1:]))
	} else {
		all.Parts = append(all.Parts, TurnsOf(said)...)
	}
	all.All = slices.Concat(summary, said)
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

// suspectSets returns parts of what came before a turn, in the order in which a prompt is to be tried without them:
// what followed the last answer that ended a turn; that answer, too; its turn; the summary; the last 2, 4, 8, … turns;
// and all.
func suspectSets(said, summary []Message) (sets [][]Message) {
	begun := len(said) // where the last set of said messages begins
	add := func(set []Message) {
		if len(set) > 0 && len(set) < len(said)+len(summary) {
			sets = append(sets, set)
		}
	}
	from := func(i int) {
		if i >= 0 && i < begun {
			begun = i
			add(said[i:])
		}
	}
	answered := lastAnswer(said)
	turns := TurnsOf(said)
	begins := make([]int, len(turns)) // counted from the last turn
	for at, i := len(said), len(turns)-1; i >= 0; i-- {
		at -= len(turns[i])
		begins[len(turns)-1-i] = at
	}
	from(answered + 1)
	from(answered)
	for n := 1; n <= len(turns); n *= 2 {
		if from(begins[n-1]); n == 1 {
			add(summary)
		}
	}
	if all := append(slices.Clone(summary), said...); len(all) > 0 {
		sets = append(sets, all)
	}
	return sets
}

// Hide takes messages out of the view, in a transaction that is rolled back: it counts nothing.
func (s *Store) Hide(ctx context.Context, org db.Org, c Conversation, messages []Message) error {
	_, err := s.db.Exec(ctx, `
		UPDATE messages SET refused = '{}' WHERE org = $1 AND conversation_key = $2 AND position = ANY ($3)`,
		org, c.Key, positionsOf(messages))
	return db.Error(err)
}

// LeaveOut takes messages out of the view of a conversation, because a provider fails with them and answers without
// them. The model is told by the note of p. Nothing else is appended to the conversation until the transaction of the
// store ends.
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
