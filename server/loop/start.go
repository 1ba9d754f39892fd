package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// Request asks for a run.
type Request struct {
	AgentID      string
	Conversation string // an id, or recall.DefaultConversation
	Background   bool
	Options      Options
	Input        []recall.Draft // messages of the client, and results of tools that it ran
	Approvals    []Approval
}

// Approval is a client's answer to a call that needs its approval.
type Approval struct {
	CallID    string // empty for all calls of the message MessageID that wait
	MessageID string
	Approve   bool
	Reason    string // why it does not
	OTID      string // the client's own id of the answer; empty if it has none
}

// Started is a run that was started, or that was found by the otid of a message.
type Started struct {
	Run Run
	*Feed
}

// BusyError means that another run works in the conversation. It is an ErrConflict.
type BusyError struct{ RunID string }

// Error implements error.
func (e *BusyError) Error() string {
	return fmt.Sprintf("CONFLICT: Another request is at work in this conversation (%s). Wait for its end, or cancel it",
		cmp.Or(e.RunID, "it has just ended"))
}

// Unwrap returns ErrConflict.
func (*BusyError) Unwrap() error { return db.ErrConflict }

// PendingError means that calls wait for the client's approval or results. It is an ErrConflict.
type PendingError struct{ MessageID string }

// Error implements error.
func (*PendingError) Error() string {
	return "The agent is waiting for approval on a tool call. Approve it, deny it, or send its result before you send " +
		"other messages"
}

// Unwrap returns ErrConflict.
func (*PendingError) Unwrap() error { return db.ErrConflict }

// Start stores the input of a request and begins a run. If the input was stored before, by its otids, it returns the
// run that was made of it. ErrNoModel without a model for the agent, *BusyError if another run works in the
// conversation, *PendingError if calls wait for the client and the input does not answer them.
func (l *Loop) Start(ctx context.Context, org db.Org, r Request) (Started, error) {
	a, err := l.Agents.Agent(ctx, org, r.AgentID)
	if err != nil {
		return Started{}, err
	}
	c, err := l.Recall.Conversation(ctx, org, r.AgentID, r.Conversation)
	if err != nil {
		return Started{}, err
	}
	m, err := l.modelFor(a.ModelIn(c), r.Options)
	if err != nil {
		return Started{}, err
	}
	r.Options.OTIDs = otidsOf(r.Approvals)
	run := Run{ID: newID("run-"), Background: r.Background, Options: r.Options}
	s := newSession(org, run, m)
	l.hold(s)
	repeats, err := l.begin(ctx, org, c, r, run)
	if err == nil && repeats == "" {
		if run, err = l.RunByID(ctx, org, run.ID); err == nil {
			s.run = run // Run changes the session's from now on
			err = l.hand(ctx, s)
		}
	}
	if err != nil || repeats != "" {
		l.release(s)
	}
	switch {
	case errors.Is(err, db.ErrConflict) && isTaken(err):
		return Started{}, l.busy(ctx, org, c)
	case err != nil:
		return Started{}, err
	case repeats != "":
		return l.found(ctx, org, repeats)
	}
	return Started{run, s.Feed}, nil
}

