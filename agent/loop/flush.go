package loop

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// flushing does the work of a conversation's silent turns.
type flushing struct {
	*Loop
	org          db.Org
	caller       tool.Caller
	conversation recall.Conversation
	byCaller     bool
	may          func(pgx.Tx) error // see tool.Call; nil allows everything
}

// next returns the prompt of a silent turn; nil if none is due. First it runs calls that the turn's last answer left,
// because a server may have stopped before it ran them.
func (f flushing) next(ctx context.Context, target agent.PromptTarget) (*agent.StoredPrompt, error) {
	for {
		p, err := f.Agents.NextFlush(ctx, f.org, target, f.byCaller)
		if err != nil || p == nil || len(p.Pending) == 0 {
			return p, err
		}
		ran, err := f.run(ctx, *p.Flush, p.Pending[0].Position)
		if err != nil || len(ran) == 0 {
			return nil, err
		}
	}
}

// run runs the calls in an answer of a silent turn. It refuses calls of other tools, and all calls if the turn has
// ended. It returns all calls.
func (f flushing) run(ctx context.Context, turn agent.FlushTurn, position int) (all []ClientLoopCall, err error) {
	calls, err := f.Recall.CallsAt(ctx, f.org, f.conversation.Key, position)
	if err != nil {
		return nil, err
	}
	for _, c := range calls {
		if c.Result == nil {
			err := f.runCall(ctx, turn, position, c.Part)
			if errors.Is(err, db.ErrConflict) {
				err = f.refuse(ctx, position, c.Part, "The silent turn has ended before this call was run: it changed nothing.")
			}
			if err != nil {
				return nil, err
			}
		}
	}
	if calls, err = f.Recall.CallsAt(ctx, f.org, f.conversation.Key, position); err != nil {
		return nil, err
	}
	for _, c := range calls {
		all = append(all, ClientLoopCall{AnsweredCall: c, Ran: c.Result != nil})
	}
	return all, nil
}

func (f flushing) runCall(ctx context.Context, turn agent.FlushTurn, position int, p recall.Part) error {
	place := recall.CallPlace{AgentID: f.conversation.AgentID, Conversation: f.conversation.ID, ID: p.CallID,
		Position: position}
	if !slices.Contains(turn.Tools, named(turn.Tools, p.Name)) {
		return f.refuse(ctx, position, p, "The tool "+db.Short(p.Name)+" is not yours in this silent turn. Your tools for "+
			"it are "+strings.Join(turn.Tools, ", ")+".")
	}
	_, _, err := f.Tools.Answer(ctx, f.caller, tool.Call{CallPlace: place, Name: p.Name, Arguments: []byte(p.Input),
		Result: recall.Draft{Purpose: recall.ForFlush}, May: func(tx pgx.Tx) error {
			return f.add(ctx, tx, turn.Flush,
				agent.FlushProgress{})
		},
		After: func(tx pgx.Tx, r tool.Result) error {
			if r.IsError {
				return nil
			}
			return f.add(ctx, tx, turn.Flush, agent.FlushProgress{Calls: 1})
		}})
	return err
}

// refuse gives a call of a silent turn a result that says why it is not run.
func (f flushing) refuse(ctx context.Context, position int, p recall.Part, why string) error {
	place := recall.CallPlace{AgentID: f.conversation.AgentID, Conversation: f.conversation.ID, ID: p.CallID,
		Position: position}
	_, err := f.Recall.AnswerCall(ctx, f.org, place, failedWith(recall.Draft{Purpose: recall.ForFlush},
		recall.Part{CallID: p.CallID, Text: why}))
	return err
}

func (f flushing) add(ctx context.Context, tx pgx.Tx, of agent.Flush, add agent.FlushProgress) error {
	if f.may != nil {
		if err := f.may(tx); err != nil {
			return err
		}
	}
	return agent.AddToFlush(ctx, tx, f.org, of, add)
}

