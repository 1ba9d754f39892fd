package subagent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/queue"
	"github.com/loci-memory/loci/recall"
)

// maxResultChars bounds the part of a result that the parent's log shows, in characters. The whole result is in the
// sub-agent's log.
const maxResultChars = 8_000

// Result is what a sub-agent returns.
type Result struct {
	Text   *string // nil means the last text that the sub-agent said
	Failed bool
}

// Return brings the result of a sub-agent to the log of its parent, once. The result answers the call that waits for
// it, or comes as a message. A sub-agent that has already returned keeps its first result. ErrConflict if the sub-agent
// was cancelled. ErrInvalid if the result is empty, or if none is given and the sub-agent has said nothing. For a
// result that comes as a message: *loop.BusyError if a run works in either conversation, *loop.PendingError if other
// calls wait in the parent's.
func (s *Store) Return(ctx context.Context, org db.Org, parentID, id string, r Result) (Child, error) {
	c, err := s.Child(ctx, org, parentID, id)
	if err != nil {
		return c, err
	}
	if r.Text != nil && strings.TrimSpace(*r.Text) == "" {
		return c, db.Invalid("the result is empty; leave it out to return what the sub-agent said last")
	}
	if c.Status != Working {
		return c, c.checkReturned()
	}
	if r.Text == nil {
		if r.Text, err = s.said(ctx, org, c); err != nil {
			return c, err
		}
	}
	text, err := s.Agents.Recall.RedactText(ctx, org, *r.Text)
	if err != nil {
		return c, err
	}
	if r.Text = &text; c.ToolCallID != nil {
		err = s.answerCall(ctx, org, c, r)
	} else {
		err = s.bring(ctx, org, c, r)
	}
	if err != nil && !errors.Is(err, errReturned) {
		return c, err
	}
	if c, err = s.Child(ctx, org, parentID, id); err != nil {
		return c, err
	}
	return c, c.checkReturned()
}

// checkReturned returns an ErrConflict if the sub-agent was cancelled.
func (c Child) checkReturned() error {
	if c.Status != Cancelled {
		return nil
	}
	return db.Conflict("the sub-agent %s was cancelled, and its result is not taken. %s", c.ID, *c.Result)
}

// Cancel ends a working sub-agent and the sub-agents that work for it. It brings no result to the parent's log.
func (s *Store) Cancel(ctx context.Context, org db.Org, parentID, id string) (Child, error) {
	c, err := s.Child(ctx, org, parentID, id)
	if err != nil {
		return c, err
	}
	if err := s.Agents.Recall.CancelChild(ctx, org, c.Key, "It was cancelled on request."); err != nil {
		return c, err
	}
	return s.Child(ctx, org, parentID, id)
}

// said returns the last text that a sub-agent said after its task.
func (s *Store) said(ctx context.Context, org db.Org, c Child) (*string, error) {
	conversation, err := s.Agents.Recall.Conversation(ctx, org, c.AgentID, c.ConversationName)
	if err != nil {
		return nil, err
	}
	messages, err := s.Agents.Recall.Newest(ctx, org, conversation, recall.Assistant, c.AfterPosition)
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		var texts []string
		for _, p := range m.Content {
			if p.Type == recall.Text && strings.TrimSpace(p.Text) != "" {
				texts = append(texts, p.Text)
			}
		}
		if len(texts) > 0 {
			return new(strings.Join(texts, "\n\n")), nil
		}
	}
	return nil, db.Invalid("the sub-agent has not said anything yet: give its result")
}

// errReturned rolls back a transaction because the sub-agent has already returned.
var errReturned = errors.New("the sub-agent has returned")

// mark stores that a sub-agent has returned. It returns errReturned if the sub-agent had returned before.
func (c Child) mark(ctx context.Context, tx pgx.Tx, org db.Org, r Result, message string) error {
	status := Returned
	if r.Failed {
		status = Failed
	}
	err := db.Exec(ctx, tx, `
		UPDATE children SET status = $3, result = $4, message_id = $5, returned_at = now()
		WHERE org = $1 AND key = $2 AND status = 'working'`, org, c.Key, status, db.Clean(*r.Text), message)
	if errors.Is(err, db.ErrNotFound) {
		return errReturned
	}
	return err
}

