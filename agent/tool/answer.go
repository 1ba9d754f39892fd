package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// Call is a tool call that a message of the log contains.
type Call struct {
	recall.CallPlace
	Name      string
	Arguments json.RawMessage

	// Result is the message that will hold the result. Answer sets its role and its content. Approval is the approval that
	// the content part records.
	Result   recall.Draft
	Approval recall.Approval

	// May returns an error if the call may not run any more; nil allows every call. It is called in the transaction that
	// stores the result.
	May func(tx pgx.Tx) error

	// After is called in the same transaction once the tool has run; nil does nothing.
	After func(tx pgx.Tx, r Result) error
}

// Answer runs the tool of a call and appends the result to the log, unless the call already has a result. One
// transaction stores the result together with everything that the tool changes, so a call that is repeated after a
// crash does nothing twice. If the call does not exist, or already has a result, stored is false and Answer changes
// nothing. If the caller waits for a sub-agent that the call started, the result names it and is not stored. It returns
// the errors of Run.
func (s *Set) Answer(ctx context.Context, c Caller, call Call) (result Result, stored bool, err error) {
	t, err := s.named(s.Meant(c.Agent, call.Name))
	if err != nil {
		return Result{}, false, err
	}
	ctx = db.WithProvenance(ctx, db.Provenance{AgentID: c.Agent.ID, ConversationID: call.Conversation,
		Position: call.Position, Tool: t.Name})
	args := call.Arguments
	if len(bytes.TrimSpace(args)) == 0 {
		args = json.RawMessage("{}")
	}
	c.Call = &call.CallPlace
	before := t.reads || t.alone
	if before { // outside the transaction: the tool may wait for a network, or has transactions of its own
		if result, err = s.call(ctx, t, s.memories, c, args); err != nil || result.Subagent != "" {
			return result, false, err
		}
	}
	if t.ahead != nil {
		c = t.ahead(s.memories, ctx, c, args)
	}
	stored, err = s.memories.Recall.AnswerCall(ctx, c.Org, call.CallPlace, func(tx pgx.Tx) (recall.Draft, error) {
		if call.May != nil {
			if err := call.May(tx); err != nil {
				return recall.Draft{}, err
			}
		}
		if !before {
			if result, err = s.callIn(ctx, tx, t, c, args); err != nil {
				return recall.Draft{}, err
			}
		}
		if call.After != nil {
			if err := call.After(tx, result); err != nil {
				return recall.Draft{}, err
			}
		}
		d := call.Result
		d.Role, d.Content = recall.Tool, []recall.Part{{Type: recall.ToolReturn, CallID: call.ID, Text: result.Text,
			IsError: result.IsError, Approval: call.Approval}}
		return d, nil
	})
	return result, stored, err
}

var errRefused = errors.New("the tool refuses the call")

// callIn calls a tool in tx. If the tool refuses the call, nothing is changed.
func (s *Set) callIn(ctx context.Context, tx pgx.Tx, t Tool, c Caller, args json.RawMessage) (result Result,
	err error) {
	err = db.Tx(ctx, tx, func(tx pgx.Tx) error {
		result, err = s.call(ctx, t, s.memories.in(tx), c, args)
		if err == nil && result.IsError {
			return errRefused
		}
		return err
	})
	if errors.Is(err, errRefused) {
		err = nil
	}
	return result, err
}
