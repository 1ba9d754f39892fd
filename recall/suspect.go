package recall

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Suspects are the messages of a view from before a turn. A provider may fail because of one of them, and not say so.
type Suspects struct {
	All  []Message   // with the summary
	Sets [][]Message // parts of All, in the order in which a prompt is to be tried without them
}

// Suspects returns the messages of a view from before the turn that some runs made. A part of them is what came after
// the last turn that was answered, then this turn's answer, too, and then the summary.
func (s *Store) Suspects(ctx context.Context, org db.Org, c Conversation, runs []string) (all Suspects, err error) {
	view, err := s.View(ctx, org, c)
	if err != nil {
		return all, err
	}
	turn := slices.IndexFunc(view, func(m Message) bool { return m.RunID != nil && slices.Contains(runs, *m.RunID) })
	if turn < 0 {
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
	all.All = append(slices.Clone(summary), said...)
	answered := len(said) - 1
	for answered >= 0 && (said[answered].Role != Assistant || hasCall(said[answered])) {
		answered--
	}
	for _, set := range [][]Message{said[answered+1:], said[max(answered, 0):], summary} {
		if len(set) > 0 && len(set) < len(all.All) {
			all.Sets = append(all.Sets, set)
		}
	}
	return all, nil
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
		told := slices.DeleteFunc(slices.Clone(left), func(m Message) bool { return m.Role == Summary })
		if err := r.note(ctx, &next, told, false); err != nil {
			return err
		}
		return r.finish(ctx, next)
	})
}

func positionsOf(messages []Message) []int {
	positions := make([]int, len(messages))
	for i, m := range messages {
		positions[i] = m.Position
	}
	return positions
}
