package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loci-memory/loci/compaction"
	"github.com/loci-memory/loci/compaction/lab/transcript"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// Settings say under what a session is replayed.
type Settings struct {
	Name   string // of the policy, in the report
	Policy policy.Policy
	Window int // tokens
	Prices policy.CachePrices
	Model  *compaction.Model // writes summaries; nil: they are extracted
}

// Turn is a prompt for which a model was asked.
type Turn struct {
	Position  int  `json:"position"` // of its answer
	Tokens    int  `json:"tokens"`
	Kept      int  `json:"prefix_kept_tokens"` // of the prompt before, unchanged
	Compacted bool `json:"compacted,omitempty"`
}

// Result is what a replay measured. Costs are in the currency of the prices.
type Result struct {
	Session     string            `json:"session"`
	Policy      string            `json:"policy"`
	Window      int               `json:"window_tokens"`
	Turns       []Turn            `json:"turns"`
	Tokens      int               `json:"tokens"` // of all prompts
	Most        int               `json:"most_tokens"`
	CachedCost  float64           `json:"cached_cost"`   // with a provider's cache of the prefix that is kept
	Cost        float64           `json:"uncached_cost"` // without a cache
	KeptShare   float64           `json:"prefix_kept_share"`
	Compactions int               `json:"compactions"`
	Edits       int               `json:"edits"`
	ModelCalls  int               `json:"model_calls"`
	ModelTokens int               `json:"model_tokens"`
	TooLarge    int               `json:"too_large"`   // prompts that do not fit the window
	PairErrors  int               `json:"pair_errors"` // compactions that would have lost something: none is made
	Evidence    Evidence          `json:"evidence"`
	Kinds       map[Kind]Evidence `json:"evidence_by_kind"`
	Questions   Evidence          `json:"questions"` // the messages that the transcript's questions need, after its end
	Missing     []Missing         `json:"missing"`   // at most maxMissing, the first
	Wall        time.Duration     `json:"wall_ns"`
}

// maxMissing bounds the uses that a result lists.
const maxMissing = 500

// Replay replays a transcript turn by turn: before each answer it shows less by the policy, and compacts where that is
// due. It returns an error only if ctx ends.
func Replay(ctx context.Context, t transcript.Transcript, s Settings) (Result, error) {
	began := time.Now()
	r := &replay{session: newSession(t), settings: s, result: Result{Session: t.Name, Policy: s.Name, Window: s.Window,
		Kinds: map[Kind]Evidence{}}}
	r.view = compaction.View{Window: s.Window, Fixed: r.session.fixed}
	for i, m := range r.session.messages {
		if r.session.asks(i) {
			if err := r.turn(ctx, i); err != nil {
				return Result{}, err
			}
		}
		r.view.Messages = append(r.view.Messages, m)
	}
	r.ask()
	r.result.finish()
	r.result.Wall = time.Since(began)
	return r.result, nil
}

// replay is a session that is replayed.
type replay struct {
	session  session
	settings Settings
	view     compaction.View
	trigger  compaction.TriggerState
	touched  time.Time
	before   []recall.Message // as the prompt before showed them
	result   Result
}

// turn makes the prompt of the answer at an index, and measures it.
func (r *replay) turn(ctx context.Context, i int) error {
	at := policy.Moment{Now: r.session.messages[i].CreatedAt, Touched: r.touched}
	var fresh []compaction.Edit
	r.view, fresh = r.settings.Policy.Prune(r.view, at)
	r.result.Edits += len(fresh)
	due, now := r.settings.Policy.Check(r.view, at, r.trigger)
	r.trigger = now
	turn := Turn{Position: r.session.messages[i].Position}
	if due.Compact {
		made, err := r.compact(ctx, at)
		if err != nil {
			return err
		}
		turn.Compacted = made
	}
	r.touched = at.Now
	turn.Tokens = compaction.Estimate(r.view)
	if r.view.Window > 0 && turn.Tokens > r.view.Window {
		r.result.TooLarge++
	}
	shown := r.view.AsShown()
	turn.Kept = r.kept(shown)
	r.before = shown
	r.result.Turns = append(r.result.Turns, turn)
	r.result.CachedCost += r.settings.Prices.Prompt(turn.Tokens, turn.Kept)
	r.result.Cost += r.settings.Prices.Uncached(turn.Tokens)
	r.look(i)
	return nil
}

// compact compacts the view by the policy. It reports false if there is nothing to compact.
func (r *replay) compact(ctx context.Context, at policy.Moment) (bool, error) {
	plan, err := r.settings.Policy.PlanAndRestore(r.view, at)
	if errors.Is(err, db.ErrInvalid) {
		plan, err = r.settings.Policy.Truncate(r.view, at)
	}
	if errors.Is(err, db.ErrInvalid) {
		return false, nil // nothing can leave
	}
	if err != nil {
		return false, fmt.Errorf("plan a compaction of %s by %s: %w", r.session.name, r.settings.Name, err)
	}
	given := plan.Evict(r.view)
	var summary *compaction.Summary
	if plan.NeedsModel {
		made, err := compaction.Summarize(ctx, given, compaction.Defaults(), r.settings.Model)
		if err != nil {
			return false, err
		}
		made.Tokens = compaction.SummaryTokens(made)
		summary = &made
		r.result.ModelCalls += made.ModelCalls
		r.result.ModelTokens += made.PromptTokens + made.OutputTokens
	}
	after := plan.View(r.view, summary)
	if err := compaction.CheckNothingLost(r.view, given, after); err != nil {
		r.result.PairErrors++
		return false, nil //nolint:nilerr // it is counted, and not made
	}
	r.view = after
	r.trigger = compaction.TriggerState{Warned: r.trigger.Warned, Disarmed: true, Base: compaction.Estimate(after)}
	r.result.Compactions++
	return true, nil
}

// kept returns the tokens of the prompt's beginning that the prompt before had, too.
func (r *replay) kept(shown []recall.Message) int {
	kept := 0
	for i := range min(len(shown), len(r.before)) {
		if spoken(shown[i]) != spoken(r.before[i]) {
			break
		}
		kept += shown[i].Tokens
	}
	if len(r.before) > 0 {
		kept += r.session.fixed
	}
	return min(kept, compaction.Estimate(r.view))
}

// look notes where each entity is that the answer at an index uses.
func (r *replay) look(i int) {
	uses := r.session.uses[i]
	if len(uses) == 0 {
		return
	}
	s := sightOf(r.view)
	for _, u := range uses {
		where := s.where(u, r.session.messages)
		if where != inView && len(r.result.Missing) < maxMissing {
			r.result.Missing = append(r.result.Missing, Missing{Position: r.session.messages[i].Position, Entity: u.entity,
				Kind: u.kind, Newest: r.session.messages[u.in[len(u.in)-1]].Position, Where: where})
		}
		r.result.Evidence.count(where)
		kind := r.result.Kinds[u.kind]
		kind.count(where)
		r.result.Kinds[u.kind] = kind
	}
}

// ask notes where, after the session, the messages are that its questions need.
func (r *replay) ask() {
	if len(r.session.asked) == 0 {
		return
	}
	s := sightOf(r.view)
	for _, u := range r.session.asked {
		r.result.Questions.count(s.whole(r.session.messages[u.in[0]]))
	}
}

// finish sums the turns up.
func (r *Result) finish() {
	kept := 0
	for _, t := range r.Turns {
		r.Tokens += t.Tokens
		r.Most = max(r.Most, t.Tokens)
		kept += t.Kept
	}
	if r.Tokens > 0 {
		r.KeptShare = float64(kept) / float64(r.Tokens)
	}
}
