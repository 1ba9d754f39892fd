// Package compaction keeps what a model sees of a conversation inside its context window: it plans which messages leave
// the view (plan), writes the summary that replaces them (summary), and stores both (store). It never removes a message
// from the log, and a reader of a summary can look up every message that it replaces by its position.
//
// Its files, in order: compaction.go remake.go branchsummary.go
package compaction

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/store"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/compaction/tokenmath"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// Compactor compacts conversations and keeps the compactions in its store.
type Compactor struct {
	*store.Store

	// Models returns the model that writes summaries by its handle, provider/model; an empty handle means the default. If
	// Models or its result is nil, summaries are made without a model.
	Models func(ctx context.Context, handle string) *summary.Model

	// Extracted, if not nil, is called when a compaction's summary was made without a model although there is one. detail
	// is what the model's provider said, for the operator; it is empty if the compaction's Why says everything.
	Extracted func(ctx context.Context, c store.Compaction, detail string)

	// Made, if not nil, is called with each committed compaction.
	Made func(ctx context.Context, c store.Compaction)
}

// New returns a compactor without models.
func New(d db.DB, log *recall.Store) *Compactor {
	return &Compactor{Store: &store.Store{DB: d, Recall: log}}
}

// With returns the compactor for use in transaction tx.
func (s *Compactor) With(tx pgx.Tx) *Compactor {
	in := *s
	in.Store = s.Store.With(tx)
	return &in
}

// Task is a conversation to compact.
type Task struct {
	AgentID      string
	Conversation string // an id or recall.DefaultConversation
	Settings     plan.Settings
	Overhead     store.PromptOverhead
	Model        string        // the agent's own model, provider/model; empty if it has none
	Patience     time.Duration // bounds the wait for other compactions and for the model; 0: the model's own bound
	Wait         time.Duration // bounds only the wait for other compactions; 0: Patience
	Usage        *clip.Usage   // usage of a prompt with the view of Version; nil: the provider's last report
	Version      int           // version of the view
	Trigger      string        // why it is compacted; stored with the compaction
	Dry          bool          // only make a plan

	// Due decides from the conversation and its view whether to compact. It is called again if another request changes the
	// view. Nil always compacts.
	Due func(recall.Conversation, clip.View) bool

	// Plan makes the plan of a policy; nil uses MakePlan.
	Plan   func(clip.View) (plan.Plan, error)
	Policy string // name of the policy that plans; stored with the compaction

	late bool // Patience ended while another request compacted: no model is asked
}

// Result is the outcome of a Task.
type Result struct {
	Plan plan.Plan
	Made *store.Compaction // nil if it was only planned, or nothing was due
	Sent int               // messages that the model saw before, including the system prompt and a summary
	Left int               // messages that the model sees afterwards
}

// maxAttempts is how often a compaction is planned while other requests change the view.
const maxAttempts = 5

// Run compacts a conversation. It first waits for other requests, on any server, that compact the same conversation.
// Once Wait is over, a task with Due goes on without a model, and a task without Due returns ErrBusy. Run holds no
// transaction while it waits for a model; messages that are appended meanwhile stay in view. If another request changes
// the view, Run plans again. Errors: *Nothing, with a Result that changes nothing, and *TooBig, which are both
// ErrInvalid; ErrNotFound; ErrConflict if others keep changing the view.
func (s *Compactor) Run(ctx context.Context, org db.Org, t Task) (Result, error) {
	if t.Dry {
		return s.run(ctx, org, t)
	}
	c, err := s.Recall.Conversation(ctx, org, t.AgentID, t.Conversation)
	if err != nil {
		return Result{}, err
	}
	began := time.Now()
	release, err := s.Claim(ctx, org, c, cmp.Or(t.Wait, t.Patience))
	switch {
	case err == nil:
		defer release()
	case t.Due != nil && errors.Is(err, db.ErrBusy):
		t.late = true
	default:
		return Result{}, err
	}
	if t.Patience > 0 {
		t.Patience -= time.Since(began)
		t.late = t.late || t.Patience <= 0
	}
	return s.run(ctx, org, t)
}

