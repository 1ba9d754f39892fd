package loop

import (
	"context"
	"errors"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// settleTimeout bounds a try to note in the log what a request may have stored.
const settleTimeout = time.Second

// KeepUntold notes what a request may have stored in a conversation, which ended with an error that does not say. If
// the database does not answer, that is done later.
func (l *Loop) KeepUntold(ctx context.Context, org db.Org, c recall.Conversation, u recall.Untold) {
	l.untold.mu.Lock()
	l.untold.all[c.Key] = untoldIn{org, c, u}
	l.untold.mu.Unlock()
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	_ = l.settle(limited, c.AgentID) // the next request and Adopt try again
}

// settle notes in the log what requests may have stored in the conversations of an agent; of all if it is empty.
func (l *Loop) settle(ctx context.Context, agentID string) error {
	var failed error
	for key, u := range l.untold.of(agentID) {
		err := ignoreNotFound(l.Recall.KeepUntold(ctx, u.org, u.conversation, u.Untold))
		if failed = errors.Join(failed, err); err == nil {
			l.untold.drop(key, u)
		}
	}
	return failed
}
