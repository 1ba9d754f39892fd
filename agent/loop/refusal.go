package loop

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/recall"
)

// refusal is a provider's refusal to answer.
type refusal struct {
	fault  *model.Fault
	err    error
	answer *recall.Draft // what the model said before the rest was withheld; nil if nothing
	alone  bool          // the provider also refuses the turn without earlier messages
	frame  bool          // the provider refuses the prompt whatever its messages say
}

// refused takes refused messages out of the view, and reports whether to ask the model again.
func (w *worker) refused(ctx context.Context, r refusal) (again bool, failed error) {
	shown := w.isShown()
	again, failed = w.leaveView(ctx, r, shown)
	return again && failed == nil && !shown, failed
}

// leaveView takes refused messages out of the view. again reports whether to ask the model once more, without messages
// from before the turn. Otherwise the run is stored as ended, so that whoever continues it does not ask again.
func (w *worker) leaveView(ctx context.Context, r refusal, wasShown bool) (again bool, err error) {
	run, f, failed := w.run, r.fault, *w.faultStop(ctx, r.err, r.fault)
	var withheld *Event
	err = w.inTx(ctx, func(tx pgx.Tx) error {
		log := w.Recall.With(tx)
		if err := log.Lock(ctx, w.org, w.conversation); err != nil {
			return err
		}
		if err := w.mayStore(ctx, tx, w.org, w.run); err != nil {
			return err
		}
		refused := recall.RefusedPrompt{Refused: recall.Refused{Status: f.Status, Message: f.Words}, RunID: &w.run.ID,
			Runs: append(w.run.messageRuns(), w.run.ID), Note: leftNote(f.Status), Answer: r.answer, Shown: wasShown,
			Alone: r.alone, Frame: r.frame}
		changed, err := log.Refuse(ctx, w.org, w.conversation, refused)
		if err == nil {
			withheld, err = w.storeWithheld(ctx, tx, r.answer)
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
	if err == nil && withheld != nil {
		w.add(*withheld)
		w.unstored = ""
	}
	return again, err
}

// storeWithheld stores the event that shows the stored beginning of a withheld answer. It returns nil if nothing was
// stored.
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

// leftNote returns the function that tells a model which messages left its view. The note contains no words of these
// messages or of the provider, because these might be refused again.
func leftNote(status int) func(left []recall.Message, part bool) []recall.Part {
	return func(left []recall.Message, part bool) []recall.Part {
		span := fmt.Sprintf("seq %d to %d", left[0].Seq, left[len(left)-1].Seq)
		text := fmt.Sprintf("%s The provider refused prompts with earlier messages (status %d). %d of them, %s, left your "+
			"view; the log has them.", frame.System, status, len(left), span)
		if part {
			text = fmt.Sprintf("%s The provider refused the prompt with your last answer and what followed it (status %d). "+
				"These %d messages, %s, left your view; the log has them.%s", frame.System, status, len(left), span,
				ranTools(left))
		}
		return []recall.Part{{Type: recall.Text, Text: text}}
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