// keep stores an answer to a silent turn. If the answer's otid is already stored, nothing changes. ErrConflict if the
// turn has ended.
func (f flushing) keep(ctx context.Context, flushIn func(tx pgx.Tx) (agent.Flush, error),
	drafts iter.Seq2[recall.Draft, error], used agent.FlushProgress) (appended []recall.Appended, err error) {
	err = db.Tx(ctx, f.DB, func(tx pgx.Tx) error {
		log := f.Recall.With(tx)
		calls := false
		marked := func(yield func(recall.Draft, error) bool) {
			for d, err := range drafts {
				d.Purpose = recall.ForFlush
				calls = calls || slices.ContainsFunc(d.Content, isCall)
				if !yield(d, err) {
					return
				}
			}
		}
		if appended, _, err = log.AppendTo(ctx, f.org, f.conversation.AgentID, f.conversation.ID, marked); err != nil {
			return err
		}
		if !slices.ContainsFunc(appended, func(a recall.Appended) bool { return !a.Repeated }) {
			return nil
		}
		flush, err := flushIn(tx)
		if err == nil {
			err = f.checkTurn(ctx, tx, flush, appended[0].Position)
		}
		if err != nil {
			return err
		}
		if flush.Kind == agent.Checkpoint && !calls {
			_, err = log.Append(ctx, f.org, f.conversation.AgentID, f.conversation.ID, []recall.Draft{callNow})
			if err != nil {
				return err
			}
		}
		used.Steps, used.Ends = 1, flush.Kind != agent.Checkpoint && !calls
		return f.add(ctx, tx, flush, used)
	})
	return appended, err
}

// checkTurn returns an ErrConflict if the answer at position is not the next one of its silent turn: the turn has had
// all its answers, or calls of the last one are still running.
func (f flushing) checkTurn(ctx context.Context, tx pgx.Tx, flush agent.Flush, position int) error {
	a, err := f.Agents.With(tx).Agent(ctx, f.org, f.conversation.AgentID)
	if err != nil {
		return err
	}
	if f.Agents.FlushTurnOf(a, flush).StepsLeft <= 0 || flush.Kind == agent.Checkpoint && flush.Calls > 0 {
		return db.Conflict("The silent turn %s has had its last answer: nothing was stored. Ask for the next prompt",
			flush.ID)
	}
	open, err := f.Recall.With(tx).OpenAfter(ctx, f.org, f.conversation, flush.Position)
	if err == nil && open != 0 && open < position {
		err = db.Conflict("Another answer to the silent turn %s came first, and its calls are run: nothing was stored. Ask "+
			"for the next prompt", flush.ID)
	}
	return err
}

func isCall(p recall.Part) bool { return p.Type == recall.ToolCall }

// callNow tells a model that its checkpoint is missing.
var callNow = recall.Draft{Role: recall.System, Purpose: recall.ForFlush, Content: []recall.Part{{Type: recall.Text,
	Text: frame.System + " You wrote no checkpoint: call update_working_memory now, with valid JSON."}}}

// ignoreConflict returns nil for the error that a silent turn has ended.
func ignoreConflict(err error) error {
	if errors.Is(err, db.ErrConflict) {
		return nil
	}
	return err
}

// writeMemory gives the run's model its silent turn if one is due. A failed turn is skipped. An error means that the
// run cannot go on now.
func (w *worker) writeMemory(ctx context.Context) error {
	if w.agent.Settings.Flush == nil {
		return nil
	}
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	go w.watch(asking, cancel)
	f := flushing{Loop: w.Loop, org: w.org, caller: w.caller(), conversation: w.conversation,
		may: func(tx pgx.Tx) error { return w.mayStore(ctx, tx, w.org, w.run) }}
	target := w.target(narrowing{})
	for {
		p, err := f.next(asking, target)
		if err == nil && p != nil {
			err = w.answerFlush(asking, f, *p)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errTaken), unavailable(err):
			return err
		case err != nil:
			w.Log.WarnContext(ctx, "a silent turn is left out", "run", w.run.ID, "error", err)
			return nil
		case p == nil || asking.Err() != nil:
			return nil
		}
	}
}

