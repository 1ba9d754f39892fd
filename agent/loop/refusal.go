package loop

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// refusal is what a provider refused to answer.
type refusal struct {
	fault  *model.Fault
	err    error
	answer *recall.Draft // what the model said before the rest was withheld; nil if it said nothing
	alone  bool          // the provider refuses the turn without what came before it, too
}

// refused takes what a provider refused out of the view, and reports whether the model shall be asked again.
func (w *worker) refused(ctx context.Context, r refusal) (again bool, failed error) {
	shown := w.isShown()
	again, failed = w.leaveView(ctx, r, shown)
	return again && failed == nil && !shown, failed
}

// leaveView takes what a provider refused out of the view. again reports whether the model shall be asked once more,
// without messages from before the turn. Otherwise the run has ended: whoever goes on with it does not ask again.
func (w *worker) leaveView(ctx context.Context, r refusal, wasShown bool) (again bool, err error) {
	run, f, failed := w.run, r.fault, *w.faultStop(ctx, r.err, r.fault)
	var kept *Event
	err = w.inTx(ctx, func(tx pgx.Tx) error {
		in := w.Recall.With(tx)
		if err := in.Lock(ctx, w.org, w.conversation); err != nil {
			return err
		}
		if err := w.mayStore(ctx, tx, w.org, w.run); err != nil {
			return err
		}
		said := recall.RefusedPrompt{Refused: recall.Refused{Status: f.Status, Message: f.Words}, RunID: &w.run.ID,
			Runs: append(w.run.messageRuns(), w.run.ID), Note: leftNote(f.Status), Answer: r.answer, Shown: wasShown,
			Alone: r.alone}
		changed, err := in.Refuse(ctx, w.org, w.conversation, said)
		if err == nil {
			kept, err = w.storeWithheld(ctx, tx, r.answer)
		}
		if again = changed.AskAgain; err != nil || again {
			return err
		}
		run.Options.Refused = &Refused{failed.reason, *failed.failed}
		return setOptions(ctx, tx, w.org, run)
	})
	if err == nil {
		w.run = run
	}
	if err == nil && kept != nil {
		w.add(*kept)
		w.unstored = ""
	}
	return again, err
}

// storeWithheld stores the event that shows what was stored of an answer that was withheld; nil if nothing was.
func (w *worker) storeWithheld(ctx context.Context, tx pgx.Tx, answer *recall.Draft) (*Event, error) {
	if answer == nil {
		return nil, nil
	}
	m, err := w.Recall.With(tx).Message(ctx, w.org, answer.ID)
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	e := &Event{Message: &m, Streamed: w.streamed.any}
	return e, w.store(ctx, tx, m.ID, *e)
}

// Refused is the end of a run whose prompt was refused.
type Refused struct {
	Reason  string  `json:"reason"`
	Failure Failure `json:"failure"`
}

// leftNote returns what tells a model which messages left its view. It has no word of these, nor of the provider, which
// might be refused again.
func leftNote(status int) func(left []recall.Message, part bool) []recall.Part {
	return func(left []recall.Message, part bool) []recall.Part {
		span := fmt.Sprintf("seq %d to %d", left[0].Seq, left[len(left)-1].Seq)
		said := fmt.Sprintf("%s The provider refused prompts with earlier messages (status %d). %d of them, %s, left your "+
			"view; the log has them.", frame.System, status, len(left), span)
		if part {
			said = fmt.Sprintf("%s The provider refused the prompt with your last answer and what followed it (status %d). "+
				"These %d messages, %s, left your view; the log has them.%s", frame.System, status, len(left), span,
				ranTools(left))
		}
		return []recall.Part{{Type: recall.Text, Text: said}}
	}
}

