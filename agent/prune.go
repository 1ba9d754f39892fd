package agent

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/loci-memory/loci/compaction"
	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/compaction/store"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall/chat"
)

// maxPrunings bounds how often a prompt's view is pruned. It is pruned again only if another request has changed it.
const maxPrunings = 3

// assemblePruned assembles a prompt after applying the edits that its policy makes now.
func (s *Store) assemblePruned(ctx context.Context, org db.Org, target PromptTarget) (p Prompt, err error) {
	now, lines := s.now(), newLineWriter()
	for range maxPrunings {
		if p, err = s.assembleAt(ctx, org, target); err != nil {
			return p, err
		}
		pruned, err := s.prune(ctx, org, p, now, lines)
		if err == nil && !pruned || err != nil && !errors.Is(err, db.ErrConflict) {
			return p, err
		}
	}
	return s.assembleAt(ctx, org, target)
}

// prune commits the edits that a prompt's policy makes in its view, and reports whether the view changed. ErrConflict
// if another request changed it meanwhile.
func (s *Store) prune(ctx context.Context, org db.Org, p Prompt, now time.Time, lines *lineWriter) (changed bool,
	err error) {
	if !p.policy.Prunes() || p.unread.Count > 0 {
		return false, nil
	}
	pruning, err := s.pruning(ctx, org, p, now, lines)
	if err != nil || !pruning.Worthwhile() {
		return false, err
	}
	_, err = s.Compaction.Prune(ctx, org, p.Conversation, pruning)
	return err == nil, db.UnlessFull(err)
}

// pruning returns the edits that a prompt's policy makes in its view now, except those that were reverted.
func (s *Store) pruning(ctx context.Context, org db.Org, p Prompt, now time.Time, lines *lineWriter) (plan.Pruning,
	error) {
	task := p.task(plan.Pruned)
	v, err := store.ViewOf(p.Conversation, p.Messages, task.Overhead)
	if err != nil {
		return plan.Pruning{}, err
	}
	v.Usage = task.Usage
	moment := policy.Moment{Now: now, Settings: p.settings, Anthropic: p.format == Anthropic}
	if moment.Touched, moment.Sent, err = s.handedOut(ctx, org, p.Conversation); err != nil {
		return plan.Pruning{}, err
	}
	lines.model = s.lineModel(ctx, p)
	moment.Write = lines.write(ctx)
	whole, err := s.Compaction.KeptWhole(ctx, org, p.Conversation)
	if err != nil {
		return plan.Pruning{}, err
	}
	_, edits := p.policy.Prune(v, moment)
	edits = slices.DeleteFunc(edits, func(e clip.Edit) bool {
		return slices.ContainsFunc(whole, func(w clip.Edit) bool {
			return w.Position == e.Position && w.Part == e.Part
		})
	})
	after := v
	after.Edits = clip.MergeEdits(v.Edits, edits)
	return plan.Pruning{Policy: p.policy.Name(), Mode: p.settings.Mode, Edits: edits, Before: v, After: after,
		Asked: lines.take()}, nil
}

func tooBig(err error) bool {
	_, is := errors.AsType[*plan.TooBig](err)
	return is
}

// truncate hides the oldest messages of a view that was refused, if the prompt's policy allows that. It reports whether
// it did.
func (s *Store) truncate(ctx context.Context, org db.Org, p Prompt, refused error) (bool, error) {
	if !tooBig(refused) {
		return false, nil
	}
	return s.hideOldest(ctx, org, p)
}

// hideOldest hides the oldest messages of a view, if the prompt's policy does that now. It reports whether it did.
func (s *Store) hideOldest(ctx context.Context, org db.Org, p Prompt) (bool, error) {
	moment, err := s.moment(ctx, org, p)
	if err != nil {
		return false, err
	}
	task := p.task(store.BeforePrompt)
	task.Patience = promptPatience
	task.Plan = func(v clip.View) (plan.Plan, error) { return p.policy.Truncate(v, moment) }
	task.Policy = p.policy.Name()
	_, err = s.Compaction.Run(ctx, org, task)
	if errors.Is(err, db.ErrInvalid) { // the policy does not truncate, or nothing can leave
		return false, nil
	}
	return err == nil, err
}

// promptPatience bounds how long a prompt waits for a model's summary, and how long a caller's compaction waits for
// another compaction. Most clients wait a minute.
const promptPatience = 25 * time.Second

// task returns the compaction task for the prompt's conversation.
func (p Prompt) task(trigger string) compaction.Task {
	tools := chat.Encode(ToolsIn(OpenAI, p.definitions))
	overhead := store.PromptOverhead{Window: p.window(), System: p.system.beginning(), Tools: tools,
		Tokens: p.counted.Tools + p.counted.instructions() + p.placeholders, ToolTokens: p.counted.Tools, Count: p.count,
		Has: toolset(p.definitions), Factor: p.factor}
	return compaction.Task{AgentID: p.Agent.ID, Conversation: p.Conversation.ID, Settings: p.settings, Overhead: overhead,
		Model: p.Agent.model(), Usage: p.usage(), Version: p.Conversation.Version, Trigger: trigger}
}
