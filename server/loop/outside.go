package loop

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/server/agent"
	"github.com/loci-memory/loci/server/tool"
)

// Outside runs the memory tools of an agent whose models a client asks itself, and keeps the rules of its tools. The
// calls since the newest message of a user count for the rules.
type Outside struct {
	*Loop
	Conversation recall.Conversation
	caller       tool.Caller
	rules        rules
	tools        []string // names of the agent's memory tools
	all          []string // and of those that its program runs
	approved     []string // ids of calls
}

// OutsideCall is a call of an answer. One without a result is the client's to run, or to approve.
type OutsideCall struct {
	recall.AnsweredCall
	Ran           bool // its result is the server's
	NeedsApproval bool // the server runs it when the client approves it
}

// NewOutside returns the tools of an agent in a conversation. ErrNotFound if the conversation does not exist.
func (l *Loop) NewOutside(ctx context.Context, org db.Org, of agent.Agent, conversation string) (*Outside, error) {
	c, err := l.Recall.Conversation(ctx, org, of.ID, conversation)
	if err != nil {
		return nil, err
	}
	has, err := l.Agents.Files.HasFolder(ctx, org, of.ID)
	if err != nil {
		return nil, err
	}
	o := &Outside{Loop: l, Conversation: c, caller: callerOf(org, of, c), rules: readRules(of)}
	for _, t := range l.Tools.Of(of, has) {
		if o.all = append(o.all, t.Name); !t.ByClient {
			o.tools = append(o.tools, t.Name)
		}
	}
	return o, nil
}

// Approve answers calls of the conversation's last answer that need an approval: it runs those that are approved, and
// gives those that are denied a result that says so. It returns all calls of the answer. An answer that comes again
// changes nothing. ErrInvalid if a call is none of that answer, or is the client's own; ErrConflict if it has another
// answer.
func (o *Outside) Approve(ctx context.Context, approvals []Approval) ([]OutsideCall, error) {
	t, err := readTail(ctx, o.Recall, o.caller.Org, o.Conversation)
	if err != nil || len(approvals) == 0 {
		return nil, err
	}
	var fresh []Approval
	for _, a := range approvals {
		result, has := t.results[a.CallID]
		switch {
		case has && isDenied(result) == a.Approve:
			return nil, db.Conflict("The tool call %s was answered before, otherwise", db.Short(a.CallID))
		case !has:
			fresh = append(fresh, a)
		}
	}
	answers := answers{tail: t}
	if err := answers.approve(fresh, func(tool string) bool { return slices.Contains(o.tools, tool) }); err != nil {
		return nil, err
	}
	for _, p := range answers.denied.Content {
		if _, err := o.Recall.AnswerCall(ctx, o.caller.Org, o.place(p.CallID, t.answer.Position),
			failedWith(recall.Draft{}, p.CallID, p.Text)); err != nil {
			return nil, err
		}
	}
	if o.approved = answers.approved; t.answer == nil {
		return nil, nil
	}
	return o.Run(ctx, t.answer.Position)
}

func (o *Outside) place(callID string, position int) recall.CallPlace {
	return recall.CallPlace{AgentID: o.caller.Agent.ID, Conversation: o.Conversation.ID, ID: callID, Position: position}
}

// Run runs the memory tools that the message at a position calls, unless the calls have results or need an approval,
// and refuses calls that the rules do not allow. It returns all calls of the message.
func (o *Outside) Run(ctx context.Context, position int) ([]OutsideCall, error) {
	before, err := o.callsBefore(ctx, position)
	if err != nil {
		return nil, err
	}
	for {
		calls, err := o.Recall.CallsAt(ctx, o.caller.Org, o.Conversation.Key, position)
		if err != nil {
			return nil, err
		}
		all, changed, err := o.runNext(ctx, before, position, calls)
		if err != nil || !changed {
			return all, err
		}
	}
}

// runNext runs or refuses the next of some calls, and reports whether there was one.
func (o *Outside) runNext(ctx context.Context, before []done, position int, calls []recall.AnsweredCall) (
	all []OutsideCall, changed bool, err error) {
	refused := o.refusals(before, calls)
	for _, c := range calls {
		runs := slices.Contains(o.tools, c.Name)
		asks := runs && o.rules.has("requires_approval", c.Name) && !slices.Contains(o.approved, c.CallID)
		ran := c.Result != nil && (runs || isRefused(*c.Result))
		all = append(all, OutsideCall{c, ran, asks && c.Result == nil})
		why := refused[c.CallID]
		if c.Result != nil || why == "" && (asks || !runs) {
			continue
		}
		at := o.place(c.CallID, position)
		if why != "" {
			_, err = o.Recall.AnswerCall(ctx, o.caller.Org, at, failedWith(recall.Draft{}, c.CallID, why))
		} else {
			_, _, err = o.Tools.Answer(ctx, o.caller, tool.Call{CallPlace: at, Name: c.Name, Arguments: []byte(c.Input)})
		}
		return nil, true, err
	}
	return all, false, nil
}