// ranTools names the tools that messages called.
func ranTools(messages []recall.Message) string {
	var names []string
	for _, m := range messages {
		for _, p := range m.Content {
			if p.Type == recall.ToolCall && !slices.Contains(names, p.Name) {
				names = append(names, p.Name)
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " Calls in them were made, and what they changed stays: " + strings.Join(names, ", ") + "."
}

// Refusal is a report of a caller's own loop that a provider refused a prompt.
type Refusal struct {
	Status  int
	Message string
	OTID    string // the caller's own id of the report

	// Withheld says that the first message of the request is what the model said before the rest was withheld.
	Withheld bool

	withheldAt int // its position; 0 for none
}

// Refuse changes the view of a conversation after a report that its newest prompt was refused. It changes nothing if
// the refusal is not about what the prompt says. *BusyError if a run works in the conversation.
func (l *Loop) Refuse(ctx context.Context, org db.Org, c recall.Conversation, r Refusal) (out recall.RefusedView,
	err error) {
	if r.isOverflow() || r.Status != http.StatusOK && !model.IsContent(r.Status, r.Message) {
		return recall.RefusedView{Left: []string{}, Returned: []string{}, Unchanged: true}, nil
	}
	return l.takeOut(ctx, org, c, r)
}

// takeOut is Refuse of a refusal for whatever reason.
func (l *Loop) takeOut(ctx context.Context, org db.Org, c recall.Conversation, r Refusal) (out recall.RefusedView,
	err error) {
	err = db.Tx(ctx, l.DB, func(tx pgx.Tx) error {
		in := l.Recall.With(tx)
		if err := in.Lock(ctx, org, c); err != nil {
			return err
		}
		if err := refuseBusy(ctx, tx, org, c); err != nil {
			return err
		}
		out, err = in.Refuse(ctx, org, c, recall.RefusedPrompt{Refused: recall.Refused{Status: r.Status, Message: r.Message},
			OTID: r.OTID, Note: leftNote(r.Status), WithheldAt: r.withheldAt})
		return err
	})
	return out, err
}

// isOverflow reports whether the provider found the prompt longer than its model's window.
func (r Refusal) isOverflow() bool {
	if r.Status == http.StatusOK { // the refusal was in the answer, and only its words tell
		return r.Message != "" && model.IsOverflow(http.StatusBadRequest, r.Message)
	}
	return model.IsOverflow(r.Status, r.Message)
}

// isKnown reports whether the newest report of a conversation has the refusal's otid.
func (r Refusal) isKnown(c recall.Conversation) bool {
	return r.OTID != "" && c.Refusal != nil && c.Refusal.OTID == r.OTID
}

// makeRoom compacts a conversation whose newest prompt was too long for the provider. If that makes it no smaller, the
// turn leaves the view. It changes nothing while another request compacts the conversation.
func (l *Loop) makeRoom(ctx context.Context, org db.Org, c recall.Conversation, r Refusal) (*recall.RefusedView,
	error) {
	out := recall.RefusedView{Left: []string{}, Returned: []string{}}
	ways := roomMakers
	compacted, err := l.compactNext(ctx, org, c, &ways)
	switch {
	case errors.Is(err, db.ErrBusy), errors.Is(err, db.ErrConflict):
		out.Unchanged, err = true, nil
	case err == nil && compacted:
		out.Compacted, out.AskAgain = true, true
		err = l.Recall.Reported(ctx, org, c, r.OTID)
	case err == nil:
		out, err = l.takeOut(ctx, org, c, r)
	}
	return &out, err
}

// refuseWith is Refuse with messages that the same request recorded. One that was stored and refused before says that
// the report is known. The loop's statements are those of a transaction.
func (l *Loop) refuseWith(ctx context.Context, org db.Org, with Recorded, r Refusal) (*recall.RefusedView, error) {
	for _, a := range with.Messages {
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
	case r.Withheld && len(with.Messages) > 1: // the conversation has gone on
		return nil, nil
	case r.Withheld:
		r.withheldAt = with.Messages[0].Position
	}
	view, err := l.Refuse(ctx, org, with.Conversation, r)
	return &view, err
}

// RefuseFlush ends the silent turn of the client's own loop whose prompt the provider refused, if one is open.
func (o *Outside) RefuseFlush(ctx context.Context, why string) error {
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
