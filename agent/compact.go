package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/compaction"
	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/compaction/store"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// CompactOptions change how Compact compacts.
type CompactOptions struct {
	Settings json.RawMessage // override the agent's; may be nil
	Dry      bool            // only make a plan
	Focus    string          // what the summary keeps above all; empty: nothing
}

// Compact compacts a conversation at a caller's request. ErrInvalid if there is nothing to compact, or if the messages
// that must stay do not fit; ErrBusy if another request has been compacting the conversation for a while.
func (s *Store) Compact(ctx context.Context, org db.Org, c recall.Conversation, o CompactOptions,
) (compaction.Result, error) {
	p, err := s.assembleAt(ctx, org, PromptTarget{AgentID: c.AgentID, Conversation: c.ID,
		Compaction: bytes.TrimSpace(o.Settings)})
	if err != nil {
		return compaction.Result{}, err
	}
	task := p.task(store.Manual)
	task.Dry, task.Wait, task.Settings.Focus = o.Dry, promptPatience, o.Focus
	moment, err := s.moment(ctx, org, p)
	if err != nil {
		return compaction.Result{}, err
	}
	moment.Forced = true
	if namesMode(o.Settings) {
		p.policy = policy.Effective{} // the mode is for this call, in place of the policy
	}
	task = p.planned(task, moment)
	return s.Compaction.Run(ctx, org, task)
}

// maxAttempts bounds how often a prompt is assembled until it fits, because others may append messages meanwhile.
const maxAttempts = 8

// assembleFitting returns a prompt that fits its window. If necessary, it first compacts the conversation. ErrBusy if
// others keep changing the conversation.
func (s *Store) assembleFitting(ctx context.Context, org db.Org, target PromptTarget) (p Prompt, err error) {
	stuck, now, lines := false, s.now(), newLineWriter()
	target.fits = true
	for attempt := range maxAttempts {
		previous := p
		if p, err = s.assembleAt(ctx, org, target); err != nil {
			return p, err
		}
		if attempt < maxPrunings {
			pruned, err := s.prune(ctx, org, p, now, lines)
			if pruned || errors.Is(err, db.ErrConflict) {
				stuck = false
				continue
			}
			if err != nil {
				return p, err
			}
		}
		if stuck && p.Tokens.Total >= previous.Tokens.Total && p.newest() == previous.newest() {
			err := p.refuse()
			if truncated, other := s.truncate(ctx, org, p, err); truncated || other != nil {
				stuck, err = false, other
			}
			if stuck || err != nil {
				return p, err
			}
			continue
		}
		changed, err := s.compactIfNeeded(ctx, org, p, store.BeforePrompt, promptPatience)
		if tooBig(err) {
			if truncated, other := s.truncate(ctx, org, p, err); truncated || other != nil {
				changed, err = truncated, other
			}
		}
		if err == nil && !changed && p.policy.TruncatesAt(p.Tokens.Total, p.window()) {
			changed, err = s.hideOldest(ctx, org, p)
		}
		if err == nil && !changed || err != nil && !errors.Is(err, db.ErrConflict) {
			return p, err
		}
		stuck = err == nil
	}
	return p, db.Busy("Other requests keep filling the context window of conversation %s faster than it is compacted; "+
		"try again in some seconds", p.Conversation.ID)
}

// These are limits from which on a message is refused without reading it. Its tokens were estimated when it was stored,
// and its model may count half as many.
const (
	unreadTokens  = 250_000 // only if it has at least this many tokens,
	unreadWindows = 4       // and at least this many times the window
)

