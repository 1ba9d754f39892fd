package loop

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// Approval is a client's answer to a call that needs its approval.
type Approval struct {
	CallID    string `json:"call_id,omitempty"` // empty for all calls of the message MessageID that wait
	MessageID string `json:"message_id,omitempty"`
	Approve   bool   `json:"approve"`
	Reason    string `json:"reason,omitempty"` // why it does not
	OTID      string `json:"otid,omitempty"`   // the client's own id of the answer; empty if it has none
	GroupID   string `json:"group_id,omitempty"`
}

// PendingError means that calls wait for the client's approval or results. It is an ErrConflict.
type PendingError struct{ MessageID string }

// Error implements error.
func (*PendingError) Error() string {
	return "The agent is waiting for approval on a tool call. Approve it, deny it, or send its result before you send " +
		"other messages"
}

// Unwrap returns ErrConflict.
func (*PendingError) Unwrap() error { return db.ErrConflict }

// input returns the messages that a request appends, its own and the results of calls that it denies, and the ids of
// the calls that it approves.
func (l *Loop) input(ctx context.Context, in *recall.Store, org db.Org, c recall.Conversation, r Request) (
	drafts []recall.Draft, approved []string, err error) {
	end, err := readTail(ctx, in, org, c)
	if err != nil {
		return nil, nil, err
	}
	answers := answers{tail: end}
	clients, err := l.clientCallsOf(ctx, org, c, r.rules, end)
	if err != nil {
		return nil, nil, err
	}
	answers.asked = clients.askedBy
	if err := answers.approve(r.Approvals, l.Tools.Has); err != nil {
		return nil, nil, err
	}
	for _, d := range r.Input {
		if err := answers.results(d, l.known(ctx, in, org, c, d)); err != nil {
			return nil, nil, err
		}
	}
	if drafts = answers.returned(r.Input); len(answers.denied.Content) > 0 {
		drafts = append([]recall.Draft{answers.denied}, drafts...)
	}
	if answers.leave(r.Input, clients) && (len(r.Input) == 0 || !l.known(ctx, in, org, c, r.Input[0])) {
		err = &PendingError{end.answer.ID}
	}
	return drafts, answers.approved, err
}

// leave reports whether the conversation would go on without the answers to calls that wait for the client: the
// request answers none, or has other messages.
func (a *answers) leave(input []recall.Draft, clients clientCalls) bool {
	others := slices.ContainsFunc(input, func(d recall.Draft) bool { return d.Role != recall.Tool })
	return (len(a.to) == 0 || others) && slices.ContainsFunc(a.pending, func(call recall.Part) bool {
		_, has := a.to[call.CallID]
		return !has && clients.has(call)
	})
}

// askedBy returns the run of a conversation's last answer; an empty one if no run of the conversation made it.
func (l *Loop) askedBy(ctx context.Context, org db.Org, c recall.Conversation, end tail) (Run, error) {
	if end.answer == nil || end.answer.RunID == nil {
		return Run{}, nil
	}
	r, err := l.RunByID(ctx, org, *end.answer.RunID)
	if err != nil || r.Conversation != c.ID {
		return Run{}, ignoreNotFound(err)
	}
	return r, nil
}

// answers are a request's answers to the calls that wait.
type answers struct {
	tail
	asked    Run // made the calls
	to       map[string]Approval
	approved []string     // ids of calls
	denied   recall.Draft // the results of denied calls
}

// approve adds approvals. ErrInvalid if a call does not wait, or if it has another answer. runs reports whether the
// server runs a tool.
func (a *answers) approve(approvals []Approval, runs func(tool string) bool) error {
	single, err := a.each(approvals)
	if err != nil {
		return err
	}
	a.denied.Role = recall.Tool
	for _, one := range single {
		one.MessageID, one.OTID = "", ""
		switch tool := a.toolOf(one.CallID); {
		case a.to[one.CallID] == one:
			continue
		case one.Approve && (!runs(tool) || a.asked.Options.hasClientTool(tool)):
			return db.Invalid("The call %s is of %s, a tool that the client runs: send its result in place of an approval, "+
				"or deny it", db.Short(one.CallID), tool)
		case one.Approve:
			a.approved = append(a.approved, one.CallID)
		default:
			if one.GroupID != "" {
				a.denied.GroupID = &one.GroupID
			}
			a.denied.Content = append(a.denied.Content, recall.Part{Type: recall.ToolReturn, CallID: one.CallID, IsError: true,
				Approval: recall.Denied, Text: deniedByClient + " " + cmp.Or(one.Reason, noReason)})
		}
		if err := a.answer(one.CallID, one); err != nil {
			return err
		}
	}
	return nil
}

