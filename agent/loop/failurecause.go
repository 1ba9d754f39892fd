package loop

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/recall"
)

// failureCause is the part of a request that makes a provider fail, as far as it was found.
type failureCause struct {
	found    bool         // messages from before the turn; they left the view
	answer   model.Answer // the answer without them
	alone    bool         // the turn itself, even without earlier messages
	place    string       // a part of the prompt that is no message; empty for none
	askAgain bool         // the texts of open files; the run's further prompts leave them out
}

// findCause finds out which part of the request makes a provider fail. The provider refused the prompt, or failed two
// turns in a row without naming the content as the reason.
func (w *worker) findCause(ctx context.Context, f *model.Fault, target agent.PromptTarget, r model.Request) (
	failureCause, error) {
	p := probe{worker: w, at: target, request: r}
	earlier, err := w.mayBeEarlier(ctx, f)
	if err != nil || !earlier && f.Kind != model.Content && (w.isShown() || !isUnclear(f)) {
		return failureCause{}, err
	}
	if earlier {
		if b, err := p.earlier(ctx, f); err != nil || b.found {
			return b, err
		}
	}
	alone := p.refused
	b, err := p.findPromptFault(ctx, f, earlier && f.Kind != model.Content)
	b.alone = alone && b.place == ""
	return b, err
}

// earlier asks for an answer without messages from before the turn. They leave the view only if the provider answers
// without them and then fails with them again. So nothing is hidden if a provider fails for every prompt, or works
// again.
func (p *probe) earlier(ctx context.Context, f *model.Fault) (b failureCause, err error) {
	runs := append(p.run.messageRuns(), p.run.ID)
	suspects, err := p.Recall.Suspects(ctx, p.org, p.conversation, runs)
	if err != nil || len(suspects.All) == 0 {
		return b, err
	}
	if works, err := p.without(ctx, suspects.All); err != nil || !works {
		return b, err
	}
	last := p.answer
	if works, err := p.without(ctx, nil); works || err != nil {
		return failureCause{found: works, answer: p.answer}, err
	}
	p.answer = last
	leftOut, err := p.narrow(ctx, suspects.Parts)
	if err == nil {
		err = p.leaveOut(ctx, f, leftOut)
	}
	return failureCause{found: err == nil, answer: p.answer}, err
}

// mayBeEarlier reports whether a fault may be caused by messages from before the turn. A refusal of a later prompt of
// the turn is not, because the provider accepted the first.
func (w *worker) mayBeEarlier(ctx context.Context, f *model.Fault) (bool, error) {
	switch {
	case w.isShown():
		return false, nil
	case f.Kind == model.Content:
		return w.steps == 0, nil
	case !isUnclear(f):
		return false, nil
	}
	return w.failsAgain(ctx)
}

// probe asks for answers without some messages.
type probe struct {
	*worker
	at      agent.PromptTarget
	request model.Request
	asked   int
	answer  model.Answer // the last answer
	refused bool         // the provider refused the last prompt for its content
}

// maxProbes bounds how often a model is asked in order to find what its provider refuses.
const maxProbes = 16

// without asks without the messages left, and reports whether the model answers.
func (p *probe) without(ctx context.Context, left []recall.Message) (works bool, err error) {
	prompt, err := p.Agents.PreviewWithout(ctx, p.org, p.at, p.conversation, left)
	if err != nil {
		return false, err
	}
	return p.ask(ctx, prompt)
}

// ask asks with this prompt, and reports whether the model answers.
func (p *probe) ask(ctx context.Context, prompt json.RawMessage) (works bool, err error) {
	if p.asked++; p.asked > maxProbes {
		p.refused = false
		return false, nil
	}
	r := p.request
	r.Prompt = prompt
	a, err := p.model.Answer(ctx, r, func(model.Delta) {}) // clients are shown only the stored answer
	if err == nil {
		p.answer, p.refused = a, false
		return true, nil
	}
	f, is := errors.AsType[*model.Fault](err)
	p.refused = is && f.Kind == model.Content
	return false, ctx.Err()
}

// narrow returns a small set of messages without which the model answers. parts are the parts of the view; without all
// of them it answers. It looks for the oldest part that is refused, then for the next one. Once no more questions are
// allowed, it returns the smallest set found so far. p.answer is then the answer without that set.
func (p *probe) narrow(ctx context.Context, parts [][]recall.Message) (leftOut []recall.Message, err error) {
	leftOut = union(parts...)
	var found []recall.Message
	for len(parts) > 0 && p.asked < maxProbes {
		works, fails := 0, len(parts) // without parts[works:] the model answers, without parts[fails:] it does not
		for fails-works > 1 && p.asked < maxProbes {
			middle := (works + fails) / 2
			set := union(found, union(parts[middle:]...))
			answers, err := p.without(ctx, set)
			switch {
			case err != nil:
				return nil, err
			case answers:
				works, leftOut = middle, set
			default:
				fails = middle
			}
		}
		if fails-works > 1 {
			return leftOut, nil
		}
		found = union(found, parts[works])
		if parts = parts[fails:]; len(parts) == 0 {
			return leftOut, nil
		}
		if answers, err := p.without(ctx, found); err != nil || answers {
			return found, err
		}
	}
	return leftOut, nil
}

// union returns the messages of parts, each once. Only adjacent parts may share messages.
func union(parts ...[]recall.Message) []recall.Message {
	return slices.CompactFunc(slices.Concat(parts...), func(a, b recall.Message) bool { return a.Position == b.Position })
}

// leaveOut takes messages out of the view because the provider fails for them.
func (w *worker) leaveOut(ctx context.Context, f *model.Fault, leftOut []recall.Message) error {
	return w.inTx(ctx, func(tx pgx.Tx) error {
		log := w.Recall.With(tx)
		if err := log.Lock(ctx, w.org, w.conversation); err != nil {
			return err
		}
		if err := w.mayStore(ctx, tx, w.org, w.run); err != nil {
			return err
		}
		return log.LeaveOut(ctx, w.org, w.conversation, recall.RefusedPrompt{RunID: &w.run.ID,
			Refused: recall.Refused{Status: f.Status, Message: f.Words}, Note: leftNote(f.Status)}, leftOut)
	})
}

// isUnclear reports whether a failure may be caused by the prompt's content, although it does not say so. Failures
// about a key, an account, a limit or a setting are not, and neither is a timeout.
func isUnclear(f *model.Fault) bool {
	switch f.Status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusTooManyRequests, overloaded:
		return false
	}
	return (f.Kind == model.Failed || f.Kind == model.Broken) && (f.Again || f.Status != 0)
}

// overloaded is Anthropic's status for taking no requests at present.
const overloaded = 529

// failsAgain reports whether the model failed the conversation's run before this one, if that had other messages; or
// the two runs before, if they had the same messages.
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
