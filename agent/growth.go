package agent

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
)

// These bound the prompts that are checked for growth: the newest ones, without the first ones of a conversation,
// because these always grow.
const (
	growthPrompts = 20
	growthSkipped = 5
	growthLeast   = 5 // fewer prompts do not suffice
)

// growth says how a conversation's newest prompts grow.
type growth struct {
	Prompts int     `db:"prompts"`
	Since   int64   `db:"since"` // seq of the first of them
	Slope   float64 `db:"slope"` // average tokens by which a prompt exceeds the one before
}

// noteGrowth appends an event if the prompts of a conversation keep growing. It appends none if the log has such an
// event since the first of the checked prompts.
func (s *Store) noteGrowth(ctx context.Context, org db.Org, p Prompt) error {
	g, err := db.One[growth](ctx, s.DB, `
		SELECT count(*) AS prompts, coalesce(min(seq), 0) AS since, coalesce(regr_slope(total, n), 0) AS slope
		FROM (
			SELECT seq, total, row_number() OVER (ORDER BY seq, key) AS n
			FROM (
				SELECT seq, key, (tokens ->> 'total')::float8 AS total FROM prompts
				WHERE org = @org AND conversation_key = @of AND (seq, key) > (
					SELECT seq, key FROM prompts WHERE org = @org AND conversation_key = @of
					ORDER BY seq, key OFFSET @skipped - 1 LIMIT 1
				)
				ORDER BY seq DESC, key DESC LIMIT @most
			) newest
		) numbered`, pgx.StrictNamedArgs{"org": org, "of": p.Conversation.Key, "skipped": growthSkipped,
		"most": growthPrompts})
	if err != nil || g.Prompts < growthLeast || g.Slope <= growingShare*float64(p.window()) {
		return err
	}
	return db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		if _, err := event.Lock(ctx, tx, org, p.Agent.ID); err != nil {
			return err
		}
		noted, err := event.List(ctx, tx, org, p.Agent.ID, event.Query{From: max(g.Since, 1),
			Types: []event.Type{event.PromptsGrowing}})
		if err != nil || slices.ContainsFunc(noted, func(e event.Event) bool { return e.RefID == p.Conversation.ID }) {
			return err
		}
		_, err = event.Append(ctx, tx, org, event.Event{AgentID: p.Agent.ID, Type: event.PromptsGrowing,
			RefID: p.Conversation.ID})
		return err
	})
}
