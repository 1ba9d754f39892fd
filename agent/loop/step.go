package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

// answerOnce asks the model once and stores its answer. If there is no answer, it returns a stop.
func (w *worker) answerOnce(ctx context.Context) (*stop, error) {
	if err := w.writeMemory(ctx); err != nil {
		return nil, err
	}
	s := Step{ID: newID("step-"), Status: Succeeded, Model: w.model.Name, Handle: w.handle(), Provider: w.model.Provider(),
		EndpointType: w.model.Format()}
	id, began := newID("message-"), time.Now()
	answer, window, err := w.ask(ctx, id, s.ID)
	s.ContextWindow, s.ModelNS = window, time.Since(began).Nanoseconds()
	s.Prompt, s.Completion, s.Cached = answer.Usage.Prompt, answer.Usage.Completion, answer.Usage.Cached
	s.CacheWrite, s.Reasoning = answer.Usage.CacheWrite, answer.Usage.Reasoning
	if w.agent.OneCall() {
		answer.Content = withoutMoreCalls(answer.Content)
	}
	if err == nil {
		err = w.keep(ctx, &s, id, answer)
	}
	if err == nil || ctx.Err() != nil || unavailable(err) {
		return nil, err
	}
	if gone := w.goesOn(ctx); gone != nil {
		return nil, gone
	}
	failed := w.explain(ctx, err)
	if failed == nil {
		return nil, err
	}
	s.Status, s.StopReason, s.ErrorType, s.Error = Failed, &failed.reason, &failed.failed.Type, &failed.failed.Text
	return failed, insertStep(ctx, w.DB, w.org, w.run, s)
}

func (w *worker) handle() string {
	if w.run.Options.Model != nil {
		return *w.run.Options.Model
	}
	return w.agent.ModelIn(w.conversation)
}

// explain returns the stop for a failure that the run's client may read; nil for the server's own fault.
func (w *worker) explain(ctx context.Context, err error) *stop {
	if f, ok := errors.AsType[*model.Fault](err); ok {
		w.Log.WarnContext(ctx, "a model did not answer an agent", "run", w.run.ID, "error", f)
		return w.faultStop(ctx, err, f)
	}
	if q, ok := db.QuotaExceeded(err); ok {
		return &stop{StopError, &Failure{Type: "quota_exceeded", Text: q.Error()}}
	}
	switch {
	case errors.Is(err, errAnswerRefused):
		return &stop{BrokenAnswer, &Failure{Type: BrokenAnswer, Text: err.Error()}}
	case errors.Is(err, db.ErrInvalid):
		return &stop{PromptTooLarge, &Failure{Type: PromptTooLarge, Text: err.Error()}}
	case errors.Is(err, db.ErrBusy):
		return &stop{StopError, &Failure{Type: "busy", Text: err.Error()}}
	}
	return nil
}

// ask asks the model to answer the next prompt. It asks again if that may help, unless a client may have seen a piece
// of the answer. If the provider finds the prompt too long, it compacts the conversation.
func (w *worker) ask(ctx context.Context, id, stepID string) (a model.Answer, window int, err error) {
	asking, cancel := context.WithCancel(ctx)
	defer w.flushLate(ctx, asking.Done())()
	defer cancel()
	go w.watch(asking, cancel)
	calls := w.turn.before(lastPosition)
	n := w.rules.narrow(w.tools, calls)
	forced := w.turn.forced(w.rules.missing(w.tools, calls), n)
	compactions, limits := overflowSettings, limiting{patience: w.LimitPatience}
	for attempt := 1; ; attempt++ {
		if err := w.leaveFilesOut(asking); err != nil {
			return a, 0, err
		}
		p, err := w.Agents.NextPrompt(asking, w.org, w.target(n))
		if err != nil {
			return a, 0, err
		}
		if err := w.beginPieces(ctx); err != nil {
			return a, 0, err
		}
		r := model.Request{Model: w.model.Name, Prompt: p.Request, Must: n.must || forced != "" || w.mustSpeak(),
			Tool: forced}
		if n.must && len(n.only) == 1 {
			r.Tool = n.only[0]
		}
		a, err = w.model.Answer(asking, r, func(d model.Delta) { w.show(ctx, d, id, stepID) })
		f, isFault := errors.AsType[*model.Fault](err)
		switch {
		case isFault && f.Kind == model.Overflow:
			compacted, failed := w.compactNext(asking, w.org, w.conversation, &compactions)
			if failed != nil {
				return a, p.Window, errors.Join(err, failed)
			}
			if compacted {
				continue
			}
			err = &overflow{Fault: f, Prompt: p}
			if again, failed := w.refused(ctx, refusal{fault: f, err: err}); !again {
				return a, p.Window, cmp.Or(failed, err)
			}
		case isFault && f.Kind == model.Content && (!f.Again || w.isShown() || attempt >= maxAttempts):
			b, failed := w.findCause(asking, f, w.target(n), r)
			if b.found || failed != nil {
				return b.answer, p.Window, failed
			}
			if b.askAgain {
				continue
			}
			if b.place != "" {
				err = &promptFault{f, b.place}
			}
			if again, failed := w.refused(ctx, refusal{fault: f, err: err, answer: w.withheld(a, id, stepID), alone: b.alone,
				frame: b.place != ""}); !again {
				return a, p.Window, cmp.Or(failed, err)
			}
		case isFault && isLimited(f) && !w.isShown():
			attempt-- // only the time is bounded, not the attempts
			if err := limits.pause(asking, w.Loop, f, attempt); err != nil {
				return a, p.Window, err
			}
		case isFault && f.Again && !w.isShown() && attempt < maxAttempts:
			if err := limits.pause(asking, w.Loop, f, attempt); err != nil {
				return a, p.Window, err
			}
		case isFault:
			b, failed := w.findCause(asking, f, w.target(n), r)
			if b.found && failed == nil {
				return b.answer, p.Window, nil
			}
			if b.place != "" {
				err = &promptFault{f, b.place}
			}
			if !b.askAgain || failed != nil {
				return a, p.Window, cmp.Or(failed, err)
			}
		default:
			return a, p.Window, err
		}
	}
}

