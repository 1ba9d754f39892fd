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

// blamed is what a provider fails for, as far as it was found.
type blamed struct {
	found    bool         // messages from before the turn, which left the view
	answer   model.Answer // without them
	alone    bool         // the turn, without what came before it, too
	place    string       // a part of the prompt that is no message; empty for none
	askAgain bool         // the texts of the open files, which are in no further prompt of the run
}

// blame finds out what a provider fails for, after it refused the prompt, or failed two turns in a row and did not say
// that it is for what a prompt says.
func (w *worker) blame(ctx context.Context, f *model.Fault, at agent.PromptTarget, r model.Request) (blamed, error) {
	p := probe{worker: w, at: at, request: r}
	earlier, err := w.mayBeEarlier(ctx, f)
	if err != nil || !earlier && f.Kind != model.Content && (w.isShown() || !isUnclear(f)) {
		return blamed{}, err
	}
	if earlier {
		if b, err := p.earlier(ctx, f); err != nil || b.found {
			return b, err
		}
	}
	alone := p.refused
	b, err := p.frame(ctx, f, earlier && f.Kind != model.Content)
	b.alone = alone && b.place == ""
	return b, err
}

// earlier asks for an answer without messages from before the turn. They leave the view only if the provider answers
// without them, and then fails with them once more: a provider that fails whatever it is asked, or works again, hides
// nothing.
func (p *probe) earlier(ctx context.Context, f *model.Fault) (b blamed, err error) {
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
		return blamed{found: works, answer: p.answer}, err
	}
	p.answer = last
	left, err := p.narrow(ctx, suspects.Parts)
	if err == nil {
		err = p.leaveOut(ctx, f, left)
	}
	return blamed{found: err == nil, answer: p.answer}, err
}

// mayBeEarlier reports whether a fault may be of messages from before the turn. A refusal of a later prompt of a turn
// is not: the provider took the first.
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
	answer  model.Answer // the last
	refused bool         // the provider refused the last prompt for what it says
}

// maxProbes bounds how often a model is asked to find what its provider refuses.
const maxProbes = 16

// without asks without some messages, and reports whether the model answers.
func (p *probe) without(ctx context.Context, left []recall.Message) (works bool, err error) {
	prompt, err := p.Agents.PreviewWithout(ctx, p.org, p.at, p.conversation, left)
	if err != nil {
		return false, err
	}
	return p.ask(ctx, prompt)
}

// ask asks with a prompt, and reports whether the model answers.
func (p *probe) ask(ctx context.Context, prompt json.RawMessage) (works bool, err error) {
	if p.asked++; p.asked > maxProbes {
		p.refused = false
		return false, nil
	}
	r := p.request
	r.Prompt = prompt
	a, err := p.model.Answer(ctx, r, func(model.Delta) {}) // clients are shown the one that is stored
	if err == nil {
		p.answer, p.refused = a, false
		return true, nil
	}
	f, is := errors.AsType[*model.Fault](err)
	p.refused = is && f.Kind == model.Content
	return false, ctx.Err()
}

// narrow returns the fewest messages that it finds without which the model answers, of parts of a view without which it
// answers. It looks for the oldest part that is refused, then for the next one. When no more may be asked, it returns
// the smallest set that it knows. The answer is without them.
func (p *probe) narrow(ctx context.Context, parts [][]recall.Message) (left []recall.Message, err error) {
	left = union(parts...)
	var found []recall.Message
	for len(parts) > 0 && p.asked < maxProbes {
		works, fails := 0, len(parts) // without the parts from works on the model answers, from fails on it does not
		for fails-works > 1 && p.asked < maxProbes {
			middle := (works + fails) / 2
			set := union(found, union(parts[middle:]...))
			answers, err := p.without(ctx, set)
			switch {
			case err != nil:
				return nil, err
			case answers:
				works, left = middle, set
			default:
				fails = middle
			}
		}
		if fails-works > 1 {
			return left, nil
		}
		found = union(found, parts[works])
		if parts = parts[fails:]; len(parts) == 0 {
			return left, nil
		}
		if answers, err := p.without(ctx, found); err != nil || answers {
			return found, err
		}
	}
	return left, nil
}

// union returns the messages of parts, each once. Only parts that follow each other may have the same ones.
func union(parts ...[]recall.Message) []recall.Message {
	return slices.CompactFunc(slices.Concat(parts...), func(a, b recall.Message) bool { return a.Position == b.Position })
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
