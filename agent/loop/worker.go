package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// worker works on a run. What it does next follows from the log, so that it can go on where another one stopped.
type worker struct {
	*Loop
	*session
	agent        agent.Agent
	conversation recall.Conversation
	rules        rules
	tools        []string // the names of those that the model has
	turn         turn
	steps        int
	finish       string     // the reason for which the last answer ends the run, if it calls no tool
	items        items      // of a background run
	shows        sync.Mutex // is held while a piece of an answer is shown, and while pieces that wait are stored
	streamed     pieces     // of the last answer
	unstored     string     // the id of an answer of which the client may have seen deltas, and which is not stored
	streaming    []done     // the calls of the answer that is streamed, without refused ones
	summarized   int        // the position of the last summary that was shown
}

// pieces is what clients were sent of an answer before it was stored.
type pieces struct {
	any, text bool
	calls     []string // their ids
}

// add notes a piece.
func (p *pieces) add(d model.Delta) {
	p.any, p.text = true, p.text || d.Kind == recall.Text
	if d.Kind == recall.ToolCall && !slices.Contains(p.calls, d.CallID) {
		p.calls = append(p.calls, d.CallID)
	}
}

// maxBroken is how many calls in a row may be broken. The model reads of each why.
const maxBroken = 6

// stop is the end of a run: a reason, and what failed.
type stop struct {
	reason string
	failed *Failure
}

// work works on the run until it ends. Its error is that of ctx, or one that lasts: the run then goes on later.
func (w *worker) work(ctx context.Context) error {
	err := w.load(ctx)
	for err == nil {
		var s *stop
		if s, err = w.next(ctx); s != nil {
			return w.end(ctx, *s)
		}
	}
	if ctx.Err() != nil || unavailable(err) || errors.Is(err, errTaken) {
		return err
	}
	if cancelled, failed := w.isCancelledNow(ctx); cancelled || failed != nil {
		return cmp.Or(failed, w.end(ctx, stop{reason: StopCancelled}))
	}
	if errors.Is(err, ErrNoModel) {
		w.Log.WarnContext(ctx, "a run cannot go on without its model", "run", w.run.ID, "error", err)
		return w.end(ctx, stop{ModelError, &Failure{Type: NoModel, Text: NoModelText(err)}})
	}
	w.Log.ErrorContext(ctx, "a run failed", "run", w.run.ID, "error", err)
	return w.end(ctx, stop{StopError, &Failure{Type: "internal_error",
		Text: "The server has a fault. Its log has the cause"}})
}

