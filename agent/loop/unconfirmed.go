package loop

import (
	"context"
	"errors"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// settleTimeout bounds one attempt to record in the log what a request may have stored.
const settleTimeout = time.Second

// KeepUnconfirmed records messages that a request may have stored in a conversation, after it ended with an error that
// does not tell. If the database does not answer, that is recorded later.
func (l *Loop) KeepUnconfirmed(ctx context.Context, org db.Org, c recall.Conversation, u recall.Unconfirmed) {
	l.unconfirmed.mu.Lock()
	l.unconfirmed.all[c.Key] = unconfirmedIn{org, c, u}
	l.unconfirmed.mu.Unlock()
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	_ = l.settle(limited, c.AgentID) // the next request and Adopt try again
}

// settle records in the log what requests may have stored in an agent's conversations; in every agent's conversations
// if agentID is empty.
func (l *Loop) settle(ctx context.Context, agentID string) error {
	var failed error
	for key, u := range l.unconfirmed.of(agentID) {
		err := ignoreNotFound(l.Recall.KeepUnconfirmed(ctx, u.org, u.conversation, u.Unconfirmed))
		if failed = errors.Join(failed, err); err == nil {
			l.unconfirmed.drop(key, u)
		}
	}
	return failed
}
