package compaction

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// Task is a conversation to compact.
type Task struct {
	AgentID      string
	Conversation string // an id, or recall.DefaultConversation
	Settings     Settings
	Overhead     PromptOverhead
	Model        string        // the agent's own, provider/model; empty if it has none
	Patience     time.Duration // bounds the wait for other compactions and for the model; 0: the model's own bound
	Wait         time.Duration // bounds the wait for other compactions alone; 0: Patience
	Usage        *Usage        // of a prompt of the view of Version; nil means the provider's last report
	Version      int           // of the view
	Trigger      string        // why it is compacted; stored with the compaction
	Dry          bool          // only plan

	// Due decides from the conversation and its view whether to compact. It is called again if another request has changed
	// the view. Nil always compacts.
	Due func(recall.Conversation, View) bool

	// Plan plans as a policy says; nil plans by MakePlan.
	Plan   func(View) (Plan, error)
	Policy string // the name of the policy that plans; stored with the compaction

	late bool // Patience ended while another request compacted the conversation: no model is asked
}

// Triggers of compactions.
const (
	Manual       = "manual"
	Threshold    = "post_step_context_check" // Letta's name of usage above the trigger
	Idle         = "idle"                    // nobody asked for a prompt for as long as the policy's step idle says
	BeforePrompt = "context_window_exceeded" // an assembled prompt did not fit
)

// Result is the outcome of a Task.
type Result struct {
	Plan Plan
	Made *Compaction // nil if it was only planned, or nothing was due
	Sent int         // messages that the model saw before, including the system prompt and a summary
	Left int         // messages that the model sees after
}

// maxAttempts bounds how often a compaction is planned again because other requests changed the view.
const maxAttempts = 5

// Run compacts a conversation. It first waits for another request, on any server, that compacts the conversation. When
// Wait is over, a task with Due goes on without a model, and a task without Due returns ErrBusy. Run holds no
// transaction while it waits for a model; messages that are appended during that time stay in view. If another request
// changes the view, Run plans again. It returns a *Nothing, with a result that changes nothing, or a *TooBig (both are
// ErrInvalid), ErrNotFound, or ErrConflict if others keep changing the view.
func (s *Store) Run(ctx context.Context, org db.Org, t Task) (Result, error) {
	if t.Dry {
		return s.run(ctx, org, t)
	}
	c, err := s.Recall.Conversation(ctx, org, t.AgentID, t.Conversation)
	if err != nil {
		return Result{}, err
	}
	began := time.Now()
	release, err := s.claim(ctx, org, c, cmp.Or(t.Wait, t.Patience))
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

func (s *Store) run(ctx context.Context, org db.Org, t Task) (Result, error) {
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
		plan, err := t.plan(v)
		r := Result{Plan: plan, Sent: v.sentMessages(), Left: plan.View(v, &Summary{}).sentMessages()}
		if _, nothing := errors.AsType[*Nothing](err); nothing {
			r.Plan, r.Left = unchanged(v, t.Settings.Mode), r.Sent
		}
		if err != nil || t.Dry {
			return r, err
		}
		change, model, err := s.prepare(ctx, v, plan, t)
		if err != nil {
			return Result{}, fmt.Errorf("compact conversation %s: %w", c.ID, err)
		}
		change.Took = time.Since(began)
		made, err := s.Commit(ctx, org, c, change)
		if errors.Is(err, db.ErrConflict) && attempt < maxAttempts {
			continue
		}
		if err != nil {
			return Result{}, err
		}
		if model != nil && change.Summary.How == Extracted && made.Why != nil && s.Extracted != nil {
			s.Extracted(ctx, made, change.Summary.Detail)
		}
		if s.Made != nil {
			s.Made(ctx, made)
		}
		r.Made = &made
		return r, nil
	}
}

func (t Task) plan(v View) (Plan, error) {
	if t.Plan != nil {
		return t.Plan(v)
	}
	return MakePlan(v, t.Settings)
}

// prepare summarizes what a plan evicts and checks that nothing is lost. The model is nil if none was asked.
func (s *Store) prepare(ctx context.Context, v View, plan Plan, t Task) (ch Change, model *Model, err error) {
	given := plan.Evict(v)
	var summary *Summary
	if plan.Evicted > 0 {
		if plan.NeedsModel {
			model = s.model(ctx, t, plan)
		}
		if given.Self != nil {
			given.Self.System, given.Self.Tools = t.Overhead.System, t.Overhead.Tools
		}
		made, err := Summarize(ctx, given, t.Settings, model)
		if err != nil {
			return ch, nil, err
		}
		if t.late {
			made.Why = "another compaction of the conversation took longer than the caller could wait"
		}
		summary = &made
	}
	after := plan.View(v, summary)
	if err := CheckNothingLost(v, given, after); err != nil {
		return ch, nil, err
	}
	ch = Change{Trigger: t.Trigger, Policy: t.Policy, Mode: plan.Mode, Window: v.Window, Summary: summary,
		FirstVisible: plan.First, Kept: plan.Kept, Edits: plan.Edits, Before: plan.Before, After: plan.After,
		MessagesBefore: v.sentMessages(), MessagesAfter: after.sentMessages()}
	if summary != nil { // the summary may be shorter than its budget
		ch.After += SummaryTokens(*summary) - plan.Budget - wrapperTokens
	} else if v.Summary != nil {
		ch.Visible = v.Summary.Tokens
	}
	for _, tokens := range shownTokens(after) {
		ch.Visible = add(ch.Visible, tokens)
	}
	return ch, model, nil
}

// model returns the model that writes the summary of a plan; nil if there is none.
func (s *Store) model(ctx context.Context, t Task, plan Plan) *Model {
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
