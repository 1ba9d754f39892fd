package loop

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

// Record is messages that were made outside of the loop.
type Record struct {
	Conversation string                         // an id or recall.DefaultConversation
	Drafts       iter.Seq2[recall.Draft, error] // nil: none
	Refusal      *Refusal                       // refusal of the newest prompt, sent with the messages; nil: not refused
	Answer       bool                           // the first message is an answer from the caller's own loop
	Leaves       bool                           // calls that wait for the client may stay without a result
	Behind       int                            // position behind which the first new message must stand; 0: any
	Take         []string                       // as in recall.Turns
}

// ErrMoved means that the conversation does not end where a Record says.
var ErrMoved = errors.New("the conversation went on elsewhere")

// Recorded is what Record appended.
type Recorded struct {
	Messages     []recall.Appended
	Conversation recall.Conversation
	Left         []chat.PendingCall // calls for the client without a result, although the conversation went on
	Refused      *recall.RefusedView
}

// Record appends messages to an agent's conversation, all or none. Messages that are already stored change nothing and
// are no error. If the prompt was too long for the provider, the conversation is compacted. *BusyError if a run is
// working in the conversation; *PendingError if calls would stay without a result and may not.
func (l *Loop) Record(ctx context.Context, org db.Org, a agent.Agent, r Record) (out Recorded, err error) {
	if err := l.settle(ctx, a.ID); err != nil {
		return out, err
	}
	if r.Drafts == nil {
		out, err = l.recordRefusal(ctx, org, a, r)
	} else {
		out, err = l.recordMessages(ctx, org, a, r)
	}
	if err == nil && r.Refusal != nil && r.Refusal.isOverflow() && !r.Refusal.isKnown(out.Conversation) {
		out.Refused, err = l.makeRoom(ctx, org, out.Conversation, *r.Refusal)
	}
	return out, err
}

func (l *Loop) recordMessages(ctx context.Context, org db.Org, a agent.Agent, r Record) (out Recorded, err error) {
	turns := recall.Turns{AgentID: a.ID, Conversation: r.Conversation, Drafts: r.Drafts, Take: r.Take}
	err = l.Recall.AppendAnd(ctx, org, turns, func(tx pgx.Tx, appended []recall.Appended, c recall.Conversation) error {
		out = Recorded{Messages: appended, Conversation: c, Left: []chat.PendingCall{}}
		if i := slices.IndexFunc(appended, isNew); i >= 0 && r.Behind > 0 && appended[i].Position != r.Behind+1 {
			return ErrMoved
		}
		if slices.ContainsFunc(appended, isNew) {
			if err := l.recorded(ctx, tx, recording{org, a, r}, &out); err != nil {
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
	if errors.Is(err, db.ErrUnconfirmed) {
		l.KeepUnconfirmed(ctx, org, out.Conversation, recall.Unconfirmed{IDs: IDsOf(out.Messages)})
	}
	return out, err
}

// recording holds the arguments of a call of Record.
type recording struct {
	org db.Org
	of  agent.Agent
	Record
}

// recorded checks and completes what Record appended.
func (l *Loop) recorded(ctx context.Context, tx pgx.Tx, r recording, out *Recorded) error {
	org, c := r.org, out.Conversation
	// The append has locked the conversation, so no run begins in it before this transaction ends.
	open, err := refuseBusyOrOpen(ctx, tx, org, c)
	if err != nil || !open {
		return err
	}
	log := l.Recall.With(tx)
	ends, err := endsBefore(ctx, log, org, *out, r.Answer)
	if err != nil {
		return err
	}
	for _, end := range ends {
		pending, err := l.with(tx).leftBehind(ctx, log, org, leaving{r.of, c, end})
		if err != nil || len(pending) > 0 && !r.Leaves {
			return orPending(err, end)
		}
		out.Left = append(out.Left, pending...)
	}
	return nil
}

// recordRefusal records a refusal without messages.
func (l *Loop) recordRefusal(ctx context.Context, org db.Org, a agent.Agent, r Record) (out Recorded, err error) {
	out.Left = []chat.PendingCall{}
	if out.Conversation, err = l.Recall.Conversation(ctx, org, a.ID, r.Conversation); err != nil || r.Refusal == nil {
		return out, err
	}
	view, err := l.Refuse(ctx, org, out.Conversation, *r.Refusal)
	out.Refused = &view
	return out, err
}

// IDsOf returns the ids of messages.
func IDsOf(messages []recall.Appended) (ids []string) {
	for _, m := range messages {
		ids = append(ids, m.ID)
	}
	return ids
}

func isNew(a recall.Appended) bool { return !a.Repeated }

// refuseWith is Refuse for a refusal that comes with recorded messages. If one of them was stored and refused before,
// the report is already known. The loop must be in a transaction.
func (l *Loop) refuseWith(ctx context.Context, org db.Org, recorded Recorded, r Refusal) (*recall.RefusedView, error) {
	for _, a := range recorded.Messages {
		if !a.Repeated {
			continue
		}
		m, err := l.Recall.Message(ctx, org, a.ID)
		if err != nil {
			return nil, err
		}
		if m.Refused != nil {
			return &recall.RefusedView{Left: []string{}, Returned: []string{}, Unchanged: true}, nil
		}
	}
	switch {
	case r.Withheld && len(recorded.Messages) > 1: // the conversation has gone on
		return nil, nil
	case r.Withheld:
		r.withheldAt = recorded.Messages[0].Position
	}
	view, err := l.Refuse(ctx, org, recorded.Conversation, r)
	return &view, err
}
