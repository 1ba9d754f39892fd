package recall

import (
	"context"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
)

// checkEvents returns ErrInvalid unless the agent has these events.
func (a *appending) checkEvents(ctx context.Context, events []event.Event) error {
	seqs := make([]int64, len(events))
	for i, e := range events {
		seqs[i] = e.Seq
	}
	// This transaction wrote the events, so no statistics know them. With seq = ANY Postgres would read all of the agent's
	// events for each chunk.
	stored, err := db.All[event.Event](ctx, a.db, `
		SELECT e.agent_id, e.seq, e.type, e.ref_id, e.at
		FROM unnest($3::bigint[]) AS wanted (seq)
		CROSS JOIN LATERAL (
			SELECT agent_id, seq, type, ref_id, at FROM events
			WHERE org = $1 AND agent_id = $2 AND seq = wanted.seq
			LIMIT 1
		) e`, a.org, a.agentID, seqs)
	if err != nil {
		return err
	}
	refs := make(map[int64]string, len(stored))
	for _, e := range stored {
		if e.Type == event.MessageAppended {
			refs[e.Seq] = e.RefID
		}
	}
	for _, e := range events {
		if refs[e.Seq] != e.RefID {
			return db.Invalid("%s has the seq %d, whose event is not its own", e.RefID, e.Seq)
		}
	}
	return nil
}