func (s *Compactor) run(ctx context.Context, org db.Org, t Task) (Result, error) {
	for attempt := 1; ; attempt++ {
		began := time.Now()
		c, err := s.Recall.Conversation(ctx, org, t.AgentID, t.Conversation)
		if err != nil {
			return Result{}, err
		}
		v, err := s.LoadView(ctx, org, c, t.Overhead)
		if err != nil {
			return Result{}, err
		}
		if t.Usage != nil && c.Version == t.Version {
			v.Usage = t.Usage
		}
		if t.Due != nil && !t.Due(c, v) {
			return Result{}, nil
		}
		planned, err := t.plan(v)
		r := Result{Plan: planned, Sent: v.SentMessages(), Left: planned.View(v, &clip.Summary{}).SentMessages()}
		if _, nothing := errors.AsType[*plan.Nothing](err); nothing {
			r.Plan, r.Left = plan.Unchanged(v, cmp.Or(planned.Mode, t.Settings.Mode)), r.Sent
		}
		if err != nil || t.Dry {
			return r, err
		}
		change, model, err := s.prepare(ctx, v, planned, t)
		if err != nil {
			return Result{}, fmt.Errorf("compact conversation %s: %w", c.ID, err)
		}
		change.Took = time.Since(began)
		compaction, err := s.Commit(ctx, org, c, change)
		if errors.Is(err, db.ErrConflict) && attempt < maxAttempts {
			continue
		}
		if err != nil {
			return Result{}, err
		}
		if model != nil && change.Summary.How == clip.Extracted && compaction.Why != nil && s.Extracted != nil {
			s.Extracted(ctx, compaction, change.Summary.Detail)
		}
		if s.Made != nil {
			s.Made(ctx, compaction)
		}
		r.Made = &compaction
		return r, nil
	}
}

func (t Task) plan(v clip.View) (plan.Plan, error) {
	if t.Plan != nil {
		return t.Plan(v)
	}
	return plan.MakePlan(v, t.Settings)
}

// prepare summarizes what a plan evicts, and checks that nothing is lost. The returned model is nil if none was asked.
func (s *Compactor) prepare(ctx context.Context, v clip.View, planned plan.Plan, t Task) (
	ch store.Change, model *summary.Model, err error) {
	evicted := planned.Evict(v)
	var written *clip.Summary
	if planned.Evicted > 0 {
		if planned.NeedsModel {
			model = s.model(ctx, t, planned)
		}
		if evicted.Self != nil {
			evicted.Self.System, evicted.Self.Tools = t.Overhead.System, t.Overhead.Tools
		}
		made, err := summary.Summarize(ctx, evicted, t.Settings, model)
		if err != nil {
			return ch, nil, err
		}
		if t.late {
			made.Why = "another compaction of the conversation took longer than the caller could wait"
		}
		written = &made
	}
	after := planned.View(v, written)
	if err := plan.CheckNothingLost(v, evicted, after); err != nil {
		return ch, nil, err
	}
	ch = store.Change{Trigger: t.Trigger, Policy: t.Policy, Mode: planned.Mode, Window: v.Window, Summary: written,
		FirstVisible: planned.First, Kept: planned.Kept, Edits: planned.Edits, Before: planned.Before, After: planned.After,
		MessagesBefore: v.SentMessages(), MessagesAfter: after.SentMessages(), Focus: t.Settings.Focus}
	if written != nil { // the summary may be shorter than its budget
		ch.After += clip.SummaryTokens(*written) - planned.Budget - plan.WrapperTokens
	} else if v.Summary != nil {
		ch.Visible = v.Summary.Tokens
	}
	for _, tokens := range clip.ShownTokens(after) {
		ch.Visible = tokenmath.Add(ch.Visible, tokens)
	}
	return ch, model, nil
}

// model returns the model that writes a plan's summary; nil if there is none.
func (s *Compactor) model(ctx context.Context, t Task, plan plan.Plan) *summary.Model {
	if s.Models == nil || t.late {
		return nil
	}
	handle := ""
	if plan.Self {
		handle = t.Model
	}
	if t.Settings.Model != nil {
		handle = *t.Settings.Model
	}
	m := s.Models(ctx, handle)
	if m != nil && t.Patience > 0 && (m.Patience == 0 || t.Patience < m.Patience) {
		m.Patience = t.Patience
	}
	return m
}
