package loop

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// ClientLoop runs memory tools for a client that asks the agent's model itself, and applies the rules of the agent's
// tools. The rules count calls since the user's newest message.
type ClientLoop struct {
	*Loop
	Conversation recall.Conversation
	caller       tool.Caller
	rules        rules
	tools        []string // names of the agent's memory tools
	all          []string // those, and the names of tools that its program runs
	approved     []string // ids of approved calls

	Paused bool // the model continues its last answer when asked again
}

// ClientLoopCall is a call in an answer. A call without a result is for the client to run or to approve.
type ClientLoopCall struct {
	recall.AnsweredCall
	Ran           bool // the server made its result
	NeedsApproval bool // the server runs it once the client approves
}

// NewClientLoop returns the ClientLoop of an agent in a conversation. ErrNotFound if the conversation does not exist.
func (l *Loop) NewClientLoop(ctx context.Context, org db.Org, a agent.Agent, conversation string) (*ClientLoop, error) {
	c, err := l.Recall.Conversation(ctx, org, a.ID, conversation)
	if err != nil {
		return nil, err
	}
	has, err := l.Agents.Files.HasFolder(ctx, org, a.ID)
	if err != nil {
		return nil, err
	}
	o := &ClientLoop{Loop: l, Conversation: c, caller: tool.CallerIn(org, a, c), rules: readRules(a)}
	for _, t := range l.Tools.Of(a, has) {
		if o.all = append(o.all, t.Name); !t.ByClient {
			o.tools = append(o.tools, t.Name)
		}
	}
	if len(o.rules) == 0 && tool.MemoryIsFiles(a) { // rules name a tool as its calls do
		o.tools = append(o.tools, "memory")
	}
	return o, nil
}

func (o *ClientLoop) place(callID string, position int) recall.CallPlace {
	return recall.CallPlace{AgentID: o.caller.Agent.ID, Conversation: o.Conversation.ID, ID: callID, Position: position}
}

// Run runs the memory tools called by the message at position, except calls that have results or need an approval, and
// refuses calls that the rules do not allow. It returns all calls of the message.
func (o *ClientLoop) Run(ctx context.Context, position int) ([]ClientLoopCall, error) {
	turn, err := o.ruleInput(ctx, position)
	if err != nil {
		return nil, err
	}
	for {
		calls, err := o.Recall.CallsAt(ctx, o.caller.Org, o.Conversation.Key, position)
		if err != nil {
			return nil, err
		}
		all, changed, err := o.runNext(ctx, turn.before(position), position, calls)
		if err != nil || !changed {
			return all, err
		}
	}
}

// runNext runs or refuses the next of these calls, and reports whether there was one.
func (o *ClientLoop) runNext(ctx context.Context, before []done, position int, calls []recall.AnsweredCall) (
	all []ClientLoopCall, changed bool, err error) {
	refused := o.refusals(before, calls)
	if err := o.addNotGranted(ctx, refused, calls); err != nil {
		return nil, false, err
	}
	for _, c := range calls {
		runs := slices.Contains(o.tools, o.meant(c.Name))
		asks := o.needsApproval(c.Name) && !slices.Contains(o.approved, c.CallID)
		all = append(all, ClientLoopCall{c, o.ran(c), asks && c.Result == nil})
		why := refused[c.CallID]
		if c.Result != nil || why == "" && (asks || !runs) {
			continue
		}
		place := o.place(c.CallID, position)
		if why != "" {
			_, err = o.Recall.AnswerCall(ctx, o.caller.Org, place, failedWith(recall.Draft{}, recall.Part{CallID: c.CallID,
				Text: why, Approval: approvalIn(o.approved, c.CallID)}))
		} else {
			_, _, err = o.Tools.Answer(ctx, o.caller, tool.Call{CallPlace: place, Name: c.Name, Arguments: []byte(c.Input),
				Approval: approvalIn(o.approved, c.CallID)})
		}
		return nil, true, err
	}
	return all, false, nil
}

// ran reports whether the server ran or refused a call.
func (o *ClientLoop) ran(c recall.AnsweredCall) bool {
	return c.Result != nil && (slices.Contains(o.tools, o.meant(c.Name)) || isRefused(*c.Result) ||
		c.Name == recall.Nameless || c.Result.IsError && strings.HasPrefix(c.Result.Text, tool.NotGrantedBegins))
}

// refusals maps call id → why the call is refused: by a rule, or because it names no tool.
func (o *ClientLoop) refusals(before []done, calls []recall.AnsweredCall) map[string]string {
	answer, results, tools := recall.Message{}, map[string]recall.Part{}, slices.Clone(o.all)
	for _, c := range calls {
		answer.Content = append(answer.Content, c.Part)
		if tools = append(tools, o.meant(c.Name)); c.Result != nil {
			results[c.CallID] = *c.Result
		}
	}
	refused := o.rules.refusals(tools, before, answer, results)
	for _, c := range calls {
		if c.Name == recall.Nameless && c.Result == nil && !slices.Contains(o.all, c.Name) { // no program has such a tool
			refused[c.CallID] = "The call names no tool. " + tool.Available("", o.all)
		}
	}
	return refused
}