// withheld returns, in the form to store, what a model said before the rest was withheld; nil if it said nothing.
func (w *worker) withheld(a model.Answer, id, stepID string) *recall.Draft {
	if chat.IsEmpty(a.Content) {
		return nil
	}
	return &recall.Draft{ID: id, Role: recall.Assistant, Content: a.Content, RunID: &w.run.ID, StepID: &stepID,
		Model: &w.model.Name}
}

// beginPieces forgets the pieces of an answer that is asked for again, and shows new summaries.
func (w *worker) beginPieces(ctx context.Context) error {
	w.shows.Lock()
	defer w.shows.Unlock()
	w.streamed, w.streaming = pieces{}, nil
	w.items.dropDeltas()
	return w.showSummaries(ctx)
}

// showSummaries shows the client, if it wants them, each summary made since the run began, once.
func (w *worker) showSummaries(ctx context.Context) error {
	if !w.run.Options.Compactions {
		return nil
	}
	all, err := w.Recall.Messages(ctx, w.org, recall.MessageFilter{AgentID: w.agent.ID, Conversation: w.conversation.ID,
		Roles: []recall.Role{recall.Summary}}, db.Page{Limit: tailPage})
	if err != nil {
		return err
	}
	for _, m := range slices.Backward(all) {
		if m.Position <= w.summarized || !m.CreatedAt.After(w.run.CreatedAt) {
			continue
		}
		w.summarized = m.Position
		if err := w.emit(ctx, Event{Message: &m}); err != nil {
			return err
		}
	}
	return nil
}

// show sends a piece of an answer to clients that want pieces.
func (w *worker) show(ctx context.Context, d model.Delta, id, stepID string) {
	w.shows.Lock()
	defer w.shows.Unlock()
	now := time.Now()
	if w.run.FirstTokenAt == nil {
		w.run.FirstTokenAt = &now
		_, err := w.DB.Exec(ctx, `
			UPDATE runs SET first_token_at = coalesce(first_token_at, $3) WHERE org = $1 AND key = $2`, w.org, w.run.Key, now)
		if err != nil {
			w.Log.DebugContext(ctx, "the time of a first token is not stored", "run", w.run.ID, "error", err)
		}
	}
	if !w.run.Options.StreamTokens {
		return
	}
	d.Text, d.CallID, d.Name = db.Clean(d.Text), db.Clean(d.CallID), db.Clean(d.Name)
	w.streamed.add(d)
	name := w.rules.nameOf(d.Name)
	if d.Name != "" && w.rules.refusal(w.tools, w.turn.before(lastPosition), w.streaming, name) == "" {
		w.streaming = append(w.streaming, done{tool: name, waits: true})
		if w.run.Options.asks(w.rules, d.Name) {
			w.items.ask(d.CallID)
		}
	}
	asked := w.items.asked[d.CallID]
	err := w.emit(ctx, Event{Delta: &Delta{Delta: d, MessageID: id, StepID: stepID, Asked: asked, At: now}})
	if err != nil {
		w.Log.WarnContext(ctx, "a piece of an answer is not stored for its client", "run", w.run.ID, "error", err)
	}
}

// errAnswerRefused means that the log does not accept an answer.
var errAnswerRefused = errors.New("the answer cannot be stored")

