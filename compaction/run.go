package compaction

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// Job is a conversation that is to be compacted.
type Job struct {
	AgentID      string
	Conversation string // an id, or recall.DefaultConversation
	Settings     Settings
	Beside       Beside
	Model        string        // the agent's own, provider/model; empty where it has none
	Patience     time.Duration // of the model that writes the summary, if less than its own
	Usage        *Usage        // what is known of the prompt in the frame of version Frame; nil is what a provider reported, if any did
	Frame        int
	Trigger      string // what it is for, to be kept with it
	Dry          bool   // only plan it

	// Turns are the messages of a view up to a position as the agent's own model was sent them, the system prompt and a summary first; nil
	// makes them of the log.
	Turns func(v View, to int) []Turn

	// Due looks at a view before it is planned for, and again when another request changed it meanwhile. If it says no, nothing is done;
	// nil always says yes.
	Due func(View) bool
}

// Triggers of compactions.
const (
	Manual    = "manual"
	Threshold = "post_step_context_check" // Letta's name of usage beyond the threshold
	Handout   = "context_window_exceeded" // before a prompt was handed out that would not have fitted
)

// Result is what became of a Job.
type Result struct {
	Plan Plan
	Made *Compaction // nil where it was only planned, or nothing was due
	Sent int         // messages that the model saw before, the system prompt and a summary counted
	Left int         // and after
}

// attempts is how often a compaction is planned while other requests change what it is of.
const attempts = 5

// Run compacts a conversation. It holds neither a transaction nor a lock while a model is thinking; messages that are appended meanwhile
// stay in view. Where another request changes what the model sees, it plans anew. Its errors are a *Nothing and a *TooBig, which are
// ErrInvalid, ErrNotFound, and ErrConflict if others keep changing the view.
func (s *Store) Run(ctx context.Context, org db.Org, j Job) (Result, error) {
	policy, err := j.Settings.Mode.Policy()
	if err != nil {
		return Result{}, err
	}
	for attempt := 1; ; attempt++ {
		began := time.Now()
		c, err := s.Recall.Conversation(ctx, org, j.AgentID, j.Conversation)
		if err != nil {
			return Result{}, err
		}
		v, err := s.Load(ctx, org, c, j.Beside)
		if err != nil {
			return Result{}, err
		}
		if j.Usage != nil && c.Version == j.Frame {
			v.Usage = j.Usage
		}
		if j.Due != nil && !j.Due(v) {
			return Result{}, nil
		}
		plan, err := policy.Plan(v, j.Settings)
		r := Result{Plan: plan, Sent: sent(v), Left: sent(plan.View(v, &Summary{}))}
		if err != nil || j.Dry {
			return r, err
		}
		made, err := s.carryOut(ctx, org, c, v, plan, j, began)
		if errors.Is(err, db.ErrConflict) && attempt < attempts {
			continue
		}
		if err != nil {
			return Result{}, err
		}
		r.Made = &made
		return r, nil
	}
}

// carryOut summarises what a plan evicts, checks that nothing is lost, and commits.
func (s *Store) carryOut(ctx context.Context, org db.Org, c recall.Conversation, v View, plan Plan, j Job, began time.Time) (Compaction, error) {
	given := plan.Evict(v)
	var sum *Summary
	var model *Model
	if plan.NeedsModel {
		model = s.model(ctx, j, plan)
		if given.Self != nil {
			given.Self.System, given.Self.Tools = j.Beside.System, j.Beside.Tools
			if j.Turns != nil {
				given.Self.Turns = j.Turns(v, plan.To)
			}
		}
		made, err := Summarize(ctx, given, j.Settings, model)
		if err != nil {
			return Compaction{}, err
		}
		sum = &made
	}
	after := plan.View(v, sum)
	if err := Conserve(v, given, after); err != nil {
		return Compaction{}, fmt.Errorf("compact conversation %s: %w", c.ID, err)
	}
	ch := Change{Trigger: j.Trigger, Mode: plan.Mode, Window: v.Window, Summary: sum, FirstVisible: plan.First, Kept: plan.Kept, Clips: plan.Clips,
		Before: plan.Before, After: plan.After, MessagesBefore: sent(v), MessagesAfter: sent(after), Took: time.Since(began)}
	if sum != nil { // which takes less than it might have
		ch.After += SummaryTokens(*sum) - plan.Budget - wrapperTokens
	} else if v.Summary != nil {
		ch.Visible = v.Summary.Tokens
	}
	for _, tokens := range shownTokens(after) {
		ch.Visible = add(ch.Visible, tokens)
	}
	made, err := s.Commit(ctx, org, c, ch)
	if err == nil && model != nil && sum.How == Extracted && made.Why != nil && s.Extracted != nil {
		s.Extracted(ctx, made)
	}
	return made, err
}

// model is the one that writes the summary of a plan; nil is none.
func (s *Store) model(ctx context.Context, j Job, plan Plan) *Model {
	if s.Models == nil {
		return nil
	}
	handle := ""
	if plan.Self {
		handle = j.Model
	}
	if j.Settings.Model != nil {
		handle = *j.Settings.Model
	}
	m := s.Models(ctx, handle)
	if m != nil && j.Patience > 0 && (m.Patience == 0 || j.Patience < m.Patience) {
		m.Patience = j.Patience
	}
	return m
}

// sent is how many messages a model is sent, the system prompt and the summary counted.
func sent(v View) int {
	n := 1 + len(v.Messages)
	if v.Summary != nil {
		n++
	}
	return n
}