// unavailable reports whether an error may pass: the database cannot serve. The deadlines of a run are its models'.
func unavailable(err error) bool {
	return db.Unavailable(err) && (db.Away(err) || !errors.Is(err, context.DeadlineExceeded))
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

func (w *worker) toolNames(ctx context.Context) ([]string, error) {
	has, err := w.Agents.Files.HasFolder(ctx, w.org, w.agent.ID)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, t := range w.Tools.Of(w.agent, has) {
		names = append(names, t.Name)
	}
	for _, t := range w.run.Options.ClientTools {
		if !slices.Contains(names, t.Name) {
			names = append(names, t.Name)
		}
	}
	return names, nil
}

// loadTurn reads what the run has shown, and the turn that it goes on with.
func (w *worker) loadTurn(ctx context.Context) error {
	messages, err := w.produced(ctx, w.org, w.run)
	if err != nil {
		return err
	}
	if n := len(messages); n > 0 {
		w.summarized = messages[n-1].Position
	}
	if len(w.rules) > 0 {
		if w.turn, err = w.rules.readTurn(ctx, w.Recall, w.org, w.conversation, lastPosition); err != nil {
			return err
		}
	}
	return w.catchUp(ctx, messages)
}

// lastPosition is after every message.
const lastPosition = 1<<31 - 1

// next takes the run's next step: it runs a tool or asks the model. It returns a stop if the run ends here.
func (w *worker) next(ctx context.Context) (*stop, error) {
	cancelled, err := w.isCancelledNow(ctx)
	if err != nil {
		return nil, err
	}
	if cancelled {
		return &stop{reason: StopCancelled}, nil
	}
	if r := w.run.Options.Refused; r != nil {
		return &stop{r.Reason, &r.Failure}, nil
	}
	t, err := readTail(ctx, w.Recall, w.org, w.conversation)
	if err != nil {
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
		approved := w.approvalOf(*t.answer, p) != "" && !w.rules.has(byClient, p.Name)
		if why := refused[p.CallID]; why != "" && (own || approved || !asks(p)) {
			return nil, w.refuse(ctx, *t.answer, p, why)
		}
		if approved || !asks(p) {
			return nil, w.runTool(ctx, *t.answer, p)
		}
	}
	switch {
	case len(t.pending) > 0:
		if err := w.askAgain(ctx, own, t); err != nil {
			return nil, err
		}
		return &stop{reason: RequiresApproval}, nil
	case len(w.run.Options.Following) > 0:
		return nil, w.follow(ctx)
	case own && w.finish == "" && !hasCalls(*t.answer): // it paused
	case own || goesOn && !t.notice:
		if s, err := w.afterAnswer(ctx, t); s != nil || err != nil {
			return s, err
		}
	}
	if w.steps >= w.run.Options.MaxSteps {
		return &stop{reason: MaxSteps}, nil
	}
	if err := w.followAnswer(ctx, t); err != nil {
		return nil, err
	}
	return w.step(ctx)
}

// followAnswer appends a note after an answer that ends the conversation, because providers refuse a prompt that ends
// with one. So ends a turn that is tried again, if an earlier try had an answer. The provider wants an answer that
// paused at the end of its prompt.
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

const answerAgain = frame.System + " The turn did not end with your last answer, and is tried again: answer the user."

// isPaused reports whether the model goes on with an answer when it is asked again.
func (w *worker) isPaused(ctx context.Context, answer recall.Message) (bool, error) {
	if answer.StepID == nil {
		return false, nil
	}
	s, err := w.StepByID(ctx, w.org, *answer.StepID)
	return err == nil && s.StopReason == nil, ignoreNotFound(err)
}

// made reports whether the run made an answer.
func (w *worker) made(answer recall.Message) bool {
	return answer.RunID != nil && *answer.RunID == w.run.ID
}

// approvalOf returns the approval of the result of a call. The client approved calls of an answer that was there before
// the run: a later call may have the same id.
func (w *worker) approvalOf(answer recall.Message, call recall.Part) recall.Approval {
	if w.made(answer) {
		return ""
	}
	return approvalIn(w.run.Options.Approved, call.CallID)
}

func hasCalls(answer recall.Message) bool {
	return slices.ContainsFunc(answer.Content, func(p recall.Part) bool { return p.Type == recall.ToolCall })
}

// askAgain shows the calls that wait for the client, unless the run's own answer has shown them.
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

// waits reports whether calls of an earlier run waited for the client: the input of this one answered some of them.
func (w *worker) waits(t tail) bool {
	return t.answer != nil && t.answer.RunID != nil && len(t.results) > 0
}

// afterAnswer returns a stop if the last answer ends the run. It reminds the model of the tools that it must still
// call.
func (w *worker) afterAnswer(ctx context.Context, t tail) (*stop, error) {
	e := w.rules.after(w.tools, w.turn.before(t.answer.Position), t)
	reason := cmp.Or(w.finish, EndTurn)
	if e.calls {
		reason = ToolRule
	}
	switch {
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
	w.turn.reminders = append(w.turn.reminders, d.Content[0].Text)
	_, err := w.Recall.Append(ctx, w.org, w.agent.ID, w.conversation.ID, []recall.Draft{d})
	return nil, err
}

// ContentFilter is the type of the failure of a run whose last answer the model refused, or a content filter withheld.
const ContentFilter = "content_filter"

// afterBroken returns a stop if the last calls were broken.
func (w *worker) afterBroken() *stop {
	n := len(w.turn.calls)
	if n < maxBroken || slices.ContainsFunc(w.turn.calls[n-maxBroken:], func(c call) bool { return !c.broken }) {
		return nil
	}
	said := fmt.Sprintf("The model's last %d calls of tools were of tools that it does not have, or had arguments that "+
		"are no JSON", maxBroken)
	return &stop{BrokenCalls, &Failure{Type: BrokenCalls, Text: said}}
}

// isCancelledNow reports whether the run was cancelled on any server, has ended, or lost its agent, its conversation or
// its organization.
func (w *worker) isCancelledNow(ctx context.Context) (bool, error) {
	if w.isCancelled() {
		return true, nil
	}
	goesOn, err := db.One[bool](ctx, w.DB, `
		SELECT r.status = 'running' AND r.cancelled_at IS NULL AND c.deleted_at IS NULL AND o.deleted_at IS NULL
		FROM runs r
		JOIN conversations c ON c.org = r.org AND c.key = r.conversation_key
		JOIN organizations o ON o.org = r.org
		WHERE r.org = $1 AND r.key = $2`, w.org, w.run.Key)
	return err == nil && !goesOn || errors.Is(err, db.ErrNotFound), ignoreNotFound(err)
}

// watchEvery is the time between two looks whether a run was cancelled while its model is asked.
const watchEvery = 2 * time.Second

// watch calls cancel when the run is cancelled, until ctx ends.
func (w *worker) watch(ctx context.Context, cancel context.CancelFunc) {
	defer cancel()
	look := time.NewTicker(watchEvery)
	defer look.Stop()
	for {
		select {
		case <-w.cancel:
			return
		case <-ctx.Done():
			return
		case <-look.C:
			if cancelled, err := w.isCancelledNow(ctx); cancelled && err == nil {
				w.stop()
			}
		}
	}
}
