package loop

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// Approve answers calls of the conversation's last answer that need an approval. It runs the approved calls, and gives
// the denied ones a result that says so. It returns all calls of the answer. A repeated approval changes nothing, even
// after the conversation has gone on. ErrInvalid if a call is not in that answer, or is the client's own; ErrConflict
// if it has another answer.
func (o *ClientLoop) Approve(ctx context.Context, approvals []Approval) ([]ClientLoopCall, error) {
	if len(approvals) == 0 {
		return nil, nil
	}
	answers, err := o.answersOf(ctx, approvals)
	if err != nil {
		return nil, err
	}
	t := answers.tail
	for _, p := range answers.denied.Content {
		if _, err := o.Recall.AnswerCall(ctx, o.caller.Org, o.place(p.CallID, t.answer.Position),
			failedWith(recall.Draft{}, p)); err != nil {
			return nil, err
		}
	}
	if len(answers.to) == 0 && answers.earlier > 0 {
		return o.callsAt(ctx, answers.earlier)
	}
	if t.answer == nil {
		return nil, nil
	}
	o.approved = answers.approved
	defer func() { o.approved = nil }() // a call in a later answer may have the same id
	return o.Run(ctx, t.answer.Position)
}

// clientLoopAnswers are the answers in approvals, without repeated ones.
type clientLoopAnswers struct {
	answers
	earlier int // position of an earlier message with calls that already had these approvals; 0 if there is none
}

func (o *ClientLoop) answersOf(ctx context.Context, approvals []Approval) (answers clientLoopAnswers, err error) {
	if answers.tail, err = readTail(ctx, o.Recall, o.caller.Org, o.Conversation); err != nil {
		return answers, err
	}
	var fresh []Approval
	for _, a := range approvals {
		result, has := answers.tail.results[a.CallID]
		if !has && !answers.waitsFor(a.CallID) {
			if result, answers.earlier, err = o.answeredBefore(ctx, a.CallID); err != nil {
				return answers, err
			}
			has = answers.earlier > 0
		}
		switch {
		case has && isDenied(result) == a.Approve:
			return answers, db.Conflict("The tool call %s was answered before, otherwise", db.Short(a.CallID))
		case !has:
			fresh = append(fresh, a)
		}
	}
	return answers, answers.approve(fresh, func(tool string) bool { return slices.Contains(o.tools, tool) })
}

// answeredBefore returns the result of the newest call with this id that a client approved or denied, and the position
// of the call's message; 0 if there is none.
func (o *ClientLoop) answeredBefore(ctx context.Context, callID string) (result recall.Part, position int, err error) {
	position, err = o.Recall.AnsweredCallOf(ctx, o.caller.Org, o.Conversation, callID)
	if err != nil {
		return result, 0, ignoreNotFound(err)
	}
	calls, err := o.Recall.CallsAt(ctx, o.caller.Org, o.Conversation.Key, position)
	for _, c := range calls {
		if c.CallID == callID && c.Result != nil && slices.Contains(decided, c.Result.Approval) {
			return *c.Result, position, err
		}
	}
	return result, 0, err
}

// decided are the approvals of results of calls that a client approved or denied.
var decided = []recall.Approval{recall.Approved, recall.Denied}

// callsAt returns the calls of the message at position, without running any.
func (o *ClientLoop) callsAt(ctx context.Context, position int) (all []ClientLoopCall, err error) {
	calls, err := o.Recall.CallsAt(ctx, o.caller.Org, o.Conversation.Key, position)
	for _, c := range calls {
		all = append(all, ClientLoopCall{AnsweredCall: c, Ran: o.ran(c)})
	}
	return all, err
}

// Try returns the error that Approve, or Record after it, would return. It changes nothing and runs no tool.
func (o *ClientLoop) Try(ctx context.Context, approvals []Approval, r Record) error {
	err := db.Tx(ctx, o.DB, func(tx pgx.Tx) error {
		inTx := *o
		inTx.Loop = o.with(tx)
		answers, err := inTx.answersOf(ctx, approvals)
		if err != nil {
			return err
		}
		for id := range answers.to {
			if _, err := inTx.Recall.AnswerCall(ctx, o.caller.Org, o.place(id, answers.tail.answer.Position),
				failedWith(recall.Draft{}, recall.Part{CallID: id})); err != nil {
				return err
			}
		}
		if _, err := inTx.Record(ctx, o.caller.Org, o.caller.Agent, r); err != nil {
			return err
		}
		return errTried
	})
	if errors.Is(err, errTried) {
		return nil
	}
	return err
}

// Asking yields a step's messages. The first is an answer, and its calls that need an approval are marked so.
func (o *ClientLoop) Asking(ctx context.Context, drafts iter.Seq2[recall.Draft, error]) (
	iter.Seq2[recall.Draft, error], error) {
	turn, err := o.ruleInput(ctx, lastPosition)
	if err != nil || len(o.rules) == 0 {
		return drafts, err
	}
	return func(yield func(recall.Draft, error) bool) {
		first := true
		for d, err := range drafts {
			if first && err == nil {
				d.Content = o.asking(turn, d.Content)
			}
			if first = false; !yield(d, err) {
				return
			}
		}
	}, nil
}

func (o *ClientLoop) asking(turn ruleInput, answer []recall.Part) []recall.Part {
	parts, calls := slices.Clone(answer), []recall.AnsweredCall{}
	for _, p := range parts {
		if p.Type == recall.ToolCall {
			calls = append(calls, recall.AnsweredCall{Part: p})
		}
	}
	refused := o.refusals(turn.before(lastPosition), calls)
	for i, p := range parts {
		if p.Type == recall.ToolCall && refused[p.CallID] == "" && o.needsApproval(p.Name) {
			parts[i].Approval = recall.Asked
		}
	}
	return parts
}