// hand gives a session to Run. Without a Run the session is interrupted, and its run is taken over later.
func (l *Loop) hand(ctx context.Context, s *session) error {
	select {
	case l.starts <- s:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *Loop) modelFor(handle string, o Options) (Model, error) {
	if l.Models == nil {
		return Model{}, ErrNoModel
	}
	if o.Model != nil {
		handle = *o.Model
	}
	return l.Models(handle)
}

// isTaken reports whether an error is that another run works in the conversation.
func isTaken(err error) bool { return db.Constraint(err) == "runs_one_at_a_time" }

// busy returns the error of a request that meets another one.
func (l *Loop) busy(ctx context.Context, org db.Org, c recall.Conversation) error {
	other, err := l.activeIn(ctx, org, c.ID)
	if err != nil && !errors.Is(err, db.ErrNotFound) {
		return err
	}
	return &BusyError{other.ID}
}

// errRepeated rolls a transaction back whose input is stored already.
var errRepeated = errors.New("the input is stored already")

// begin stores a run with its input. It returns the id of the run that has the input already, if one has.
func (l *Loop) begin(ctx context.Context, org db.Org, c recall.Conversation, r Request, run Run) (repeats string,
	err error) {
	err = db.Tx(ctx, l.DB, func(tx pgx.Tx) error {
		in := l.Recall.With(tx)
		if err := l.insert(ctx, tx, org, run, c); err != nil {
			return err
		}
		drafts, approved, err := l.input(ctx, in, org, c, r)
		if errors.Is(err, db.ErrInvalid) {
			if repeats = l.answered(ctx, tx, org, c, r); repeats != "" {
				return errRepeated
			}
		}
		if err != nil {
			return err
		}
		if len(approved) > 0 {
			run.Options.Approved = approved
			if err := setOptions(ctx, tx, org, run); err != nil {
				return err
			}
		}
		if len(drafts) == 0 {
			return nil
		}
		for i := range drafts {
			drafts[i].RunID = &run.ID
		}
		appended, err := in.Append(ctx, org, c.AgentID, c.ID, drafts)
		if err != nil {
			return err
		}
		repeats, err = repetition(ctx, in, org, c, appended)
		if err == nil && repeats != "" {
			return errRepeated
		}
		return err
	})
	if errors.Is(err, errRepeated) {
		err = nil
	}
	return repeats, err
}

// otidsOf returns the otids of approvals.
func otidsOf(approvals []Approval) (otids []string) {
	for _, a := range approvals {
		if a.OTID != "" && !slices.Contains(otids, a.OTID) {
			otids = append(otids, a.OTID)
		}
	}
	return otids
}

// answered returns the run that was made of the same approvals and messages, by their otids; empty if there is none.
func (l *Loop) answered(ctx context.Context, tx pgx.Tx, org db.Org, c recall.Conversation, r Request) string {
	if len(r.Approvals) == 0 || slices.ContainsFunc(r.Approvals, func(a Approval) bool { return a.OTID == "" }) {
		return ""
	}
	var run string
	err := tx.QueryRow(ctx, `
		SELECT id FROM runs
		WHERE org = $1 AND conversation_key = $2 AND status <> 'running' AND request -> 'otids' @> $3::jsonb
		ORDER BY created_at DESC, key DESC LIMIT 1`, org, c.Key, r.Options.OTIDs).Scan(&run)
	if err != nil {
		return "" // the request is refused for its approvals
	}
	for _, d := range r.Input {
		if d.OTID == nil {
			return ""
		}
		m, err := l.Recall.With(tx).ByOTID(ctx, org, c.AgentKey, *d.OTID)
		if err != nil || m.RunID == nil || *m.RunID != run {
			return ""
		}
	}
	return run
}

// repetition returns the run that was made of the messages if all of them were stored before; empty for messages that
// no run has. ErrConflict if only some were stored before, in several runs, or in another conversation.
func repetition(ctx context.Context, in *recall.Store, org db.Org, c recall.Conversation, appended []recall.Appended) (
	run string, err error) {
	var last *recall.Appended // that a run has
	for i, a := range appended {
		if !a.Repeated {
			continue
		}
		m, err := in.Message(ctx, org, a.ID)
		switch {
		case err != nil:
			return "", err
		case (m.ConversationID == nil) != c.IsDefault || m.ConversationID != nil && *m.ConversationID != c.ID:
			return "", db.Conflict("The otid %q belongs to a message of another conversation of the agent; a new message "+
				"needs an otid of its own", db.Short(*a.OTID))
		case m.RunID == nil: // it was captured
			continue
		case last != nil && *m.RunID != run:
			return "", db.Conflict("The otids %q and %q belong to messages of two earlier requests; a new message needs an "+
				"otid of its own", db.Short(*last.OTID), db.Short(*a.OTID))
		}
		last, run = &appended[i], *m.RunID
	}
	if last != nil && slices.ContainsFunc(appended, func(a recall.Appended) bool { return !a.Repeated }) {
		return "", db.Conflict("The message with the otid %q was sent before, without others of this request: nothing is "+
			"stored. Send the new messages alone", db.Short(*last.OTID))
	}
	return run, nil
}

// input returns the messages that a request appends, its own and the results of calls that it denies, and the ids of
// the calls that it approves.
func (l *Loop) input(ctx context.Context, in *recall.Store, org db.Org, c recall.Conversation, r Request) (
	drafts []recall.Draft, approved []string, err error) {
	end, err := readTail(ctx, in, org, c)
	if err != nil {
		return nil, nil, err
	}
	approvals, err := end.each(r.Approvals)
	if err != nil {
		return nil, nil, err
	}
	drafts, answers := slices.Clone(r.Input), len(approvals) > 0
	for _, d := range drafts {
		for _, p := range d.Content {
			if p.Type != recall.ToolReturn {
				continue
			}
			if answers = true; d.OTID == nil && !end.waitsFor(p.CallID) {
				return nil, nil, notPending(p.CallID)
			}
		}
	}
	denied := recall.Draft{Role: recall.Tool}
	for _, a := range approvals {
		if a.Approve {
			approved = append(approved, a.CallID)
			continue
		}
		denied.Content = append(denied.Content, recall.Part{Type: recall.ToolReturn, CallID: a.CallID, IsError: true,
			Text: "The request to call the tool was denied. " + cmp.Or(a.Reason, "No reason was given.")})
	}
	if len(denied.Content) > 0 {
		drafts = append([]recall.Draft{denied}, drafts...)
	}
	if !answers && !l.known(ctx, in, org, c, r.Input) {
		err = l.mustNotWait(ctx, org, c, end)
	}
	return drafts, approved, err
}

// mustNotWait returns a *PendingError if calls of the conversation's last run wait for the client.
func (l *Loop) mustNotWait(ctx context.Context, org db.Org, c recall.Conversation, end tail) error {
	if len(end.pending) == 0 || end.answer.RunID == nil {
		return nil
	}
	asked, err := l.RunByID(ctx, org, *end.answer.RunID)
	if err != nil || asked.Conversation != c.ID || asked.StopReason == nil || *asked.StopReason != RequiresApproval {
		return ignoreNotFound(err)
	}
	return &PendingError{end.answer.ID}
}

// each returns approvals of single calls. ErrInvalid if a call does not wait.
func (t tail) each(approvals []Approval) (all []Approval, err error) {
	for _, a := range approvals {
		switch {
		case a.CallID != "" && !t.waitsFor(a.CallID):
			return nil, notPending(a.CallID)
		case a.CallID != "":
			all = append(all, a)
		case len(t.pending) == 0 || a.MessageID != "" && a.MessageID != t.answer.ID:
			return nil, notPending(a.MessageID)
		default:
			for _, p := range t.pending {
				all = append(all, Approval{CallID: p.CallID, Approve: a.Approve, Reason: a.Reason})
			}
		}
	}
	return all, nil
}

// known reports whether the first message of an input is stored already, by its otid.
func (l *Loop) known(ctx context.Context, in *recall.Store, org db.Org, c recall.Conversation,
	input []recall.Draft) bool {
	if len(input) == 0 || input[0].OTID == nil {
		return false
	}
	_, err := in.ByOTID(ctx, org, c.AgentKey, *input[0].OTID)
	return err == nil
}

func ignoreNotFound(err error) error {
	if errors.Is(err, db.ErrNotFound) {
		return nil
	}
	return err
}

func notPending(callID string) error {
	return db.Invalid("No tool call with the ID %s waits for an approval or a result in this conversation",
		db.Short(callID))
}

// found returns a run that was made of the same input: a *BusyError while it runs, else its events from the log.
func (l *Loop) found(ctx context.Context, org db.Org, id string) (Started, error) {
	r, err := l.RunByID(ctx, org, id)
	if err != nil {
		return Started{}, err
	}
	if r.Status == Running {
		return Started{}, &BusyError{r.ID}
	}
	f, err := l.replay(ctx, org, r)
	return Started{r, f}, err
}

// maxRunMessages bounds the messages of a run that are read at once.
const maxRunMessages = 10_000

// produced returns the messages that a run made.
func (l *Loop) produced(ctx context.Context, org db.Org, r Run) ([]recall.Message, error) {
	all, err := l.Recall.Messages(ctx, org, recall.MessageFilter{AgentID: r.AgentID, RunID: r.ID, WithErrors: true,
		WithReset: true}, db.Page{Ascending: true, Limit: maxRunMessages})
	return slices.DeleteFunc(all, func(m recall.Message) bool { return m.StepID == nil }), err
}

// replay returns the events of a run that has ended.
func (l *Loop) replay(ctx context.Context, org db.Org, r Run) (*Feed, error) {
	a, err := l.Agents.Agent(ctx, org, r.AgentID)
	if err != nil {
		return nil, err
	}
	messages, err := l.produced(ctx, org, r)
	if err != nil {
		return nil, err
	}
	f, rules := newFeed(), readRules(a)
	for _, m := range messages {
		f.add(Event{Message: &m, Asked: r.Options.asked(rules, m)})
	}
	e := End{StopReason: *r.StopReason}
	if e.Usage, err = l.UsageOf(ctx, org, r); err != nil {
		return nil, err
	}
	if r.ErrorType != nil {
		e.Failure = &Failure{*r.ErrorType, *r.Error}
	}
	f.add(Event{End: &e})
	return f, nil
}

// asks reports whether a call of a tool is the client's to run or to approve.
func (o Options) asks(r rules, callID, tool string) bool {
	return slices.ContainsFunc(o.ClientTools, func(t ClientTool) bool { return t.Name == tool }) ||
		r.has(byClient, tool) || r.has("requires_approval", tool) && !slices.Contains(o.Approved, callID)
}

// asked returns the ids of the calls of a message that are the client's to run or to approve.
func (o Options) asked(r rules, m recall.Message) (ids []string) {
	for _, p := range m.Content {
		if p.Type == recall.ToolCall && o.asks(r, p.CallID, p.Name) {
			ids = append(ids, p.CallID)
		}
	}
	return ids
}

// Find returns a run of a conversation: that of an id, or that of a message's otid, or else the one that is at work.
// ErrNotFound if there is none.
func (l *Loop) Find(ctx context.Context, org db.Org, c recall.Conversation, id, otid string) (Run, error) {
	if id == "" && otid != "" {
		m, err := l.Recall.ByOTID(ctx, org, c.AgentKey, otid)
		if err != nil || m.RunID == nil {
			return Run{}, cmp.Or(err, db.ErrNotFound)
		}
		id = *m.RunID
	}
	if id == "" {
		return l.activeIn(ctx, org, c.ID)
	}
	r, err := l.RunByID(ctx, org, id)
	if err == nil && r.Conversation != c.ID {
		err = db.ErrNotFound
	}
	return r, err
}