// addNotGranted refuses the calls of a sub-agent to tools of the server that only its parent has. It adds the refusals
// to refused.
func (o *ClientLoop) addNotGranted(ctx context.Context, refused map[string]string, calls []recall.AnsweredCall) error {
	for _, c := range calls {
		name := o.meant(c.Name)
		if c.Result != nil || refused[c.CallID] != "" || !o.Tools.Has(name) || slices.Contains(o.all, name) {
			continue
		}
		why, err := o.Tools.NotGranted(ctx, o.caller.Org, o.caller.Agent, name)
		if err != nil {
			return err
		}
		if why != "" {
			refused[c.CallID] = why + " " + tool.Available("", o.all)
		}
	}
	return nil
}

// ruleInput returns the rules' input for the message at position. It is empty if there are no rules.
func (o *ClientLoop) ruleInput(ctx context.Context, position int) (ruleInput, error) {
	if len(o.rules) == 0 {
		return ruleInput{}, nil
	}
	return o.rules.readRuleInput(ctx, o.Recall, o.caller.Org, o.Conversation, position)
}

// Next tells a client that runs the loop itself what to do: send a prompt, run calls, or end the turn.
type Next struct {
	Prompt agent.StoredPrompt
	Calls  []ClientLoopCall // calls without results, for the client
	Ended  bool             // a tool's rule ended the turn
	Empty  bool             // nobody said anything that the model sees

	Answered bool // the model spoke last without calling a tool; a summary may have replaced its answer

	Reminded bool // the model was told which tools it must still call
	GaveUp   bool // the model was told that often enough, and did not call them
}

// Next returns the next prompt, and the calls that it waits for. It runs calls of memory tools that nobody has run yet.
// If the model must still call tools before its turn ends, it is reminded once.
func (o *ClientLoop) Next(ctx context.Context, target agent.PromptTarget) (next Next, err error) {
	t, err := readTail(ctx, o.Recall, o.caller.Org, o.Conversation)
	if err != nil {
		return next, err
	}
	next.Empty, next.Answered = t.empty, t.answer != nil && !hasCalls(*t.answer)
	if len(o.rules) > 0 {
		turn, err := o.ruleInput(ctx, lastPosition)
		if err != nil {
			return next, err
		}
		if err = o.afterAnswer(ctx, &turn, t, &next); err != nil {
			return next, err
		}
		calls := turn.before(lastPosition)
		n := o.rules.narrow(o.all, calls)
		if target.OnlyTools = n.only; !next.Ended && !next.GaveUp {
			target.MustCall = turn.forced(o.rules.missing(o.all, calls), n)
		}
	}
	next.Prompt, err = o.Agents.NextPrompt(ctx, o.caller.Org, target)
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
		next.Prompt, err = o.Agents.NextPrompt(ctx, o.caller.Org, target)
	}
	return next, err
}

// afterAnswer finds out whether a tool's rule ends the turn after the last answer. If not, it reminds the model of
// tools that it must still call.
func (o *ClientLoop) afterAnswer(ctx context.Context, turn *ruleInput, t tail, next *Next) error {
	if t.answer == nil || o.Paused {
		return nil
	}
	e := o.rules.after(o.all, turn.before(t.answer.Position), t)
	switch {
	case e.ended || !e.ends || len(e.missing) == 0 || len(t.pending) > 0:
		next.Ended = e.ended
		return nil
	case t.notice:
		next.Reminded = true
		return nil
	}
	d, times := turn.reminder(e.missing)
	if next.GaveUp = times >= maxReminders; next.GaveUp {
		return nil
	}
	next.Reminded, turn.reminders = true, append(turn.reminders, d.Content[0].Text)
	d.OTID = new("reminder-" + t.answer.ID) // simultaneous steps store it only once
	_, err := o.Recall.Append(ctx, o.caller.Org, o.caller.Agent.ID, o.Conversation.ID, []recall.Draft{d})
	if errors.Is(err, db.ErrConflict) { // the stored one names other tools
		err = nil
	}
	return err
}

// meant returns the name of the tool that a call means.
func (o *ClientLoop) meant(called string) string { return named(o.all, called) }

// named returns the name of the tool that a call means: called itself if it is one of tools, or else what tool.Named
// returns.
func named(tools []string, called string) string {
	if slices.Contains(tools, called) {
		return called
	}
	return tool.Named(called)
}

// needsApproval reports whether the server runs a tool only once the client approves.
func (o *ClientLoop) needsApproval(name string) bool {
	return slices.Contains(o.tools, o.meant(name)) && o.rules.has("requires_approval", name)
}