// parentConversation returns the name of the parent's conversation, for which the sub-agent works.
func (c Child) parentConversation() string {
	if c.ParentIsDefault {
		return recall.DefaultConversation
	}
	return c.ParentConversationID
}

// answerCall stores a result as the result of the parent's call. If the call already has a result, it stores the result
// as a message.
func (s *Store) answerCall(ctx context.Context, org db.Org, c Child, r Result) error {
	place := recall.CallPlace{AgentID: c.ParentAgentID, Conversation: c.parentConversation(), ID: *c.ToolCallID,
		Position: *c.CallPosition}
	id := "message-" + strings.TrimPrefix(c.ID, "child-")
	stored, err := s.Agents.Recall.AnswerCall(ctx, org, place, func(tx pgx.Tx) (recall.Draft, error) {
		d, err := c.result(ctx, s.Loop.In(tx), org, place, r)
		if err != nil {
			return d, err
		}
		d.ID = id
		return d, c.mark(ctx, tx, org, r, id)
	})
	if stored || err != nil {
		return err
	}
	return s.bring(ctx, org, c, r)
}

// result drafts the result of the parent's call. A run that waits for it shows it as its own.
func (c Child) result(ctx context.Context, l *loop.Loop, org db.Org, place recall.CallPlace, r Result) (
	d recall.Draft, err error) {
	var approval recall.Approval
	if c.Awaited {
		if d, approval, err = l.ResultOf(ctx, org, place); err != nil {
			return d, err
		}
	}
	d.Role = recall.Tool
	d.Content = []recall.Part{{Type: recall.ToolReturn, CallID: place.ID, Text: c.shown(r), IsError: r.Failed,
		Approval: approval}}
	return d, nil
}

// bring appends a result to the parent's conversation as a message.
func (s *Store) bring(ctx context.Context, org db.Org, c Child, r Result) error {
	parent, err := s.Agents.Agent(ctx, org, c.ParentAgentID)
	if err != nil {
		return err
	}
	id := "message-" + strings.TrimPrefix(c.ID, "child-")
	d := recall.Draft{ID: id, Role: recall.User, OTID: &c.ID, Content: []recall.Part{{Type: recall.Text,
		Text: c.shown(r)}}}
	return db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		// Every transaction locks the conversation first, then the sub-agent.
		if _, err := tx.Exec(ctx, `
			SELECT FROM conversations WHERE org = $1 AND id = $2 FOR NO KEY UPDATE`, org, c.ParentConversationID); err != nil {
			return err
		}
		if err := c.mark(ctx, tx, org, r, id); err != nil {
			return err
		}
		_, err := s.Loop.In(tx).Record(ctx, org, parent, loop.Record{Conversation: c.parentConversation(),
			Drafts: func(yield func(recall.Draft, error) bool) { yield(d, nil) }})
		return err
	})
}

// shown returns the text that the parent's log shows for a result.
func (c Child) shown(r Result) string {
	text, how := *r.Text, "returned"
	if r.Failed {
		how = "failed"
	}
	head := fmt.Sprintf("The sub-agent %s (%s) %s:\n\n", c.ID, c.Name, how)
	if n := utf8.RuneCountInString(text); n > maxResultChars {
		text = string([]rune(text)[:maxResultChars]) + fmt.Sprintf("\n"+frame.FirstChars,
			maxResultChars, n, "")
	}
	return head + text + fmt.Sprintf("\n\n"+frame.ToReadLog, fmt.Sprintf("expand(id=%q)", c.ID))
}

// queueName is the queue of the jobs that bring results.
const queueName = "child_results"