// keep stores an answer with its step and with what clients see of it, and reports the usage.
func (w *worker) keep(ctx context.Context, s *Step, id string, a model.Answer) error {
	s.StopReason, w.finish = nil, ""
	if len(a.Calls()) == 0 && a.Finish != model.Paused {
		reason := EndTurn
		if a.Finish == model.Length {
			reason = MaxTokens
		}
		s.StopReason, w.finish = &reason, reason
	}
	d := recall.Draft{ID: id, Role: recall.Assistant, Content: w.asking(w.spoken(a)), RunID: &w.run.ID, StepID: &s.ID,
		Model: &s.Model}
	var shown []Event
	err := w.inTx(ctx, func(tx pgx.Tx) error {
		log := w.Recall.With(tx)
		_, err := log.Append(ctx, w.org, w.agent.ID, w.conversation.ID, []recall.Draft{d})
		switch {
		case errors.Is(err, db.ErrInvalid):
			return fmt.Errorf("%w: %w", errAnswerRefused, err)
		case err != nil:
			return err
		}
		if err := w.mayStore(ctx, tx, w.org, w.run); err != nil {
			return err
		}
		if err := insertStep(ctx, tx, w.org, w.run, *s); err != nil {
			return err
		}
		m, err := log.Message(ctx, w.org, id)
		if err != nil {
			return err
		}
		shown = append(w.corrections(m, a.Finish), Event{Message: &m, Streamed: w.streamed.any})
		return w.store(ctx, tx, m.ID, shown...)
	})
	if err != nil {
		return err
	}
	for _, e := range shown {
		w.add(e)
	}
	w.unstored = ""
	w.steps++
	w.report(ctx, shown[len(shown)-1].Message.Position-1, a.Usage)
	return nil
}

// spoken returns an answer's parts as they are stored. Texts beside the calls of an agent that speaks with a tool are
// thoughts.
func (w *worker) spoken(a model.Answer) []recall.Part {
	if !w.run.Options.Speaks || len(a.Calls()) == 0 {
		return a.Content
	}
	return recall.AsThoughts(a.Content)
}

// mustSpeak reports whether each answer must call a tool, because the agent's user sees only what it says with one.
func (w *worker) mustSpeak() bool {
	return w.run.Options.Speaks && w.agent.Type != agent.DefaultType && w.rules.has("exit_loop", agent.SendMessage) &&
		slices.Contains(w.tools, agent.SendMessage)
}

// withoutMoreCalls returns an answer without the calls behind its first.
func withoutMoreCalls(answer []recall.Part) (kept []recall.Part) {
	called := false
	for _, p := range answer {
		if p.Type == recall.ToolCall && called {
			continue
		}
		called = called || p.Type == recall.ToolCall
		kept = append(kept, p)
	}
	return kept
}

// corrections returns events that make the sent pieces match the stored message: they drop calls that were cut for the
// answer's length, or are more than the model may make at once, and may add a text in place of a cut call.
func (w *worker) corrections(m recall.Message, finish string) (all []Event) {
	if len(w.streamed.calls) == 0 {
		return nil
	}
	present := map[string]bool{}
	for _, p := range m.Content {
		present[p.CallID] = p.Type == recall.ToolCall
	}
	dropped := slices.DeleteFunc(slices.Clone(w.streamed.calls), func(id string) bool { return present[id] })
	if len(dropped) > 0 {
		all = append(all, Event{Dropped: dropped})
	}
	for _, p := range m.Content {
		if finish == model.Length && p.Type == recall.Text && !w.streamed.text {
			d := model.Delta{Kind: recall.Text, Text: p.Text}
			all = append(all, Event{Delta: &Delta{Delta: d, MessageID: m.ID, StepID: *m.StepID, At: time.Now()}})
		}
	}
	return all
}

// asking marks those calls of an answer that the client must run or approve.
func (w *worker) asking(answer []recall.Part) []recall.Part {
	m := recall.Message{Content: slices.Clone(answer)}
	refused := w.rules.refusals(w.tools, w.turn.before(lastPosition), m, nil)
	for i, p := range m.Content {
		if p.Type == recall.ToolCall && refused[p.CallID] == "" && w.run.Options.asks(w.rules, p.Name) {
			m.Content[i].Approval = recall.Asked
		}
	}
	return m.Content
}

// report passes on the provider's count of a prompt, and queues a check of the window. The answer is already stored, so
// a failure here does not fail the run.
func (w *worker) report(ctx context.Context, position int, u model.Usage) {
	c, err := w.Recall.Conversation(ctx, w.org, w.agent.ID, w.conversation.ID)
	if err == nil && u.Prompt > 0 {
		err = w.Agents.ReportUsage(ctx, w.org, c, position, u.Prompt)
	}
	if err == nil {
		err = w.Agents.AfterAppend(ctx, w.org, w.agent, c)
	}
	if err != nil {
		w.Log.WarnContext(ctx, "the usage of a prompt is not stored", "conversation", w.conversation.ID, "error", err)
	}
}
