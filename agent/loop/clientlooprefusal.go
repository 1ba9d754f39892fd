package loop

import (
	"context"
	"errors"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// Refusal is a report from a caller's own loop that a provider refused a prompt.
type Refusal struct {
	Status  int
	Message string
	OTID    string // the caller's own id of the report

	// Elsewhere says that the provider refused something outside of the messages.
	Elsewhere bool

	// Withheld is set if the request's first message is the part of an answer that came before the provider withheld the
	// rest.
	Withheld bool

	withheldAt int // position of that message; 0 if there is none
}

// Refuse changes a conversation's view after a report that its newest prompt was refused. If the refusal is not about
// the prompt's content, it only records that the turn failed. *BusyError if a run is working in the conversation.
func (l *Loop) Refuse(ctx context.Context, org db.Org, c recall.Conversation, r Refusal) (out recall.RefusedView,
	err error) {
	if r.isOverflow() || !r.Elsewhere && r.Status != http.StatusOK && !model.IsContent(r.Status, r.Message) {
		if !r.isOverflow() && !r.isKnown(c) {
			err = l.Recall.TurnFailed(ctx, org, c, r.Status, r.OTID)
		}
		return recall.RefusedView{Left: []string{}, Returned: []string{}, Unchanged: true}, err
	}
	return l.takeOut(ctx, org, c, r)
}

// takeOut is Refuse without a check of the refusal's reason.
func (l *Loop) takeOut(ctx context.Context, org db.Org, c recall.Conversation, r Refusal) (out recall.RefusedView,
	err error) {
	err = db.Tx(ctx, l.DB, func(tx pgx.Tx) error {
		log := l.Recall.With(tx)
		if err := log.Lock(ctx, org, c); err != nil {
			return err
		}
		if err := refuseBusy(ctx, tx, org, c); err != nil {
			return err
		}
		out, err = log.Refuse(ctx, org, c, recall.RefusedPrompt{Refused: recall.Refused{Status: r.Status, Message: r.Message},
			OTID: r.OTID, Note: leftNote(r.Status), WithheldAt: r.withheldAt, Frame: r.Elsewhere})
		return err
	})
	return out, err
}

// isOverflow reports whether the provider found the prompt longer than its model's window.
func (r Refusal) isOverflow() bool {
	if r.Status == http.StatusOK { // the refusal was in the answer, so only its words tell
		return r.Message != "" && model.IsOverflow(http.StatusBadRequest, r.Message)
	}
	return model.IsOverflow(r.Status, r.Message)
}

// isKnown reports whether the conversation's newest report has this refusal's otid.
func (r Refusal) isKnown(c recall.Conversation) bool {
	return r.OTID != "" && c.Refusal != nil && c.Refusal.OTID == r.OTID
}

// makeRoom compacts a conversation after its newest prompt was too long for the provider. If that makes it no smaller,
// the turn leaves the view. While another request compacts the conversation, it changes nothing.
func (l *Loop) makeRoom(ctx context.Context, org db.Org, c recall.Conversation, r Refusal) (*recall.RefusedView,
	error) {
	out := recall.RefusedView{Left: []string{}, Returned: []string{}}
	ways := overflowSettings
	compacted, err := l.compactNext(ctx, org, c, &ways)
	switch {
	case errors.Is(err, db.ErrBusy), errors.Is(err, db.ErrConflict):
		out.Unchanged = true
		err = l.Recall.TurnFailed(ctx, org, c, r.Status, "")
	case err == nil && compacted:
		out.Compacted, out.AskAgain = true, true
		err = l.Recall.TurnFailed(ctx, org, c, r.Status, r.OTID)
	case err == nil:
		out, err = l.takeOut(ctx, org, c, r)
	}
	return &out, err
}

// RefuseFlush ends the open silent turn of the client's own loop, if there is one, because the provider refused its
// prompt.
func (o *ClientLoop) RefuseFlush(ctx context.Context, why string) error {
	open, err := o.Agents.FlushOfCaller(ctx, o.caller.Org, o.Conversation)
	if err != nil {
		return ignoreConflict(err)
	}
	if why, err = o.Recall.RedactText(ctx, o.caller.Org, why); err != nil {
		return err
	}
	_, err = o.Agents.EndFlush(ctx, o.caller.Org, open, agent.FlushFailed, db.Short(why))
	return ignoreConflict(err)
}