// Queues returns the queue of the jobs that bring results, with its number of workers.
func Queues() map[string]river.QueueConfig {
	return map[string]river.QueueConfig{queueName: {MaxWorkers: 2}}
}

// Work registers the worker of the jobs that bring results.
func (s *Store) Work(workers *river.Workers) {
	river.AddWorker(workers, &queue.Worker[returnArgs]{Do: s.returnWhenFree})
}

// returnArgs are the arguments of the job that brings the result of a sub-agent after its run.
type returnArgs struct {
	Org      db.Org `json:"org"`
	ParentID string `json:"parent_id"`
	ID       string `json:"id"`
	Reason   string `json:"reason"` // why the run stopped
}

func (returnArgs) Kind() string { return "return_child" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (returnArgs) InsertOpts() river.InsertOpts { return queue.Once(queueName) }

// busyPause is the pause before the next attempt to bring a result to a conversation in which a run works.
const busyPause = 5 * time.Second

// returnWhenFree is the job around returnRun. It waits until no run works in the conversation and no calls wait there.
func (s *Store) returnWhenFree(ctx context.Context, job *river.Job[returnArgs]) error {
	err := s.returnRun(ctx, job.Args)
	_, busy := errors.AsType[*loop.BusyError](err)
	_, pending := errors.AsType[*loop.PendingError](err)
	if busy || pending {
		return river.JobSnooze(busyPause)
	}
	return err
}

// returnRun brings the result of a sub-agent after its run: the last text that it said, or the reason why the run
// stopped.
func (s *Store) returnRun(ctx context.Context, a returnArgs) error {
	c, err := s.Child(ctx, a.Org, a.ParentID, a.ID)
	if err != nil || c.Status != Working {
		return err
	}
	r := Result{Failed: a.Reason != loop.EndTurn && a.Reason != loop.ToolRule}
	r.Text, err = s.said(ctx, a.Org, c)
	switch {
	case errors.Is(err, db.ErrInvalid):
		r = Result{Text: new("It stopped without a result (" + a.Reason + ")."), Failed: true}
	case err != nil:
		return err
	case r.Failed:
		r.Text = new("It stopped before its end (" + a.Reason + "). It said last:\n" + *r.Text)
	}
	_, err = s.Return(ctx, a.Org, a.ParentID, a.ID, r)
	return err
}

// RunEnded is for loop.Loop.Ended. If the server runs the sub-agent and the run has ended, RunEnded queues the job that
// brings the result. Sub-agents that a cancelled or failed run waited for are cancelled.
func (s *Store) RunEnded(ctx context.Context, tx pgx.Tx, org db.Org, r loop.Run, reason string) error {
	if reason == loop.RequiresApproval {
		return nil
	}
	if !slices.Contains([]string{loop.EndTurn, loop.ToolRule, loop.MaxSteps}, reason) {
		if err := s.with(tx).cancelAwaited(ctx, org, r.Conversation); err != nil {
			return err
		}
	}
	waiting, err := db.All[Child](ctx, tx, rows+` AND c.id = @conversation AND k.runs AND k.status = 'working'`,
		pgx.StrictNamedArgs{"org": org, "conversation": r.Conversation})
	for _, c := range waiting {
		if s.Agents.Jobs == nil {
			break
		}
		if _, err := s.Agents.Jobs.InsertTx(ctx, tx, returnArgs{org, c.ParentAgentID, c.ID, reason}, nil); err != nil {
			return err
		}
	}
	return err
}

// cancelAwaited cancels the sub-agents that runs of a conversation wait for.
func (s *Store) cancelAwaited(ctx context.Context, org db.Org, conversation string) error {
	awaited, err := db.All[Child](ctx, s.DB, rows+` AND pc.id = @conversation AND k.awaited AND k.status = 'working'`,
		pgx.StrictNamedArgs{"org": org, "conversation": conversation})
	for _, c := range awaited {
		if err := s.Agents.Recall.CancelChild(ctx, org, c.Key, "The run that waited for it has ended."); err != nil {
			return err
		}
	}
	return err
}
