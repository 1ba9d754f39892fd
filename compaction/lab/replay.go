package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/lab/transcript"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/db"
)

// Settings say how a session is replayed.
type Settings struct {
	Name   string // the policy's name in the report
	Policy policy.Policy
	Window int // tokens
	Prices policy.CachePrices
	Ratio  float64        // for a ratio replay: the share of the session that prompts hold; otherwise 0
	Model  *summary.Model // writes summaries, and lines about results; nil: made without a model

	Progress func(done, all int) // is told how many messages are replayed; may be nil
}

// Replay replays a transcript turn by turn. Before each answer it applies the policy's edits, and compacts when due. It
// returns an error only if ctx ends.
func Replay(ctx context.Context, t transcript.Transcript, s Settings) (Result, error) {
	return ReplayOf(ctx, NewSession(t), s)
}

// ReplayOf is Replay for a Session. Several replays can share a Session and what it has computed. With an error it
// returns what was measured until then.
func ReplayOf(ctx context.Context, session *Session, s Settings) (Result, error) {
	r := Begin(session, s)
	for !r.Done() {
		if err := cmp.Or(r.Step(ctx), ctx.Err()); err != nil {
			return r.Result(), err
		}
		if s.Progress != nil {
			s.Progress(r.next, len(session.messages))
		}
	}
	return r.Result(), nil
}

// Replaying is a replay in progress. It advances one message at a time.
type Replaying struct {
	session  *Session
	settings Settings
	view     clip.View
	trigger  plan.TriggerState
	touched  time.Time
	before   []shownMessage // the previous prompt
	sums     map[int]uint64 // hashes of messages that are shown unchanged, by position
	next     int            // index of the next message to replay
	lines    lineCache
	hiddenBy map[int]string // position of a message that left → the step that hid it
	tokens   int            // of the messages before next, shown whole
	result   Result
}

// Begin begins the replay of a session.
func Begin(s *Session, under Settings) *Replaying {
	var recorded *Recorded
	if u := s.counted; u != nil {
		recorded = &Recorded{*u, under.Prices.Counted(u.Prompt, u.Read, u.Write)}
	}
	return &Replaying{session: s, settings: under, sums: map[int]uint64{}, lines: lineCache{},
		view:     clip.View{Window: under.Window, Fixed: s.fixed, Count: s.meter.counter()},
		hiddenBy: map[int]string{},
		result: Result{Recorded: recorded, Session: s.name, Policy: under.Name, Window: under.Window, Ratio: under.Ratio,
			OfQuestions: len(s.asked) > 0, Kinds: map[Kind]Evidence{}, Sources: map[Source]Evidence{}, Turns: []Turn{},
			Missing: []Missing{}, Reread: []Reread{}, Layers: layersOf(under.Policy)}}
}

// Done reports whether all messages are replayed.
func (r *Replaying) Done() bool { return r.next >= len(r.session.messages) }

// Step replays the next message. It returns an error only if ctx ends.
func (r *Replaying) Step(ctx context.Context) error {
	began := time.Now()
	if r.session.asks(r.next) {
		if err := r.turn(ctx, r.next); err != nil {
			return err
		}
	}
	r.readAgain(r.next)
	r.view.Messages = append(r.view.Messages, r.session.messages[r.next])
	r.tokens += r.session.messages[r.next].Tokens
	r.next++
	r.result.Wall += time.Since(began)
	return nil
}

// Result returns what the replay has measured so far; it is complete once Done.
func (r *Replaying) Result() Result {
	out := r.result
	out.Kinds, out.Sources, out.Missing = maps.Clone(out.Kinds), maps.Clone(out.Sources), slices.Clone(out.Missing)
	out.Layers, out.Reread, out.Partial = slices.Clone(out.Layers), slices.Clone(out.Reread), !r.Done()
	if r.Done() && out.OfQuestions {
		out = r.answered(out)
	}
	tokens := 0
	for _, t := range out.Turns {
		out.Tokens += t.Tokens
		out.Most = max(out.Most, t.Tokens)
		tokens += t.Kept
	}
	if out.Tokens > 0 {
		out.KeptShare = float64(tokens) / float64(out.Tokens)
	}
	return out
}

