package loop

import (
	"context"
	"slices"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// beginsAnew reports whether an agent whose model sees nothing of earlier requests forgets them for this one. Results
// of calls, and answers to requests for approval, belong to the request before.
func (r Request) beginsAnew() bool {
	return r.clears && len(r.Approvals) == 0 && len(r.Input) > 0 &&
		!slices.ContainsFunc(r.Input, func(d recall.Draft) bool { return d.Role == recall.Tool })
}

// clearView takes all messages of a conversation out of its model's view. The log keeps them. The loop must be in a
// transaction that holds the conversation's lock.
func (l *Loop) clearView(ctx context.Context, org db.Org, c recall.Conversation) error {
	c, err := l.Recall.Conversation(ctx, org, c.AgentID, c.ID)
	if err != nil || c.FirstVisible > c.Messages && len(c.Kept) == 0 {
		return err
	}
	_, err = l.Recall.ChangeView(ctx, org, c, recall.ContextView{Version: c.Version, FirstVisible: c.Messages + 1,
		HiddenTokens: c.Tokens}, nil)
	return err
}