// answerFlush asks the run's model once in a silent turn, stores the answer and runs its calls.
func (w *worker) answerFlush(ctx context.Context, f flushing, p agent.StoredPrompt) error {
	limited, cancel := context.WithDeadline(ctx, p.Flush.Deadline)
	defer cancel()
	r := model.Request{Model: w.model.Name, Prompt: p.Request, Must: p.Flush.Must != "", Tool: p.Flush.Must}
	answer, err := w.model.Answer(limited, r, func(model.Delta) {})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return w.endFlush(ctx, p.Flush.Flush, err)
	}
	d := recall.Draft{Role: recall.Assistant, Content: answer.Content, Model: &w.model.Name}
	appended, err := f.keep(ctx, func(pgx.Tx) (agent.Flush, error) { return p.Flush.Flush, nil },
		func(yield func(recall.Draft, error) bool) { yield(d, nil) },
		agent.FlushProgress{Prompt: answer.Usage.Prompt, Completion: answer.Usage.Completion})
	if errors.Is(err, db.ErrInvalid) {
		return w.endFlush(ctx, p.Flush.Flush, err)
	}
	if err != nil {
		return ignoreConflict(err)
	}
	_, err = f.run(ctx, *p.Flush, appended[0].Position)
	return err
}

// endFlush ends a silent turn that the model did not answer.
func (w *worker) endFlush(ctx context.Context, f agent.Flush, cause error) error {
	status, why := agent.FlushFailed, "the model's answer cannot be stored"
	if fault, ok := errors.AsType[*model.Fault](cause); ok {
		why = fault.Public()
	}
	if time.Now().After(f.Deadline) {
		status, why = agent.FlushExpired, ""
	}
	_, err := w.Agents.EndFlush(ctx, w.org, f, status, why)
	return err
}

// NextFlush returns the prompt of a silent turn for the client's own loop; nil if none is due.
func (o *ClientLoop) NextFlush(ctx context.Context, at agent.PromptTarget) (*agent.StoredPrompt, error) {
	return o.flushing().next(ctx, at)
}

func (o *ClientLoop) flushing() flushing {
	return flushing{Loop: o.Loop, org: o.caller.Org, caller: o.caller, conversation: o.Conversation, byCaller: true}
}

// TakeFlush stores the answer of a client's model to a silent turn, and runs the calls that the turn allows. It returns
// the place of the answer, and its calls. If accepts is false, the caller takes no further prompt of the turn, and the
// turn ends. ErrConflict if no such turn is open and the answer was not stored before.
func (o *ClientLoop) TakeFlush(ctx context.Context, drafts iter.Seq2[recall.Draft, error], accepts bool) (
	[]recall.Appended, []ClientLoopCall, error) {
	f, org := o.flushing(), o.caller.Org
	var open agent.Flush
	appended, err := f.keep(ctx, func(tx pgx.Tx) (flush agent.Flush, err error) {
		open, err = o.Agents.With(tx).FlushOfCaller(ctx, org, o.Conversation)
		return open, err
	}, drafts, agent.FlushProgress{})
	if err != nil {
		return nil, nil, err
	}
	if open.ID == "" { // it was stored before
		if open, err = o.Agents.FlushOfCaller(ctx, org, o.Conversation); ignoreConflict(err) != nil {
			return nil, nil, err
		}
	}
	calls, err := f.run(ctx, o.Agents.FlushTurnOf(o.caller.Agent, open), appended[0].Position)
	if err == nil && !accepts {
		err = o.leaveFlush(ctx)
	}
	return appended, calls, err
}

// leaveFlush ends the open silent turn of the client's own loop, if there is one.
func (o *ClientLoop) leaveFlush(ctx context.Context) error {
	open, err := o.Agents.FlushOfCaller(ctx, o.caller.Org, o.Conversation)
	if err == nil {
		err = o.Agents.LeaveFlush(ctx, o.caller.Org, o.Conversation, open)
	}
	return ignoreConflict(err)
}
