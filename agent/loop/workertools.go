package loop

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// place returns where a call of an answer stands.
func (w *worker) place(answer recall.Message, p recall.Part) recall.CallPlace {
	return recall.CallPlace{AgentID: w.agent.ID, Conversation: w.conversation.ID, ID: p.CallID, Position: answer.Position}
}

// toolsText says which tools the agent has.
func (w *worker) toolsText() string {
	if len(w.tools) == 0 {
		return "You have no tools."
	}
	return "Your tools are " + strings.Join(w.tools, ", ") + "."
}

// runTool runs the tool called in an answer, and stores its result.
func (w *worker) runTool(ctx context.Context, answer recall.Message, p recall.Part) error {
	name := named(w.tools, p.Name)
	if w.Tools.Has(name) && !slices.Contains(w.tools, name) {
		return w.refuseLacking(ctx, answer, p, "The tool "+name+" is not attached to you. "+w.toolsText())
	}
	result := recall.Draft{ID: newID("message-"), RunID: &w.run.ID, StepID: answer.StepID}
	caller := w.caller()
	caller.Waits = true
	got, stored, err := w.Tools.Answer(ctx, caller, tool.Call{CallPlace: w.place(answer, p), Name: name,
		Arguments: []byte(p.Input), Result: result, Approval: w.approvalOf(answer, p),
		May: func(tx pgx.Tx) error { return w.mayStore(ctx, tx, w.org, w.run) }})
	switch {
	case errors.Is(err, db.ErrNotFound) && !w.Tools.Has(name):
		why := cmp.Or(tool.NotRun(name), "There is no tool "+db.Short(p.Name)+".")
		return w.refuseLacking(ctx, answer, p, why+" "+tool.Available(p.Name, w.tools))
	case err == nil && got.Subagent != "":
		w.children = append(w.children, startedChild{got.Subagent, p, answer.Position})
		return nil
	case err != nil || !stored: // not stored: another request has answered it
		return err
	}
	return w.showResult(ctx, result.ID, call{done: done{tool: name, result: got.Text, failed: got.IsError},
		position: answer.Position, part: partOf(answer, p), broken: got.IsError && !isObject(p.Input)})
}

// refuseLacking stores as a call's result that the agent lacks the tool, and whether its parent has it.
func (w *worker) refuseLacking(ctx context.Context, answer recall.Message, p recall.Part, why string) error {
	notGranted, err := w.Tools.NotGranted(ctx, w.org, w.agent, named(w.tools, p.Name))
	if err != nil {
		return err
	}
	if notGranted != "" {
		why = notGranted + " " + w.toolsText()
	}
	return w.refuse(ctx, answer, p, why)
}

// refuse stores as a call's result why the call is not run.
func (w *worker) refuse(ctx context.Context, answer recall.Message, p recall.Part, why string) error {
	result := recall.Draft{ID: newID("message-"), RunID: &w.run.ID, StepID: answer.StepID}
	stored, err := w.Recall.AnswerCall(ctx, w.org, w.place(answer, p), failedWith(result, recall.Part{CallID: p.CallID,
		Text: why, Approval: w.approvalOf(answer, p)}))
	if err != nil || !stored {
		return err
	}
	name := named(w.tools, p.Name)
	return w.showResult(ctx, result.ID, call{done: done{tool: name, result: why, failed: true},
		position: answer.Position, part: partOf(answer, p), broken: !w.Tools.Has(name) && !slices.Contains(w.tools, name),
		refused: strings.HasPrefix(why, refusedByRules)})
}

// partOf returns a call's index in its answer.
func partOf(answer recall.Message, p recall.Part) int {
	return slices.IndexFunc(answer.Content, func(other recall.Part) bool {
		return other.Type == recall.ToolCall && other.CallID == p.CallID
	})
}

// showResult records a call, and shows the message with its result.
func (w *worker) showResult(ctx context.Context, message string, c call) error {
	w.turn.calls = append(w.turn.calls, c)
	m, err := w.Recall.Message(ctx, w.org, message)
	if err != nil {
		return err
	}
	return w.emit(ctx, Event{Message: &m})
}

func (w *worker) caller() tool.Caller { return tool.CallerIn(w.org, w.agent, w.conversation) }

// answerPending gives each call of the run that has no result one, with the reason.
func (w *worker) answerPending(ctx context.Context, why string) error {
	t, err := readTail(ctx, w.Recall, w.org, w.conversation)
	if err != nil {
		return err
	}
	for _, p := range t.pending {
		place := w.place(*t.answer, p)
		result := recall.Draft{ID: newID("message-"), RunID: &w.run.ID, StepID: t.answer.StepID}
		stored, err := w.Recall.AnswerCall(ctx, w.org, place, failedWith(result, recall.Part{CallID: p.CallID, Text: why,
			Approval: w.approvalOf(*t.answer, p)}))
		if err != nil {
			return err
		}
		if stored {
			m, err := w.Recall.Message(ctx, w.org, result.ID)
			if err != nil {
				return err
			}
			if err := w.emit(ctx, Event{Message: &m}); err != nil {
				return err
			}
		}
	}
	return nil
}