// refusals returns why calls of an answer are refused, by their ids.
func (o *Outside) refusals(before []done, calls []recall.AnsweredCall) map[string]string {
	answer, results, tools := recall.Message{}, map[string]recall.Part{}, slices.Clone(o.all)
	for _, c := range calls {
		answer.Content = append(answer.Content, c.Part)
		if tools = append(tools, c.Name); c.Result != nil {
			results[c.CallID] = *c.Result
		}
	}
	return o.rules.refusals(tools, before, answer, results)
}

// callsBefore returns the calls between the newest message of a user and a position that count for the rules.
func (o *Outside) callsBefore(ctx context.Context, position int) ([]done, error) {
	if len(o.rules) == 0 {
		return nil, nil
	}
	var turn []recall.Message
	page, f := db.Page{Limit: tailPage}, recall.MessageFilter{AgentID: o.caller.Agent.ID,
		Conversation: o.Conversation.ID, WithErrors: true}
	for {
		list, err := o.Recall.Messages(ctx, o.caller.Org, f, page)
		if err != nil {
			return nil, err
		}
		for _, m := range list {
			if m.Role == recall.User && m.Position < position {
				slices.Reverse(turn)
				return counted(answeredCalls(turn), position), nil
			}
			turn = append(turn, m)
		}
		if len(list) < page.Limit || len(turn) >= maxRunMessages {
			slices.Reverse(turn)
			return counted(answeredCalls(turn), position), nil
		}
		page.After = list[len(list)-1].ID
	}
}

// Next is what follows in a loop of a client.
type Next struct {
	Prompt agent.StoredPrompt
	Calls  []OutsideCall // without results, for the client
	Ended  bool          // by the rule of a tool

	Reminded bool // the model was told which tools it must still call
}

// Next returns the next prompt, and the calls for which it waits. Calls of memory tools that nobody has run yet are
// run. If the model must still call tools before its turn ends, it is told so once.
func (o *Outside) Next(ctx context.Context, at agent.PromptTarget) (next Next, err error) {
	t, err := readTail(ctx, o.Recall, o.caller.Org, o.Conversation)
	if err != nil {
		return next, err
	}
	if t.answer != nil && len(t.results) == 0 && len(t.pending) == 0 {
		if next.Reminded, err = o.remind(ctx, t); err != nil {
			return next, err
		}
	}
	if next.Ended, err = o.narrow(ctx, &at, t); err != nil {
		return next, err
	}
	next.Prompt, err = o.Agents.NextPrompt(ctx, o.caller.Org, at)
	if err != nil || len(next.Prompt.Pending) == 0 {
		return next, err
	}
	calls, err := o.Run(ctx, next.Prompt.Pending[0].Position)
	if err != nil {
		return next, err
	}
	for _, c := range calls {
		if c.Result == nil {
			next.Calls = append(next.Calls, c)
		}
	}
	if len(next.Calls) < len(next.Prompt.Pending) {
		next.Prompt, err = o.Agents.NextPrompt(ctx, o.caller.Org, at)
	}
	return next, err
}

// narrow leaves tools out of a prompt that the rules do not allow now. It reports whether a call of the last answer
// ends the turn.
func (o *Outside) narrow(ctx context.Context, at *agent.PromptTarget, t tail) (ended bool, err error) {
	calls, err := o.callsBefore(ctx, 1<<31-1)
	if err != nil || len(o.rules) == 0 {
		return false, err
	}
	at.OnlyTools = o.rules.narrow(o.all, calls).only
	if t.answer == nil {
		return false, nil
	}
	return slices.ContainsFunc(t.answer.Content, func(p recall.Part) bool {
		r, has := t.results[p.CallID]
		return p.Type == recall.ToolCall && has && o.rules.ends(done{tool: p.Name, failed: r.IsError})
	}), nil
}

// remind tells the model once which tools it must call before its turn ends, after an answer without calls. It reports
// whether there are such tools.
func (o *Outside) remind(ctx context.Context, t tail) (bool, error) {
	calls, err := o.callsBefore(ctx, t.answer.Position)
	if err != nil {
		return false, err
	}
	missing := o.rules.missing(o.all, calls)
	if len(missing) == 0 || t.notice {
		return len(missing) > 0, nil
	}
	d := reminder(missing)
	d.OTID = new("reminder-" + t.answer.ID) // steps that come at the same time store it once
	_, err = o.Recall.Append(ctx, o.caller.Org, o.caller.Agent.ID, o.Conversation.ID, []recall.Draft{d})
	if errors.Is(err, db.ErrConflict) { // it says other tools
		err = nil
	}
	return true, err
}

// reminder is the message that tells a model which tools it must call.
func reminder(missing []string) recall.Draft {
	text := chat.SystemNotice + " Before your response ends, you must call " + strings.Join(missing, ", ") + "."
	return recall.Draft{Role: recall.System, Content: []recall.Part{{Type: recall.Text, Text: text}}}
}
