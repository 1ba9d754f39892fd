package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/recall"
)

// Prune commits a policy's edits as a change of a conversation's view. No message leaves the view, and the trigger and
// the warning stay as they were. ErrConflict if the view has changed since c was read; a *Violation if something would
// be lost.
func (s *Store) Prune(ctx context.Context, org db.Org, c recall.Conversation, p plan.Pruning) (Compaction, error) {
	began := time.Now()
	if err := plan.CheckNothingLost(p.Before, clip.Evicted{}, p.After); err != nil {
		return Compaction{}, fmt.Errorf("prune conversation %s: %w", c.ID, err)
	}
	steps := p.Steps()
	ch := Change{Trigger: plan.Pruned, Policy: p.Policy, Mode: p.Mode, Window: p.Before.Window,
		FirstVisible: c.FirstVisible,
		Kept:         c.Kept, Edits: p.After.Edits, Before: clip.Estimate(p.Before), MessagesBefore: p.Before.SentMessages(),
		MessagesAfter: p.After.SentMessages(), pruned: &p, steps: steps}
	ch.Visible, ch.After = plan.VisibleTokens(p.After), ch.Before
	for _, count := range steps {
		ch.After = max(ch.After-count.Tokens, 0)
	}
	ch.Took = time.Since(began)
	return s.Commit(ctx, org, c, ch)
}

// KeptWhole returns a conversation's reverted edits. A policy does not make them again.
func (s *Store) KeptWhole(ctx context.Context, org db.Org, c recall.Conversation) ([]clip.Edit, error) {
	lists, err := db.All[json.RawMessage](ctx, s.DB, `
		SELECT edits FROM compactions
		WHERE org = $1 AND conversation_key = $2 AND trigger = 'prune' AND reverted_at IS NOT NULL AND edits IS NOT NULL
		ORDER BY frame`, org, c.Key)
	if err != nil {
		return nil, err
	}
	return editsIn(lists)
}

// unpruned returns a conversation's current view without the edits of pruning k: each part is shown as before, unless a
// later edit shows less of it. ErrConflict if none of the edits is in the view any more.
func (s *Store) unpruned(ctx context.Context, org db.Org, k Compaction, c recall.Conversation) (recall.Conversation,
	error) {
	v, err := s.LoadView(ctx, org, c, PromptOverhead{})
	if err != nil {
		return c, err
	}
	stored, err := s.readBefore(ctx, org, c.Key, k.Version, k.Before)
	if err != nil {
		return c, err
	}
	before, err := editsIn([]json.RawMessage{stored.Clipped})
	if err != nil {
		return c, err
	}
	pruned, err := editsIn([]json.RawMessage{k.Edits})
	if err != nil {
		return c, err
	}
	current := v.Edits
	v.Edits = nil
	for _, e := range current {
		if !slices.Contains(pruned, e) {
			v.Edits = append(v.Edits, e)
			continue
		}
		same := func(stored clip.Edit) bool { return stored.Position == e.Position && stored.Part == e.Part }
		if i := slices.IndexFunc(before, same); i >= 0 {
			v.Edits = append(v.Edits, before[i])
		}
	}
	if slices.Equal(current, v.Edits) {
		return c, db.Conflict("Compaction %s cannot be reverted: the view has none of its edits any more", k.ID)
	}
	return withEdits(c, v)
}

// withEdits returns a conversation with the edits of view v.
func withEdits(c recall.Conversation, v clip.View) (recall.Conversation, error) {
	raw, err := json.Marshal(v.Edits)
	if err != nil || v.Edits == nil {
		raw = json.RawMessage(`[]`)
	}
	c.Clipped, c.HiddenTokens = raw, c.Tokens-int64(plan.VisibleTokens(v))
	return c, err
}

// prunedSince adds to a view that a reversal brings back the edits that policies made after compaction k.
func (s *Store) prunedSince(ctx context.Context, org db.Org, k Compaction, c recall.Conversation) (recall.Conversation,
	error) {
	lists, err := db.All[json.RawMessage](ctx, s.DB, `
		SELECT edits FROM compactions
		WHERE org = $1 AND conversation_key = $2 AND frame > $3 AND trigger = 'prune' AND reverted_at IS NULL
		  AND edits IS NOT NULL
		ORDER BY frame`, org, c.Key, k.Version)
	if err != nil || len(lists) == 0 {
		return c, err
	}
	edits, err := editsIn(lists)
	if err != nil {
		return c, err
	}
	v, err := s.LoadView(ctx, org, c, PromptOverhead{})
	if err != nil {
		return c, err
	}
	for _, e := range edits {
		if e.Position == 0 {
			continue
		}
		same := func(was clip.Edit) bool { return was.Position == e.Position && was.Part == e.Part }
		switch i := slices.IndexFunc(v.Edits, same); {
		case i < 0:
			v.Edits = append(v.Edits, e)
		case e.ShowsNoMoreThan(v.Edits[i]):
			v.Edits[i] = e
		}
	}
	return withEdits(c, v)
}

// reversed stores that a compaction was reverted.
func (s *Store) reversed(ctx context.Context, tx pgx.Tx, org db.Org, k Compaction) error {
	err := db.Exec(ctx, tx, `
		UPDATE compactions SET reverted_at = now() WHERE org = $1 AND key = $2 AND reverted_at IS NULL`, org, k.Key)
	if errors.Is(err, db.ErrNotFound) {
		return db.Conflict("Compaction %s was reverted already", k.ID)
	}
	if err != nil {
		return err
	}
	_, err = event.Append(ctx, tx, org, event.Event{AgentID: k.AgentID, Type: event.CompactionReverted, RefID: k.ID})
	return err
}
