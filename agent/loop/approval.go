package loop

import (
	"context"
	"slices"
	"strings"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// input returns the messages that a request appends, including results of calls that it denies, and the ids of the
// calls that it approves.
func (l *Loop) input(ctx context.Context, log *recall.Store, org db.Org, c recall.Conversation, r Request) (
	drafts []recall.Draft, approved []string, err error) {
	end, err := readTail(ctx, log, org, c)
	if err != nil {
		return nil, nil, err
	}
	answers := answers{tail: end}
	clients, err := l.clientCallsOf(ctx, org, c, r.rules, end)
	if err != nil {
		return nil, nil, err
	}
	answers.asked = clients.askedBy
	if err := answers.approve(r.Approvals, l.Tools.Runs); err != nil {
		return nil, nil, err
	}
	for _, d := range r.Input {
		if err := answers.results(d, l.known(ctx, log, org, c, d)); err != nil {
			return nil, nil, err
		}
	}
	if drafts = answers.returned(r.Input); len(answers.denied.Content) > 0 {
		drafts = append([]recall.Draft{answers.denied}, drafts...)
	}
	if answers.leave(r.Input, clients) && (len(r.Input) == 0 || !l.known(ctx, log, org, c, r.Input[0])) {
		err = &PendingError{end.answer.ID}
	}
	return drafts, answers.approved, err
}

// leave reports whether the conversation would go on without answers to calls that wait for the client. That is so if
// the request answers none of them, or also has other messages.
func (a *answers) leave(input []recall.Draft, clients clientCalls) bool {
	others := slices.ContainsFunc(input, func(d recall.Draft) bool { return d.Role != recall.Tool })
	return (len(a.to) == 0 || others) && slices.ContainsFunc(a.pending, func(call recall.Part) bool {
		_, has := a.to[call.CallID]
		return !has && clients.has(call)
	})
}

// answers are a request's answers to waiting calls.
type answers struct {
	tail
	asked    Run // the run that made the calls
	to       map[string]Approval
	approved []string     // ids of calls
	denied   recall.Draft // results of the denied calls
}

// approve adds approvals. runs reports whether the server runs a tool. ErrInvalid if a call does not wait, or already
// has another answer.
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
				Approval: recall.Denied, Text: denial(one.Reason)})
		}
		if err := a.answer(one.CallID, one); err != nil {
			return err
		}
	}
	return nil
}

// results adds the results in a message. stored says that the message is already stored. ErrInvalid if a call does not
// wait, or already has another answer.
func (a *answers) results(d recall.Draft, stored bool) error {
	for _, p := range d.Content {
		switch {
		case p.Type != recall.ToolReturn:
			continue
		case !stored && !a.waitsFor(p.CallID):
			return a.notPending(p.CallID)
		}
		if err := a.answer(p.CallID, Approval{CallID: p.CallID}); err != nil {
			return err
		}
	}
	return nil
}

// returned returns a request's messages. Results of calls that were left to the client are marked so.
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

// answer records the answer to a call. ErrInvalid if the call already has one.
func (a *answers) answer(callID string, approval Approval) error {
	if _, has := a.to[callID]; has {
		return db.Invalid("The request answers the tool call %s twice: send one approval, denial or result of it",
			db.Short(callID))
	}
	if a.to == nil {
		a.to = map[string]Approval{}
	}
	a.to[callID] = approval
	return nil
}

// toolOf returns the tool of a waiting call.
func (t tail) toolOf(callID string) string {
	i := slices.IndexFunc(t.pending, func(p recall.Part) bool { return p.CallID == callID })
	return t.pending[i].Name
}

// each splits approvals into one per call. ErrInvalid if a call does not wait.
func (t tail) each(approvals []Approval) (all []Approval, err error) {
	for _, a := range approvals {
		if a.CallID == "" && t.waitsFor(a.MessageID) { // Letta's lists have the call's id there
			a.CallID, a.MessageID = a.MessageID, ""
		}
		switch {
		case a.CallID != "" && !t.waitsFor(a.CallID):
			return nil, t.notPending(a.CallID)
		case a.CallID != "":
			all = append(all, a)
		case len(t.pending) == 0 || a.MessageID != "" && a.MessageID != t.answer.ID:
			return nil, t.notPending(a.MessageID)
		default:
			for _, p := range t.pending {
				all = append(all, Approval{CallID: p.CallID, Approve: a.Approve, Reason: a.Reason, GroupID: a.GroupID})
			}
		}
	}
	return all, nil
}

// notPending returns the error of an answer to a call, or to a message with calls, that does not wait. Clients of Letta
// look for its words.
func (t tail) notPending(id string) error {
	if id != "" {
		id = ": nothing waits under the id " + db.Short(id)
	}
	if len(t.pending) == 0 {
		return db.Invalid("Cannot process approval response: No tool call is currently awaiting approval in this "+
			"conversation%s", id)
	}
	var waiting []string
	for _, p := range t.pending {
		waiting = append(waiting, p.CallID)
	}
	return db.Invalid("Invalid tool call IDs%s. Expected %s", id, strings.Join(waiting, ", "))
}
