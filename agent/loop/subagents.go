package loop

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// startedChild is a sub-agent that the run waits for. Its return becomes the result of the call that started it.
type startedChild struct {
	id       string
	call     recall.Part
	position int // of the answer
}

// childrenIn returns the sub-agents whose calls still wait for their results. It shows the results that have come.
func (w *worker) childrenIn(ctx context.Context, t tail) error {
	var waiting []startedChild
	for _, c := range w.children {
		if t.answer == nil || t.answer.Position != c.position {
			continue
		}
		result, has := t.results[c.call.CallID]
		if !has {
			waiting = append(waiting, c)
			continue
		}
		err := w.showResult(ctx, t.resultIn[c.call.CallID], call{done: done{tool: named(w.tools, c.call.Name),
			result: result.Text, failed: result.IsError}, position: c.position, part: partOf(*t.answer, c.call)})
		if err != nil {
			return err
		}
	}
	if len(waiting) < len(w.children) {
		w.looks = 0
	}
	w.children = waiting
	return nil
}

// waitsForChild reports whether a sub-agent works on the result of a call.
func (w *worker) waitsForChild(callID string) bool {
	return slices.ContainsFunc(w.children, func(c startedChild) bool { return c.call.CallID == callID })
}

// awaitChildren pauses while sub-agents work. If one was cancelled, its call gets a result that says so.
func (w *worker) awaitChildren(ctx context.Context, answer recall.Message) error {
	for _, c := range w.children {
		s, err := w.Tools.Subagents.State(ctx, w.org, w.agent.ID, c.id)
		switch {
		case errors.Is(err, db.ErrNotFound):
			s.Cancelled = "It was deleted."
		case err != nil:
			return err
		}
		if s.Cancelled != "" {
			return w.refuse(ctx, answer, c.call, "The sub-agent "+c.id+" has returned nothing. "+s.Cancelled)
		}
	}
	pause := time.NewTimer(min(firstLook<<min(w.looks, 10), longestLook))
	defer pause.Stop()
	w.looks++
	select {
	case <-pause.C:
	case <-w.cancel:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// The first and the longest pause between two looks at sub-agents.
const (
	firstLook   = 20 * time.Millisecond
	longestLook = time.Second
)

// ResultOf returns the message, still without the result, that answers a call for which a run of the conversation
// waits: with that run, the step of the call, and how the call was approved. All are empty if no run works there.
func (l *Loop) ResultOf(ctx context.Context, org db.Org, place recall.CallPlace) (d recall.Draft, a recall.Approval,
	err error) {
	c, err := l.Recall.Conversation(ctx, org, place.AgentID, place.Conversation)
	if err != nil {
		return d, a, err
	}
	r, err := activeIn(ctx, l.DB, org, c.ID)
	if err != nil {
		return d, a, ignoreNotFound(err)
	}
	t, err := readTail(ctx, l.Recall, org, c)
	if err != nil || t.answer == nil || t.answer.Position != place.Position {
		return d, a, err
	}
	if t.answer.RunID == nil || *t.answer.RunID != r.ID {
		a = approvalIn(r.Options.Approved, place.ID)
	}
	return recall.Draft{RunID: &r.ID, StepID: t.answer.StepID}, a, nil
}
