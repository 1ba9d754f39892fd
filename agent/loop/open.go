package loop

import (
	"context"
	"iter"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

// clientCalls selects the calls of a conversation's last answer that the client runs or approves. The log and the
// agent's rules decide: the answer may be of a run, of a step, of a capture or of a fork.
type clientCalls struct {
	rules   rules
	askedBy Run                    // the run of the conversation that made the answer; empty if none did
	runs    func(tool string) bool // the server runs the tool
}

func (l *Loop) clientCallsOf(ctx context.Context, org db.Org, c recall.Conversation, r rules, end tail) (
	clientCalls, error) {
	asked, err := l.askedBy(ctx, org, c, end)
	return clientCalls{r, asked, l.Tools.Has}, err
}

// has reports whether a call without a result waits for the client.
func (c clientCalls) has(call recall.Part) bool {
	stop := c.askedBy.StopReason
	return stop != nil && *stop == RequiresApproval || c.askedBy.Options.asks(c.rules, call.Name) ||
		!c.runs(call.Name)
}

// waitIn reports whether calls at the end of a conversation wait for the client.
func (c clientCalls) waitIn(end tail) bool { return slices.ContainsFunc(end.pending, c.has) }

// Record is messages that were made outside of the loop.
type Record struct {
	Conversation string                         // an id, or recall.DefaultConversation
	Drafts       iter.Seq2[recall.Draft, error] // nil for none
	Refusal      *Refusal                       // of the newest prompt, with the messages; nil if it was not refused
	Answer       bool                           // the first message is an answer of the caller's own loop
	Leaves       bool                           // calls that wait for the client may be left without a result
}

// Recorded is what Record appended.
type Recorded struct {
	Messages     []recall.Appended
	Conversation recall.Conversation
	Left         []chat.PendingCall // waited for the client, and have no result although the conversation went on
	Refused      *recall.RefusedView
}

// Record appends messages to a conversation of an agent, all or none. *BusyError if a run works in the conversation,
// *PendingError if the messages would leave calls without a result and may not. Messages that are stored already
// change nothing and are no error. A conversation whose prompt was too long for the provider is compacted.
func (l *Loop) Record(ctx context.Context, org db.Org, of agent.Agent, r Record) (out Recorded, err error) {
	if r.Drafts == nil {
		out, err = l.recordRefusal(ctx, org, of, r)
	} else {
		out, err = l.recordMessages(ctx, org, of, r)
	}
	if err == nil && r.Refusal != nil && r.Refusal.isOverflow() && !r.Refusal.isKnown(out.Conversation) {
		out.Refused, err = l.makeRoom(ctx, org, out.Conversation, *r.Refusal)
	}
	return out, err
}

func (l *Loop) recordMessages(ctx context.Context, org db.Org, of agent.Agent, r Record) (out Recorded, err error) {
	turns := recall.Turns{AgentID: of.ID, Conversation: r.Conversation, Drafts: r.Drafts}
	err = l.Recall.AppendAnd(ctx, org, turns, func(tx pgx.Tx, appended []recall.Appended, c recall.Conversation) error {
		out = Recorded{Messages: appended, Conversation: c, Left: []chat.PendingCall{}}
		if slices.ContainsFunc(appended, isNew) {
			if err := l.recorded(ctx, tx, recording{org, of, r}, &out); err != nil {
				return err
			}
		}
		if r.Refusal == nil {
			return nil
		}
		var err error
		out.Refused, err = l.with(tx).refuseWith(ctx, org, out, *r.Refusal)
		return err
	})
	return out, err
}

// recording is a call of Record.
type recording struct {
	org db.Org
	of  agent.Agent
	Record
}

// recorded checks and completes what Record appended.
func (l *Loop) recorded(ctx context.Context, tx pgx.Tx, r recording, out *Recorded) error {
	org, c := r.org, out.Conversation
	// The append has locked the conversation: no run begins in it before this transaction ends.
	open, err := refuseBusyOrOpen(ctx, tx, org, c)
	if err != nil || !open {
		return err
	}
	in := l.Recall.With(tx)
	ends, err := endsBefore(ctx, in, org, *out, r.Answer)
	if err != nil {
		return err
	}
	for _, end := range ends {
		left, err := l.with(tx).leftBehind(ctx, in, org, leaving{r.of, c, end})
		if err != nil || len(left) > 0 && !r.Leaves {
			return orPending(err, end)
		}
		out.Left = append(out.Left, left...)
	}
	return nil
}

// recordRefusal records a refusal without messages.
func (l *Loop) recordRefusal(ctx context.Context, org db.Org, of agent.Agent, r Record) (out Recorded, err error) {
	out.Left = []chat.PendingCall{}
	if out.Conversation, err = l.Recall.Conversation(ctx, org, of.ID, r.Conversation); err != nil || r.Refusal == nil {
		return out, err
	}
	view, err := l.Refuse(ctx, org, out.Conversation, *r.Refusal)
	out.Refused = &view
	return out, err
}

func isNew(a recall.Appended) bool { return !a.Repeated }

// refuseBusyOrOpen is refuseBusy, and reports whether the conversation has calls without a result, of whatever age.
func refuseBusyOrOpen(ctx context.Context, tx pgx.Tx, org db.Org, c recall.Conversation) (open bool, err error) {
	var run *string
	var batch pgx.Batch
	batch.Queue(`SELECT max(id) FROM runs WHERE org = $1 AND conversation_key = $2 AND status = 'running'`, org, c.Key).
		QueryRow(func(row pgx.Row) error { return row.Scan(&run) })
	recall.QueueHasOpenCalls(&batch, org, c.Key, &open)
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return false, db.Error(err)
	}
	if run != nil {
		return false, &BusyError{*run}
	}
	return open, nil
}