// refuseNewest returns a *plan.TooBig if the newest message is the user's and far larger than the window. It cannot
// leave, so its text need not be read. With a policy that truncates, it is not refused.
func (s *Store) refuseNewest(ctx context.Context, org db.Org, p Prompt) error {
	window := p.window()
	least := max(unreadTokens, unreadWindows*window)
	if p.Conversation.Estimate() < least || p.policy.MayTruncate() {
		return nil
	}
	tokens, position, err := s.Recall.NewestOfUser(ctx, org, p.Conversation)
	if err != nil || tokens < least {
		return err
	}
	return &plan.TooBig{Window: window, Limit: p.settings.Most(window), Least: tokens, Items: []plan.Big{{
		What: fmt.Sprintf("the user message at position %d", position), Position: position, Tokens: tokens}}}
}

// refuse returns nil if the prompt fits its window even without a compaction, otherwise a *plan.TooBig.
func (p Prompt) refuse() error {
	if p.Tokens.Total <= p.settings.Most(p.window()) {
		return nil
	}
	task := p.task(store.BeforePrompt)
	v, err := store.ViewOf(p.Conversation, p.Messages, task.Overhead)
	if err != nil {
		return err
	}
	v.Usage = task.Usage
	return plan.Refuse(v, p.settings)
}

// compactIfNeeded warns if a prompt fills three quarters of its window, and compacts its conversation above the
// trigger. It reports whether the prompt changed. patience bounds the model that writes the summary; 0 keeps the
// model's own bound. ErrConflict if there is nothing to compact because another request has changed the view.
func (s *Store) compactIfNeeded(ctx context.Context, org db.Org, p Prompt, trigger string, patience time.Duration,
) (changed bool, err error) {
	settings, task := p.settings, p.task(trigger)
	window := task.Overhead.Window
	v, err := store.ViewOf(p.Conversation, p.Messages, task.Overhead)
	if err != nil {
		return false, err
	}
	v.Usage = task.Usage
	used, c := max(clip.Estimate(v), p.factor.Of(p.unread.Tokens)), p.Conversation
	state := triggerState(c)
	due, now := plan.Check(used, window, v.Open(), settings, state)
	moment, err := s.moment(ctx, org, p)
	if err != nil {
		return false, err
	}
	if p.policy.Triggers() {
		moment.Tokens = used
		due, now = p.policy.Check(v, moment, state)
		moment.Tokens = 0
	}
	if err := s.recordUsage(ctx, org, c, p.recallUsage(now)); err != nil {
		return false, err
	}
	if !due.Compact && p.unread.Count == 0 {
		if !due.Warn {
			return false, nil
		}
		line := prose.WarningLine(used, window)
		withWarning := used + 2*p.factor.Of(tokens.PerMessage+p.count(line)) // a provider may count twice as many
		if v.Open() || !settings.Warning || withWarning > settings.Limit(window) ||
			slices.ContainsFunc(v.Messages, prose.IsWarning) {
			line = ""
		}
		return s.warn(ctx, org, c, line)
	}
	if trigger != store.BeforePrompt {
		if waits, err := s.awaitsFlush(ctx, org, p); err != nil || waits {
			return false, err
		}
	}
	task.Patience = patience
	if moment.Tokens = used; trigger == store.Idle && p.policy.DueWithoutPause(v, moment, state) {
		task.Trigger = store.Threshold
	}
	moment.Tokens = 0
	task.Due = func(now recall.Conversation, v clip.View) bool {
		state := plan.TriggerState{}
		if now.Version != c.Version { // another request has compacted it: its trigger rests
			state = triggerState(now)
		}
		again, _ := plan.Check(clip.Estimate(v), window, false, settings, state)
		if p.policy.Triggers() {
			again, _ = p.policy.Check(v, moment, state)
		}
		return again.Compact || again.Deferred || plan.TooLong(v)
	}
	_, err = s.Compaction.Run(ctx, org, p.planned(task, moment)) // if nothing is due, another request has compacted it
	if most := settings.AtMost(); tooBig(err) && settings.Limit(window) < most.Limit(window) {
		task.Settings, moment.Settings = most, most
		_, err = s.Compaction.Run(ctx, org, p.planned(task, moment))
	}
	_, nothing := errors.AsType[*plan.Nothing](err)
	if nothing || tooBig(err) {
		if err := s.unchangedSince(ctx, org, p); err != nil {
			return false, err
		}
	}
	if nothing {
		return false, p.refuse()
	}
	return err == nil, err
}

