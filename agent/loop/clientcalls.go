package loop

import (
	"context"
	"slices"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// clientCalls finds the calls of a conversation's last answer that the client must run or approve. It uses only the log
// and the agent's rules, because the answer may come from a run, a step, a capture or a fork.
type clientCalls struct {
	rules   rules
	askedBy Run                    // the conversation's run that made the answer; empty if none did
	runs    func(tool string) bool // reports whether the server runs the tool
}

func (l *Loop) clientCallsOf(ctx context.Context, org db.Org, c recall.Conversation, r rules, end tail) (
	clientCalls, error) {
	asked, err := l.askedBy(ctx, org, c, end)
	return clientCalls{r, asked, l.Tools.Runs}, err
}

// has reports whether a call without a result waits for the client.
func (c clientCalls) has(call recall.Part) bool {
	stop := c.askedBy.StopReason
	return stop != nil && *stop == RequiresApproval || c.askedBy.Options.asks(c.rules, call.Name) ||
		!c.runs(call.Name)
}

// waitIn reports whether any call at the end of a conversation waits for the client.
func (c clientCalls) waitIn(end tail) bool { return slices.ContainsFunc(end.pending, c.has) }

// askedBy returns the conversation's run that made its last answer; empty if there is none.
func (l *Loop) askedBy(ctx context.Context, org db.Org, c recall.Conversation, end tail) (Run, error) {
	if end.answer == nil || end.answer.RunID == nil {
		return Run{}, nil
	}
	r, err := l.RunByID(ctx, org, *end.answer.RunID)
	if err != nil || r.Conversation != c.ID {
		return Run{}, ignoreNotFound(err)
	}
	return r, nil
}
