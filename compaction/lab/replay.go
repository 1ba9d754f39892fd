package lab

import (
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
}

// Turn is a prompt that a model was asked with.
type Turn struct {
	Position  int  `json:"position"` // position of the answer
	Tokens    int  `json:"tokens"`
	Kept      int  `json:"prefix_kept_tokens"` // tokens at the beginning that did not change since the prompt before
	Compacted bool `json:"compacted,omitempty"`
}

// Result is what a replay measured. Costs are in the currency of the prices.
type Result struct {
	Session       string              `json:"session"`
	Policy        string              `json:"policy"`
	Window        int                 `json:"window_tokens"`
	Ratio         float64             `json:"ratio,omitempty"`
	Turns         []Turn              `json:"turns"`
	Tokens        int                 `json:"tokens"` // of all prompts together
	Most          int                 `json:"most_tokens"`
	CachedCost    float64             `json:"cached_cost"`   // if a provider caches the kept prefix
	Cost          float64             `json:"uncached_cost"` // without a cache
	KeptShare     float64             `json:"prefix_kept_share"`
	Compactions   int                 `json:"compactions"`
	Edits         int                 `json:"edits"`
	ModelCalls    int                 `json:"model_calls"`
	ModelTokens   int                 `json:"model_tokens"`
	ModelFailures int                 `json:"model_failures"` // summaries and lines that the model failed to write
	TooLarge      int                 `json:"too_large"`      // prompts that do not fit the window
	PairErrors    int                 `json:"pair_errors"`    // compactions that were not made: they would lose something
	OfQuestions   bool                `json:"evidence_of_questions"`
	Evidence      Evidence            `json:"evidence"` // about questions after the session, if the transcript has any
	Kinds         map[Kind]Evidence   `json:"evidence_by_kind"`
	Sources       map[Source]Evidence `json:"evidence_by_source"`
	Missing       []Missing           `json:"missing"` // the first maxMissing
	Wall          time.Duration       `json:"wall_ns"`

	// Recorded is nil if the recording has no counts.
	Recorded *Recorded `json:"recorded,omitempty" doc:"As the provider counted the recorded prompts, if known."`
}

// Recorded is what the recorded prompts of a session cost, as their provider counted them.
type Recorded struct {
	transcript.Usage
	Cost float64 `json:"cost" doc:"In the currency of the prices, with what was read from a cache and written to it."`
}

// maxMissing bounds the Missing list of a result.
const maxMissing = 500

// Replay replays a transcript turn by turn. Before each answer it applies the policy's edits, and compacts when due. It
// returns an error only if ctx ends.
func Replay(ctx context.Context, t transcript.Transcript, s Settings) (Result, error) {
	return ReplayOf(ctx, NewSession(t), s)
}

// ReplayOf is Replay for a Session. Several replays can share a Session and what it has computed.
func ReplayOf(ctx context.Context, session *Session, s Settings) (Result, error) {
	r := Begin(session, s)
	for !r.Done() {
		if err := r.Step(ctx); err != nil {
			return Result{}, err
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
	result   Result
}

// Begin begins the replay of a session.
func Begin(s *Session, under Settings) *Replaying {
	var recorded *Recorded
	if u := s.counted; u != nil {
		recorded = &Recorded{*u, under.Prices.Counted(u.Prompt, u.Read, u.Write)}
	}
	return &Replaying{session: s, settings: under, sums: map[int]uint64{}, lines: lineCache{},
		view: clip.View{Window: under.Window, Fixed: s.fixed},
		result: Result{Recorded: recorded, Session: s.name, Policy: under.Name, Window: under.Window, Ratio: under.Ratio,
			OfQuestions: len(s.asked) > 0, Kinds: map[Kind]Evidence{}, Sources: map[Source]Evidence{}, Turns: []Turn{},
			Missing: []Missing{}}}
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
	r.view.Messages = append(r.view.Messages, r.session.messages[r.next])
	r.next++
	r.result.Wall += time.Since(began)
	return nil
}

// Result returns what the replay has measured so far; it is complete once Done.
func (r *Replaying) Result() Result {
	out := r.result
	out.Kinds, out.Sources, out.Missing = maps.Clone(out.Kinds), maps.Clone(out.Sources), slices.Clone(out.Missing)
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
	var fresh []clip.Edit
	r.view, fresh = r.settings.Policy.Prune(r.view, at)
	if err := ctx.Err(); err != nil {
		return err
	}
	r.result.Edits += len(fresh)
	due, trigger := r.settings.Policy.Check(r.view, at, r.trigger)
	r.trigger = trigger
	turn := Turn{Position: r.session.messages[i].Position}
	if due.Compact {
		compacted, err := r.compact(ctx, at)
		if err != nil {
			return err
		}
		turn.Compacted = compacted
	}
	r.touched = at.Now
	turn.Tokens = clip.Estimate(r.view)
	if r.view.Window > 0 && turn.Tokens > r.view.Window {
		r.result.TooLarge++
	}
	turn.Kept = min(r.kept(), turn.Tokens)
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
		planned, err = r.settings.Policy.Truncate(r.view, at)
	}
	if errors.Is(err, db.ErrInvalid) {
		return false, nil // nothing can leave
	}
	if err != nil {
		return false, fmt.Errorf("plan a compaction of %s by %s: %w", r.session.name, r.settings.Name, err)
	}
	evicted := planned.Evict(r.view)
	var written *clip.Summary
	if planned.NeedsModel {
		made, err := summary.Summarize(ctx, evicted, plan.Defaults(), r.settings.Model)
		if err != nil {
			return false, err
		}
		made.Tokens = clip.SummaryTokens(made)
		written = &made
		r.result.ModelCalls += made.ModelCalls
		r.result.ModelTokens += made.PromptTokens + made.OutputTokens
		if r.settings.Model != nil && made.How == clip.Extracted && made.Why != "" {
			r.result.ModelFailures++
		}
	}
	after := planned.View(r.view, written)
	if err := plan.CheckNothingLost(r.view, evicted, after); err != nil {
		r.result.PairErrors++
		return false, nil //nolint:nilerr // it is counted, and not made
	}
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
		r.result.found(r.session, u, s.where(u, r.session.messages), r.session.messages[i].Position)
	}
}

// answered adds to the result where, after the session, the messages are that the transcript's questions need.
func (r *Replaying) answered(out Result) Result {
	s := sightOf(r.view)
	for _, u := range r.session.asked {
		out.found(r.session, u, s.whole(r.session.messages[u.in[0]]), len(r.session.messages)+1)
	}
	return out
}

// found counts a use by its place, its kind, and the sources of the messages with the entity. by is the position of the
// user.
func (r *Result) found(s *Session, u use, where string, by int) {
	if where != inView && len(r.Missing) < maxMissing {
		newest := s.messages[u.in[len(u.in)-1]]
		r.Missing = append(r.Missing, Missing{Position: by, Entity: u.entity, Kind: u.kind,
			First: s.messages[u.in[0]].Position, Newest: newest.Position, Where: where, Excerpt: excerpt(newest, u.entity)})
	}
	r.Evidence.count(where)
	kind := r.Kinds[u.kind]
	kind.count(where)
	r.Kinds[u.kind] = kind
	for _, source := range Sources {
		if !slices.ContainsFunc(u.in, func(i int) bool { return slices.Contains(s.sources[i], source) }) {
			continue
		}
		evidence := r.Sources[source]
		evidence.count(where)
		r.Sources[source] = evidence
	}
}
