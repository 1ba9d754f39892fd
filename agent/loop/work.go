package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// maxBroken is how many broken calls may come in a row. The model is told for each why it is broken.
const maxBroken = 6

// work works on the run until it ends. Its error is ctx's, errTaken, or a lasting one; in these cases the run goes on
// later.
func (w *worker) work(ctx context.Context) error {
	err := w.load(ctx)
	for err == nil {
		var s *stop
		if s, err = w.next(ctx); s != nil {
			return w.end(ctx, *s)
		}
	}
	before, _ := w.Halted(w.run.ID)
	if ctx.Err() != nil || unavailable(err) && !before.endsRun(err) || errors.Is(err, errTaken) {
		return err
	}
	switch gone := w.goesOn(ctx); {
	case errors.Is(gone, errCancelled):
		return w.end(ctx, stop{reason: StopCancelled})
	case gone != nil:
		return gone
	}
	if errors.Is(err, ErrNoModel) {
		w.Log.WarnContext(ctx, "a run cannot go on without its model", "run", w.run.ID, "error", err)
		return w.end(ctx, stop{ModelError, &Failure{Type: NoModel, Text: NoModelText(err)}})
	}
	w.Log.ErrorContext(ctx, "a run failed", "run", w.run.ID, "error", err)
	return w.end(ctx, stop{StopError, &Failure{Type: "internal_error",
		Text: "The server has a fault. Its log has the cause"}})
}

// load reads what the run has done so far.
func (w *worker) load(ctx context.Context) (err error) {
	if w.agent, err = w.Agents.Agent(ctx, w.org, w.run.AgentID); err != nil {
		return err
	}
	if w.conversation, err = w.Recall.Conversation(ctx, w.org, w.run.AgentID, w.run.Conversation); err != nil {
		return err
	}
	w.rules = readRules(w.agent)
	if w.tools, err = w.toolNames(ctx); err != nil {
		return err
	}
	if w.model.Client == nil {
		if w.model, err = w.modelFor(w.agent.ModelIn(w.conversation), w.run.Options); err != nil {
			return err
		}
	}
	steps, err := w.Steps(ctx, w.org, StepFilter{RunID: w.run.ID}, db.Page{})
	if err != nil {
		return err
	}
	if w.steps = len(steps); w.steps > 0 && steps[0].StopReason != nil {
		w.finish = *steps[0].StopReason
	}
	return w.loadTurn(ctx)
}

// loadTurn reads what the run has shown, and the turn that it continues.
func (w *worker) loadTurn(ctx context.Context) error {
	messages, err := w.produced(ctx, w.org, w.run)
	if err != nil {
		return err
	}
	if n := len(messages); n > 0 {
		w.summarized = messages[n-1].Position
	}
	if len(w.rules) > 0 {
		if w.turn, err = w.rules.readRuleInput(ctx, w.Recall, w.org, w.conversation, lastPosition); err != nil {
			return err
		}
	}
	return w.catchUp(ctx, messages)
}

// next takes the run's next step: it runs a tool, or asks the model. It returns a stop if the run ends here.
func (w *worker) next(ctx context.Context) (*stop, error) {
	if err := w.goesOn(ctx); err != nil {
		return nil, err
	}
	if r := w.run.Options.Refused; r != nil {
		return &stop{r.Reason, &r.Failure}, nil
	}
	t, err := readTail(ctx, w.Recall, w.org, w.conversation)
	if err != nil {
		return nil, err
	}
	if err := w.childrenIn(ctx, t); err != nil {
		return nil, err
	}
	own := t.answer != nil && w.made(*t.answer)
	goesOn := own || w.waits(t)
	var refused map[string]string
	if goesOn {
		refused = w.rules.refusals(w.tools, w.turn.before(t.answer.Position), *t.answer, t.results)
	}
	asks := func(p recall.Part) bool { return w.run.Options.asks(w.rules, p.Name) }
	if !own && len(t.pending) > 0 {
		clients, err := w.clientCallsOf(ctx, w.org, w.conversation, w.rules, t)
		if err != nil {
			return nil, err
		}
		asks = clients.has
	}
	for _, p := range t.pending {
		if w.waitsForChild(p.CallID) {
			continue
		}
		approved := w.approvalOf(*t.answer, p) != "" && !w.rules.has(byClient, p.Name)
		if why := refused[p.CallID]; why != "" && (own || approved || !asks(p)) {
			return nil, w.refuse(ctx, *t.answer, p, why)
		}
		if approved || !asks(p) {
			return nil, w.runTool(ctx, *t.answer, p)
		}
	}
	switch {
	case len(w.children) > 0:
		return nil, w.awaitChildren(ctx, *t.answer)
	case len(t.pending) > 0:
		if err := w.askAgain(ctx, own, t); err != nil {
			return nil, err
		}
		return &stop{reason: RequiresApproval}, nil
	case len(w.run.Options.Following) > 0:
		return nil, w.follow(ctx)
	case own && w.finish == "" && !hasCalls(*t.answer): // the answer paused
	case own || goesOn && !t.notice:
		if s, err := w.afterAnswer(ctx, &t); s != nil || err != nil {
			return s, err
		}
	}
	if w.steps >= w.run.Options.MaxSteps {
		return &stop{reason: MaxSteps}, nil
	}
	if err := w.followAnswer(ctx, t); err != nil {
		return nil, err
	}
	return w.answerOnce(ctx)
}

