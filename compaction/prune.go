package compaction

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/recall"
)

// Pruned is the trigger of a change that only shows less of some messages: a policy made it before a prompt.
const Pruned = "prune"

// Pruning is what a policy shows less of in a view.
type Pruning struct {
	Policy string // its name
	Mode   Mode   // of the conversation's settings
	Edits  []Edit // that are new, or replace others of the same parts
	Before View
	After  View  // Before with the edits
	Asked  Asked // of a model, for lines instead of results
}

// Asked is what a model was asked for, and what that took.
type Asked struct {
	Calls                      int
	PromptTokens, OutputTokens int // as the provider counted
}

// StepCount is what the edits of a step did.
type StepCount struct {
	Step   string `json:"step"`
	Edits  int    `json:"edits"`
	Tokens int    `json:"tokens_saved"`
}

// Steps counts the edits by step, in the order of their first ones.
func (p Pruning) Steps() []StepCount {
	messages := make(map[int]recall.Message, len(p.Before.Messages))
	for _, m := range p.Before.Messages {
		messages[m.Position] = m
	}
	was := make(map[place]Edit, len(p.Before.Edits))
	for _, e := range p.Before.Edits {
		was[place{e.Position, e.Part}] = e
	}
	var counts []StepCount
	for _, e := range p.Edits {
		i := slices.IndexFunc(counts, func(c StepCount) bool { return c.Step == e.Step })
		if i < 0 {
			i = len(counts)
			counts = append(counts, StepCount{Step: e.Step})
		}
		m := messages[e.Position]
		saved := p.Before.editSaves(m, e)
		if old, ok := was[place{e.Position, e.Part}]; ok {
			saved -= p.Before.editSaves(m, old)
		}
		counts[i].Edits++
		counts[i].Tokens += saved
	}
	return counts
}

// Worthwhile reports whether the edits save tokens.
func (p Pruning) Worthwhile() bool {
	saved := 0
	for _, c := range p.Steps() {
		saved += c.Tokens
	}
	return len(p.Edits) > 0 && saved > 0
}

// Prune commits the edits of a policy as a change of a conversation's view. Nothing leaves the view; the trigger of
// compactions and the warning stay as they were. ErrConflict if the view changed since the conversation was read; a
// *Violation if something would be lost.
func (s *Store) Prune(ctx context.Context, org db.Org, c recall.Conversation, p Pruning) (Compaction, error) {
	began := time.Now()
	if err := CheckNothingLost(p.Before, Evicted{}, p.After); err != nil {
		return Compaction{}, fmt.Errorf("prune conversation %s: %w", c.ID, err)
	}
	steps := p.Steps()
	ch := Change{Trigger: Pruned, Policy: p.Policy, Mode: p.Mode, Window: p.Before.Window, FirstVisible: c.FirstVisible,
		Kept: c.Kept, Edits: p.After.Edits, Before: Estimate(p.Before), MessagesBefore: p.Before.sentMessages(),
		MessagesAfter: p.After.sentMessages(), pruned: &p, steps: steps}
	ch.Visible, ch.After = p.After.visibleTokens(), ch.Before
	for _, count := range steps {
		ch.After = max(ch.After-count.Tokens, 0)
	}
	ch.Took = time.Since(began)
	return s.Commit(ctx, org, c, ch)
}

// visibleTokens returns the tokens of the messages of the view and of its summary.
func (v View) visibleTokens() int {
	n := 0
	if v.Summary != nil {
		n = v.Summary.Tokens
	}
	for _, tokens := range shownTokens(v) {
		n = add(n, tokens)
	}
	return n
}

// KeptWhole returns the edits of a conversation that were reverted: a policy does not make them again.
func (s *Store) KeptWhole(ctx context.Context, org db.Org, c recall.Conversation) ([]Edit, error) {
	lists, err := db.All[json.RawMessage](ctx, s.DB, `
		SELECT edits FROM compactions
		WHERE org = $1 AND conversation_key = $2 AND trigger = 'prune' AND reverted_at IS NOT NULL AND edits IS NOT NULL
		ORDER BY frame`, org, c.Key)
	if err != nil {
		return nil, err
	}
	return editsIn(lists)
}

func editsIn(lists []json.RawMessage) (all []Edit, err error) {
	for _, raw := range lists {
		if len(raw) == 0 {
			continue
		}
		var edits []Edit
		if err := json.Unmarshal(raw, &edits); err != nil {
			return nil, fmt.Errorf("read the edits of a policy: %w", err)
		}
		all = append(all, edits...)
	}
	return all, nil
}

// Unpruned returns a conversation's current view without the edits of a pruning: each part is shown as before, unless
// a later edit shows less of it. ErrConflict if none of the edits is in the view any more.
func (s *Store) unpruned(ctx context.Context, org db.Org, k Compaction, c recall.Conversation) (recall.Conversation,
	error) {
	v, err := s.LoadView(ctx, org, c, PromptOverhead{})
	if err != nil {
		return c, err
	}
	was, err := s.readBefore(ctx, org, c.Key, k.Version, k.Before)
	if err != nil {
		return c, err
	}
	before, err := editsIn([]json.RawMessage{was.Clipped})
	if err != nil {
		return c, err
	}
	made, err := editsIn([]json.RawMessage{k.Edits})
	if err != nil {
		return c, err
	}
	now := v.Edits
	v.Edits = nil
	for _, e := range now {
		if !slices.Contains(made, e) {
			v.Edits = append(v.Edits, e)
			continue
		}
		same := func(was Edit) bool { return was.Position == e.Position && was.Part == e.Part }
		if i := slices.IndexFunc(before, same); i >= 0 {
			v.Edits = append(v.Edits, before[i])
		}
	}
	if slices.Equal(now, v.Edits) {
		return c, db.Conflict("Compaction %s cannot be reverted: the view has none of its edits any more", k.ID)
	}
	return withEdits(c, v)
}

// editsOfView returns the edits of a stored view.
func editsOfView(raw json.RawMessage) (edits []Edit, err error) {
	var view recall.ContextView
	if err := json.Unmarshal(raw, &view); err != nil {
		return nil, fmt.Errorf("read a stored view: %w", err)
	}
	if len(view.Clipped) > 0 {
		err = json.Unmarshal(view.Clipped, &edits)
	}
	return edits, err
}

// withEdits returns a conversation with the edits of its view.
func withEdits(c recall.Conversation, v View) (recall.Conversation, error) {
	raw, err := json.Marshal(v.Edits)
	if err != nil || v.Edits == nil {
		raw = json.RawMessage(`[]`)
	}
	c.Clipped, c.HiddenTokens = raw, c.Tokens-int64(v.visibleTokens())
	return c, err
}

// prunedSince gives a view that a reversal brings back the edits that policies made after the compaction k.
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
	made, err := editsIn(lists)
	if err != nil {
		return c, err
	}
	v, err := s.LoadView(ctx, org, c, PromptOverhead{})
	if err != nil {
		return c, err
	}
	for _, e := range made {
		if e.Position == 0 {
			continue
		}
		same := func(was Edit) bool { return was.Position == e.Position && was.Part == e.Part }
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