// recordUsage stores the result of checking a prompt, unless the conversation already had it when it was read.
func (s *Store) recordUsage(ctx context.Context, org db.Org, c recall.Conversation, u recall.Usage) error {
	if u.Fixed == c.Fixed && u.Settled == c.Settled && u.Warned == c.Warned {
		return nil
	}
	return db.UnlessFull(s.Recall.RecordUsage(ctx, org, c.Key, c.Version, u))
}

// triggerState returns the state of a conversation's trigger, as stored.
func triggerState(c recall.Conversation) plan.TriggerState {
	return plan.TriggerState{Warned: c.Warned, Disarmed: c.Settled > 0, Base: c.Settled}
}

// unchangedSince returns ErrConflict if another request has changed the prompt's view since it was assembled, because a
// plan would not fit it any more.
func (s *Store) unchangedSince(ctx context.Context, org db.Org, p Prompt) error {
	c, err := s.Recall.Conversation(ctx, org, p.Agent.ID, p.Conversation.ID)
	if err == nil && (c.Version != p.Conversation.Version || c.Messages != p.Conversation.Messages) {
		err = db.Conflict("What the model sees of conversation %s was changed by another request since this one read it",
			c.ID)
	}
	return err
}

// warn appends an event that three quarters of a window are in use, and a line for the model, unless the line is empty
// or the warning was given before. It reports whether it appended the line.
func (s *Store) warn(ctx context.Context, org db.Org, c recall.Conversation, line string) (warned bool, err error) {
	err = db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		inTx := s.With(tx)
		first, err := inTx.Recall.MarkWarned(ctx, org, c)
		if err != nil || !first {
			return err
		}
		if line != "" {
			draft := recall.Draft{Role: recall.System, Content: []recall.Part{{Type: recall.Text, Text: line}}}
			if _, err := inTx.Recall.Append(ctx, org, c.AgentID, c.ID, []recall.Draft{draft}); err != nil {
				return err
			}
			warned = true
		}
		_, err = event.Append(ctx, tx, org, event.Event{AgentID: c.AgentID, Type: event.WindowWarning, RefID: c.ID})
		return err
	})
	return warned && err == nil, db.UnlessFull(err)
}

// Revert restores a conversation's view from before a compaction. ErrConflict if that view does not fit the window,
// another compaction came later, or the compaction was already reverted.
func (s *Store) Revert(ctx context.Context, org db.Org, k store.Compaction) (store.Compaction, error) {
	restored, err := s.Compaction.Restored(ctx, org, k)
	if err != nil {
		return store.Compaction{}, err
	}
	if n := visible(restored); tooLong(restored) {
		return store.Compaction{}, db.Conflict("The view before compaction %s has %d messages; a prompt may have at "+
			"most %d. The agent's list of messages has what the compaction hides", k.ID, n, plan.MaxMessages)
	}
	p, err := s.assembleAt(ctx, org, PromptTarget{AgentID: k.AgentID, Conversation: restored.ID,
		view: &restored.ContextView})
	if err != nil {
		return store.Compaction{}, err
	}
	window, limit := p.window(), p.settings.Limit(p.window())
	if p.Tokens.Total > limit {
		return store.Compaction{}, db.Conflict("The view before compaction %s does not fit any more: it has %d tokens, "+
			"%d more than the %d of its %d at which it would be compacted again. Set a larger context_window_limit first; "+
			"the agent's list of messages has what it hides", k.ID, p.Tokens.Total, p.Tokens.Total-limit, limit, window)
	}
	return s.Compaction.Revert(ctx, org, k, restored, p.Tokens.Total)
}

// IsWindowWarning reports whether a message only tells the model that its window fills up.
func IsWindowWarning(m recall.Message) bool { return prose.IsWarning(m) }