// followAnswer appends a note if an answer ends the conversation, because providers refuse a prompt that ends with an
// answer. That happens if a turn is tried again after an earlier try had an answer. An answer that paused must stay at
// the end of the prompt.
func (w *worker) followAnswer(ctx context.Context, t tail) error {
	if t.answer == nil || t.notice || hasCalls(*t.answer) {
		return nil
	}
	if paused, err := w.isPaused(ctx, *t.answer); paused || err != nil {
		return err
	}
	_, err := w.Recall.Append(ctx, w.org, w.agent.ID, w.conversation.ID, []recall.Draft{{Role: recall.System,
		RunID: &w.run.ID, Content: []recall.Part{{Type: recall.Text, Text: answerAgain}}}})
	return err
}

// askAgain shows the calls that wait for the client, unless the run's own answer has already shown them.
func (w *worker) askAgain(ctx context.Context, own bool, t tail) error {
	if own || w.run.Options.Waiting != nil {
		return nil
	}
	waiting := Waiting{MessageID: t.answer.ID}
	for _, p := range t.pending {
		waiting.Calls = append(waiting.Calls, p.CallID)
	}
	w.run.Options.Waiting = &waiting
	err := w.inTx(ctx, func(tx pgx.Tx) error {
		if err := setOptions(ctx, tx, w.org, w.run); err != nil {
			return err
		}
		return w.store(ctx, tx, t.answer.ID, waiting.of(*t.answer))
	})
	if err == nil {
		w.add(waiting.of(*t.answer))
	}
	return err
}

// afterAnswer returns a stop if the last answer ends the run. Otherwise it reminds the model of tools that it must
// still call, and notes that in t.
func (w *worker) afterAnswer(ctx context.Context, t *tail) (*stop, error) {
	e := w.rules.after(w.tools, w.turn.before(t.answer.Position), *t)
	reason := cmp.Or(w.finish, EndTurn)
	if e.calls {
		reason = ToolRule
	}
	switch {
	case e.spoke: // the answer, as a text without a call is
		return &stop{reason: EndTurn}, nil
	case e.ended:
		return &stop{reason: ToolRule}, nil
	case e.calls && (!e.ends || len(e.missing) == 0):
		return w.afterBroken(), nil
	case len(e.missing) == 0 || reason == MaxTokens:
		return &stop{reason: reason}, nil
	case t.notice:
		return nil, nil
	}
	d, times := w.turn.reminder(e.missing)
	if times >= maxReminders {
		return &stop{NoToolCall, &Failure{Type: NoToolCall, Text: notCalled(e.missing)}}, nil
	}
	d.RunID = &w.run.ID
	w.turn.reminders, t.notice = append(w.turn.reminders, d.Content[0].Text), true
	_, err := w.Recall.Append(ctx, w.org, w.agent.ID, w.conversation.ID, []recall.Draft{d})
	return nil, err
}

// afterBroken returns a stop if the last maxBroken calls were all broken.
func (w *worker) afterBroken() *stop {
	n := len(w.turn.calls)
	if n < maxBroken || slices.ContainsFunc(w.turn.calls[n-maxBroken:], func(c call) bool { return !c.broken }) {
		return nil
	}
	text := fmt.Sprintf("The model's last %d calls of tools were of tools that it does not have, or had arguments that "+
		"are no JSON", maxBroken)
	return &stop{BrokenCalls, &Failure{Type: BrokenCalls, Text: text}}
}
