package loop

import (
	"context"
	"net/http"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/recall"
)

// askWithout asks for an answer without messages from before the turn, after a provider failed two turns in a row and
// did not say that it is for what a prompt says. They leave the view only if the provider answers without them, and
// then fails with them once more: a provider that fails whatever it is asked, or works again, hides nothing.
func (w *worker) askWithout(ctx context.Context, f *model.Fault, at agent.PromptTarget, r model.Request) (
	answer model.Answer, found bool, err error) {
	if again, err := w.failsAgain(ctx); err != nil || !again || w.isShown() || !isUnclear(f) {
		return answer, false, err
	}
	runs := []string{w.run.ID, firstOf(w.run)}
	suspects, err := w.Recall.Suspects(ctx, w.org, w.conversation, runs)
	if err != nil || len(suspects.All) == 0 {
		return answer, false, err
	}
	ask := func(left []recall.Message) (model.Answer, bool, error) {
		var err error
		if r.Prompt, err = w.Agents.PreviewWithout(ctx, w.org, at, w.conversation, left); err != nil {
			return model.Answer{}, false, err
		}
		a, err := w.model.Answer(ctx, r, func(model.Delta) {}) // clients are shown the one that is stored
		return a, err == nil, ctx.Err()
	}
	if answer, found, err = ask(suspects.All); err != nil || !found {
		return answer, false, err
	}
	if whole, works, err := ask(nil); works || err != nil {
		return whole, works, err
	}
	left := suspects.All
	for _, set := range suspects.Sets {
		a, works, err := ask(set)
		if err != nil {
			return a, false, err
		}
		if works {
			answer, left = a, set
			break
		}
	}
	return answer, true, w.leaveOut(ctx, f, left)
}

// leaveOut takes messages out of the view for which the provider fails.
func (w *worker) leaveOut(ctx context.Context, f *model.Fault, left []recall.Message) error {
	return w.inTx(ctx, func(tx pgx.Tx) error {
		in := w.Recall.With(tx)
		if err := in.Lock(ctx, w.org, w.conversation); err != nil {
			return err
		}
		if err := w.mayStore(ctx, tx, w.org, w.run); err != nil {
			return err
		}
		return in.LeaveOut(ctx, w.org, w.conversation, recall.RefusedPrompt{RunID: &w.run.ID,
			Refused: recall.Refused{Status: f.Status, Message: f.Words}, Note: leftNote(f.Status)}, left)
	})
}

// isUnclear reports whether a failure may come because of what a prompt says, although it does not say so. One for a
// key, an account or a limit, one without an answer in time, and a wrong setting do not.
func isUnclear(f *model.Fault) bool {
	switch f.Status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusTooManyRequests, overloaded:
		return false
	}
	return (f.Kind == model.Failed || f.Kind == model.Broken) && (f.Again || f.Status != 0)
}

// overloaded is the status by which Anthropic says that it takes no requests for now.
const overloaded = 529

// failsAgain reports whether the model failed the conversation's run before this one, of other messages, or the two
// runs before, of the same.
func (w *worker) failsAgain(ctx context.Context) (bool, error) {
	before, err := w.endedBefore(ctx, w.org, w.run, w.conversation.Key)
	for _, r := range before {
		switch {
		case r.StopReason == nil || !slices.Contains([]string{ModelError, BrokenAnswer}, *r.StopReason):
			return false, err
		case firstOf(r) != firstOf(w.run):
			return true, err
		}
	}
	return len(before) == 2, err
}
