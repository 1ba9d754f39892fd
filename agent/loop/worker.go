package loop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

// worker works on a run. Its next step follows from the log, so it can continue where another worker stopped.
type worker struct {
	*Loop
	*localRun
	agent        agent.Agent
	conversation recall.Conversation
	rules        rules
	tools        []string // names of the model's tools
	turn         ruleInput
	steps        int
	finish       string        // stop reason if the last answer ends the run because it calls no tool
	items        waitingEvents // events of a background run
	shows        sync.Mutex    // held while a piece of an answer is shown, and while waiting pieces are stored
	streamed     pieces        // pieces of the last answer
	unstored     string        // id of an answer that is not stored although the client may have seen deltas of it
	streaming    []done        // calls of the answer that is being streamed, except refused ones
	withoutFiles bool          // the provider refuses the texts of open files, so the next prompt leaves them out
	summarized   int           // position of the last summary that was shown
	children     []startedChild
	looks        int // how often the run has looked at its sub-agents since one returned
}

// pieces records the parts of an answer that clients got before the answer was stored.
type pieces struct {
	any, text bool
	calls     []string // ids of the calls
}

// add notes a piece.
func (p *pieces) add(d model.Delta) {
	p.any, p.text = true, p.text || d.Kind == recall.Text
	if d.Kind == recall.ToolCall && !slices.Contains(p.calls, d.CallID) {
		p.calls = append(p.calls, d.CallID)
	}
}

// stop is the end of a run: its reason, and what failed.
type stop struct {
	reason string
	failed *Failure
}

// unavailable reports whether an error may pass: the database cannot serve, or gave way to another transaction.
// Deadlines within a run are its models'.
func unavailable(err error) bool {
	return db.Deadlocked(err) || db.Unavailable(err) && (db.Away(err) || !errors.Is(err, context.DeadlineExceeded))
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

const answerAgain = frame.System + " The turn did not end with your last answer, and is tried again: answer the user."

// isPaused reports whether the model continues this answer when it is asked again.
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

// approvalOf returns the approval to store with a call's result. The client only approved calls of an answer from
// before the run; a later call may have the same id.
func (w *worker) approvalOf(answer recall.Message, call recall.Part) recall.Approval {
	if w.made(answer) {
		return ""
	}
	return approvalIn(w.run.Options.Approved, call.CallID)
}

// waits reports whether calls of an earlier run waited for the client and this run's input answered some of them.
func (w *worker) waits(t tail) bool {
	return t.answer != nil && t.answer.RunID != nil && len(t.results) > 0
}

// ContentFilter is the Failure type of a run if the model refused its last answer, or a content filter withheld it.
const ContentFilter = "content_filter"

// goesOn returns errCancelled or errTaken if the run does not go on here.
func (w *worker) goesOn(ctx context.Context) error {
	if w.isCancelled() {
		return errCancelled
	}
	return w.standing(ctx, w.DB, w.org, w.run, "")
}

// watchEvery is how often the worker checks whether the run was cancelled while its model is asked.
const watchEvery = 2 * time.Second

// watch calls cancel once the run no longer goes on here. It stops when ctx ends.
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
			switch err := w.goesOn(ctx); {
			case errors.Is(err, errCancelled):
				w.stop()
			case errors.Is(err, errTaken):
				return
			}
		}
	}
}

// isShown reports whether a client may have seen a piece of an answer that is not stored.
func (w *worker) isShown() bool {
	w.shows.Lock()
	defer w.shows.Unlock()
	return w.unstored != ""
}

// target returns the prompt that the run needs next.
func (w *worker) target(n narrowing) agent.PromptTarget {
	o := w.run.Options
	t := agent.PromptTarget{AgentID: w.agent.ID, Conversation: w.conversation.ID, Format: agent.Format(w.model.Format()),
		Model: o.Model, System: o.System, Addition: aboutSkills(o.Skills), OnlyTools: n.only,
		WithoutFiles: w.withoutFiles}
	for _, c := range o.ClientTools {
		if len(bytes.TrimSpace(c.Parameters)) == 0 {
			c.Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		schema := map[string]any{"name": c.Name, "description": c.Description, "parameters": c.Parameters}
		t.MoreTools = append(t.MoreTools, agent.Definition{Name: c.Name, Schema: chat.Encode(schema)})
	}
	return t
}

// faultStop returns the stop for a fault of the model's provider, with the provider's words.
func (w *worker) faultStop(ctx context.Context, err error, f *model.Fault) *stop {
	reason := map[model.FaultKind]string{model.Failed: ModelError, model.Overflow: PromptTooLarge,
		model.Credits: NoCredits, model.Broken: BrokenAnswer, model.Content: ModelError}[f.Kind]
	failed := Failure{Type: reason, Text: f.Public(), Status: f.AnswerStatus()}
	if f.Status == http.StatusTooManyRequests {
		failed.After = f.After
	}
	if f.Kind == model.Content && f.Status == http.StatusOK { // the answer was withheld
		failed.Type = ContentFilter
	}
	words, failure := w.Recall.RedactText(ctx, w.org, f.Words)
	if failure == nil && words != "" {
		failed.Detail = words
		failed.Text += ": " + words
	}
	if o, is := errors.AsType[*overflow](err); is {
		failed.Text += ". " + o.Counts()
	}
	if o, is := errors.AsType[*promptFault](err); is {
		failed.Text += ". " + o.Place()
	}
	return &stop{reason, &failed}
}