// turn makes the prompt for the answer at index i, and measures it.
func (r *Replaying) turn(ctx context.Context, i int) error {
	at := policy.Moment{Now: r.session.messages[i].CreatedAt, Touched: r.touched, Write: r.writer(ctx)}
	turn := Turn{Position: r.session.messages[i].Position, Before: clip.Estimate(r.view)}
	pruned, fresh := r.settings.Policy.Prune(r.view, at)
	if err := ctx.Err(); err != nil {
		return err
	}
	r.result.edited(r.view, pruned, fresh)
	r.view = pruned
	r.result.Edits += len(fresh)
	due, trigger := r.settings.Policy.Check(r.view, at, r.trigger)
	r.trigger = trigger
	r.pressed(at, due)
	if due.Compact {
		compacted, err := r.compact(ctx, at)
		if err != nil {
			return err
		}
		turn.Compacted = compacted
	}
	if !turn.Compacted && r.settings.Policy.TruncatesAt(clip.Estimate(r.view), r.view.Window) {
		hidden, err := r.hideOldest(ctx, at)
		if err != nil {
			return err
		}
		turn.Compacted = hidden
	}
	r.touched = at.Now
	r.result.Whole = r.session.fixed + r.tokens
	turn.Tokens = clip.Estimate(r.view)
	if r.view.Window > 0 && turn.Tokens > r.view.Window {
		r.result.TooLarge++
	}
	kept, broke := r.kept()
	if turn.Kept = min(kept, turn.Tokens); broke {
		r.result.Breaks++
	}
	r.result.Turns = append(r.result.Turns, turn)
	r.result.CachedCost += r.settings.Prices.Prompt(turn.Tokens, turn.Kept)
	r.result.Cost += r.settings.Prices.Uncached(turn.Tokens)
	r.look(i)
	return nil
}

// compact compacts the view by the policy. It returns false if there is nothing to compact.
func (r *Replaying) compact(ctx context.Context, at policy.Moment) (bool, error) {
	planned, err := r.settings.Policy.PlanAndRestore(r.view, at)
	if errors.Is(err, db.ErrInvalid) {
		return r.hideOldest(ctx, at)
	}
	if err != nil {
		return false, fmt.Errorf("plan a compaction of %s by %s: %w", r.session.name, r.settings.Name, err)
	}
	before := r.view
	made, err := r.carryOut(ctx, planned, cutterOf(r.settings.Policy))
	if made {
		r.restored(before, planned, at)
	}
	return made, err
}

// hideOldest hides the oldest messages without a summary, if the policy has a step for that. It returns false if
// nothing can leave.
func (r *Replaying) hideOldest(ctx context.Context, at policy.Moment) (bool, error) {
	planned, err := r.settings.Policy.Truncate(r.view, at)
	if errors.Is(err, db.ErrInvalid) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("plan which messages of %s leave by %s: %w", r.session.name, r.settings.Name, err)
	}
	return r.carryOut(ctx, planned, nameIn(r.settings.Policy, policy.Truncate))
}

// carryOut makes a planned compaction of a step. It returns false if that would lose something.
func (r *Replaying) carryOut(ctx context.Context, planned plan.Plan, step string) (bool, error) {
	evicted := planned.Evict(r.view)
	var written *clip.Summary
	if planned.Evicted > 0 {
		model := r.settings.Model
		if !planned.NeedsModel {
			model = nil
		}
		made, err := summary.Summarize(ctx, evicted, plan.Defaults(), model)
		if err != nil {
			return false, err
		}
		made.Tokens = r.session.summaryTokens(made)
		written = &made
		r.result.ModelCalls += made.ModelCalls
		r.result.ModelTokens += made.PromptTokens + made.OutputTokens
		if model != nil && made.How == clip.Extracted && made.Why != "" {
			r.result.ModelFailures++
		}
	}
	after := planned.View(r.view, written)
	if err := plan.CheckNothingLost(r.view, evicted, after); err != nil {
		r.result.PairErrors++
		return false, nil //nolint:nilerr // it is counted, and not made
	}
	r.left(r.view, after, step)
	r.view = after
	r.trigger = plan.TriggerState{Warned: r.trigger.Warned, Disarmed: true, Base: clip.Estimate(after)}
	r.result.Compactions++
	return true, nil
}

// look records where each entity is that the answer at index i uses.
func (r *Replaying) look(i int) {
	if r.session.uses == nil || len(r.session.uses[i]) == 0 {
		return
	}
	s := sightOf(r.view)
	for _, u := range r.session.uses[i] {
		where := s.where(u, r.session.messages)
		r.result.found(r.session, u, where, r.session.messages[i].Position)
		if where != inView {
			r.result.layer(r.hides(u)).Hidden++
		}
	}
}

// answered adds to the result where, after the session, the messages are that the transcript's questions need.
func (r *Replaying) answered(out Result) Result {
	s := sightOf(r.view)
	for _, u := range r.session.asked {
		where := s.whole(r.session.messages[u.in[0]])
		out.found(r.session, u, where, len(r.session.messages)+1)
		if where != inView {
			out.layer(r.hides(u)).Hidden++
		}
	}
	return out
}