// deniedByClient begins the results of calls that the client denied.
const deniedByClient = "The request to call the tool was denied."

// noReason is what the result of a denied call says if the client gave no reason.
const noReason = "No reason was given."

func isDenied(result recall.Part) bool {
	return result.IsError && (result.Approval == recall.Denied || strings.HasPrefix(result.Text, deniedByClient))
}

// DenialReason returns the reason that the client gave for a denial, by the text of the call's result; empty if the
// text has none.
func DenialReason(result string) string {
	reason, says := strings.CutPrefix(result, deniedByClient)
	if reason = strings.TrimSpace(reason); !says || reason == noReason {
		return ""
	}
	return reason
}

// results adds the results of a message. stored reports whether the message is stored already. ErrInvalid if a call
// does not wait, or if it has another answer.
func (a *answers) results(d recall.Draft, stored bool) error {
	for _, p := range d.Content {
		switch {
		case p.Type != recall.ToolReturn:
			continue
		case !stored && !a.waitsFor(p.CallID):
			return notPending(p.CallID)
		}
		if err := a.answer(p.CallID, Approval{CallID: p.CallID}); err != nil {
			return err
		}
	}
	return nil
}

// returned returns the messages of a request. Their results of calls that were left to the client say so.
func (t tail) returned(input []recall.Draft) []recall.Draft {
	drafts := slices.Clone(input)
	for i, d := range drafts {
		drafts[i].Content = slices.Clone(d.Content)
		for n, p := range d.Content {
			if p.Type == recall.ToolReturn && slices.ContainsFunc(t.pending, func(call recall.Part) bool {
				return call.CallID == p.CallID && call.Approval == recall.Asked
			}) {
				drafts[i].Content[n].Approval = recall.Returned
			}
		}
	}
	return drafts
}

// answer notes the answer to a call. ErrInvalid if it has one.
func (a *answers) answer(callID string, with Approval) error {
	if _, has := a.to[callID]; has {
		return db.Invalid("The request answers the tool call %s twice: send one approval, denial or result of it",
			db.Short(callID))
	}
	if a.to == nil {
		a.to = map[string]Approval{}
	}
	a.to[callID] = with
	return nil
}

// toolOf returns the tool of a call that waits.
func (t tail) toolOf(callID string) string {
	i := slices.IndexFunc(t.pending, func(p recall.Part) bool { return p.CallID == callID })
	return t.pending[i].Name
}

// each returns approvals of single calls. ErrInvalid if a call does not wait.
func (t tail) each(approvals []Approval) (all []Approval, err error) {
	for _, a := range approvals {
		switch {
		case a.CallID != "" && !t.waitsFor(a.CallID):
			return nil, notPending(a.CallID)
		case a.CallID != "":
			all = append(all, a)
		case len(t.pending) == 0 && a.MessageID == "":
			return nil, notPending("")
		case len(t.pending) == 0 || a.MessageID != "" && a.MessageID != t.answer.ID:
			return nil, db.Invalid("No tool call of the message %s waits for an approval or a result in this conversation",
				db.Short(a.MessageID))
		default:
			for _, p := range t.pending {
				all = append(all, Approval{CallID: p.CallID, Approve: a.Approve, Reason: a.Reason, GroupID: a.GroupID})
			}
		}
	}
	return all, nil
}

func ignoreNotFound(err error) error {
	if errors.Is(err, db.ErrNotFound) {
		return nil
	}
	return err
}

func notPending(callID string) error {
	if callID == "" {
		return db.Invalid("No tool call waits for an approval or a result in this conversation")
	}
	return db.Invalid("No tool call with the ID %s waits for an approval or a result in this conversation",
		db.Short(callID))
}

// approvalIn returns the approval of a call's result, by the calls that the client approved.
func approvalIn(approved []string, callID string) recall.Approval {
	if slices.Contains(approved, callID) {
		return recall.Approved
	}
	return ""
}

// asks reports whether calls of a tool are the client's to run or to approve.
func (o Options) asks(r rules, tool string) bool {
	return o.hasClientTool(tool) || r.has(byClient, tool) || r.has("requires_approval", tool)
}

// hasClientTool reports whether the client runs a tool.
func (o Options) hasClientTool(name string) bool {
	return slices.ContainsFunc(o.ClientTools, func(t ClientTool) bool { return t.Name == name })
}