// endsBefore returns the end that a conversation had before the first new message and, if the first of all is an
// answer, that at the answer.
func endsBefore(ctx context.Context, in *recall.Store, org db.Org, r Recorded, answer bool) ([]tail, error) {
	first := r.Messages[slices.IndexFunc(r.Messages, isNew)]
	before, err := readTailBefore(ctx, in, org, r.Conversation, first.ID)
	if err != nil || !answer {
		return []tail{before}, err
	}
	m, err := in.Message(ctx, org, r.Messages[0].ID)
	return []tail{before, {answer: &m}}, err
}

func orPending(err error, end tail) error {
	if err != nil {
		return err
	}
	return &PendingError{end.answer.ID}
}

// leaving is a conversation that may have gone on after an answer.
type leaving struct {
	agent        agent.Agent
	conversation recall.Conversation
	tail
}

// leftBehind returns the calls of an answer that wait for the client if the conversation has gone on without their
// results.
func (l *Loop) leftBehind(ctx context.Context, in *recall.Store, org db.Org, at leaving) (left []chat.PendingCall,
	err error) {
	if at.answer == nil {
		return nil, nil
	}
	now, err := readTail(ctx, in, org, at.conversation)
	if err != nil || !now.goesOnAfter(at.tail) {
		return nil, err
	}
	calls, err := in.CallsAt(ctx, org, at.conversation.Key, at.answer.Position)
	if err != nil {
		return nil, err
	}
	clients, err := l.clientCallsOf(ctx, org, at.conversation, readRules(at.agent), at.tail)
	for _, c := range calls {
		if c.Result == nil && clients.has(c.Part) {
			left = append(left, chat.PendingCall{CallID: c.CallID, Name: c.Name, Position: at.answer.Position})
		}
	}
	return left, err
}

// RefuseBusy returns a *BusyError if a run works in a conversation.
func (l *Loop) RefuseBusy(ctx context.Context, org db.Org, c recall.Conversation) error {
	return refuseBusy(ctx, l.DB, org, c)
}

func refuseBusy(ctx context.Context, d db.DB, org db.Org, c recall.Conversation) error {
	r, err := activeIn(ctx, d, org, c.ID)
	if err == nil {
		return &BusyError{r.ID}
	}
	return ignoreNotFound(err)
}

// Pending is calls of an answer that wait for the client.
type Pending struct {
	Message recall.Message // the answer, with these calls alone
	Calls   []string       // their ids
}

// Pending returns the calls that wait for the clients of agents, by the agents' ids, in their default conversations. An
// agent without any, or with a run that works there, has none.
func (l *Loop) Pending(ctx context.Context, org db.Org, agents ...agent.Agent) (map[string]Pending, error) {
	keys, of := []int64{}, map[string]agent.Agent{}
	for _, a := range agents {
		keys, of[a.ID] = append(keys, a.Key), a
	}
	list, err := l.Recall.DefaultsWithOpenCalls(ctx, org, keys)
	pending := map[string]Pending{}
	for _, c := range list {
		p, err := l.pendingIn(ctx, org, of[c.AgentID], c)
		if err != nil {
			return nil, err
		}
		if len(p.Calls) > 0 {
			pending[c.AgentID] = p
		}
	}
	return pending, err
}

func (l *Loop) pendingIn(ctx context.Context, org db.Org, of agent.Agent, c recall.Conversation) (p Pending,
	err error) {
	if _, err = activeIn(ctx, l.DB, org, c.ID); ignoreNotFound(err) != nil || err == nil {
		return p, err
	}
	end, err := readTail(ctx, l.Recall, org, c)
	if err != nil || end.answer == nil {
		return p, err
	}
	clients, err := l.clientCallsOf(ctx, org, c, readRules(of), end)
	for _, call := range end.pending {
		if clients.has(call) {
			p.Calls = append(p.Calls, call.CallID)
		}
	}
	p.Message = *Waiting{Calls: p.Calls}.of(*end.answer).Message
	return p, err
}
