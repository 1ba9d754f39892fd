package loop

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

// refuseBusyOrOpen is refuseBusy, and also reports whether the conversation has calls without a result, however old.
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

// endsBefore returns the end that a conversation had before its first new message. If the first message of all is an
// answer, it also returns the end at that answer.
func endsBefore(ctx context.Context, log *recall.Store, org db.Org, r Recorded, answer bool) ([]tail, error) {
	first := r.Messages[slices.IndexFunc(r.Messages, isNew)]
	before, err := readTailBefore(ctx, log, org, r.Conversation, first.ID)
	if err != nil || !answer {
		return []tail{before}, err
	}
	m, err := log.Message(ctx, org, r.Messages[0].ID)
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

// leftBehind returns the calls of an answer that wait for the client, if the conversation has gone on without their
// results.
func (l *Loop) leftBehind(ctx context.Context, log *recall.Store, org db.Org, leaves leaving) (left []chat.PendingCall,
	err error) {
	if leaves.answer == nil {
		return nil, nil
	}
	current, err := readTail(ctx, log, org, leaves.conversation)
	if err != nil || !current.goesOnAfter(leaves.tail) {
		return nil, err
	}
	calls, err := log.CallsAt(ctx, org, leaves.conversation.Key, leaves.answer.Position)
	if err != nil {
		return nil, err
	}
	clients, err := l.clientCallsOf(ctx, org, leaves.conversation, readRules(leaves.agent), leaves.tail)
	for _, c := range calls {
		if c.Result == nil && clients.has(c.Part) {
			left = append(left, chat.PendingCall{CallID: c.CallID, Name: c.Name, Position: leaves.answer.Position})
		}
	}
	return left, err
}

// Pending is an answer with calls that wait for the client.
type Pending struct {
	Message recall.Message // the answer with only these calls
	Calls   []string       // their ids
}

// Pending maps agent id → the calls in its default conversation that wait for the client. An agent has no entry if no
// call waits, or if a run is working there.
func (l *Loop) Pending(ctx context.Context, org db.Org, agents ...agent.Agent) (map[string]Pending, error) {
	keys, byID := []int64{}, map[string]agent.Agent{}
	for _, a := range agents {
		keys, byID[a.ID] = append(keys, a.Key), a
	}
	list, err := l.Recall.DefaultsWithOpenCalls(ctx, org, keys)
	pending := map[string]Pending{}
	for _, c := range list {
		p, err := l.pendingIn(ctx, org, byID[c.AgentID], c)
		if err != nil {
			return nil, err
		}
		if len(p.Calls) > 0 {
			pending[c.AgentID] = p
		}
	}
	return pending, err
}

func (l *Loop) pendingIn(ctx context.Context, org db.Org, a agent.Agent, c recall.Conversation) (p Pending,
	err error) {
	if _, err = activeIn(ctx, l.DB, org, c.ID); ignoreNotFound(err) != nil || err == nil {
		return p, err
	}
	end, err := readTail(ctx, l.Recall, org, c)
	if err != nil || end.answer == nil {
		return p, err
	}
	clients, err := l.clientCallsOf(ctx, org, c, readRules(a), end)
	for _, call := range end.pending {
		if clients.has(call) {
			p.Calls = append(p.Calls, call.CallID)
		}
	}
	p.Message = *Waiting{Calls: p.Calls}.of(*end.answer).Message
	return p, err
}
