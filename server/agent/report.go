package agent

import (
	"context"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// Report keeps what a provider counted of a prompt of a conversation whose last message was at a position. A prompt that was handed out before
// what its model sees was last changed tells nothing of what it sees now, and is not kept. Of callers who make their own prompts it is taken
// for one of the view as it is.
func (s *Store) Report(ctx context.Context, org db.Org, c recall.Conversation, position, tokens int) error {
	outdated, err := db.One[bool](ctx, s.DB, `
		SELECT coalesce(
			(SELECT handed_out_at FROM prompts WHERE org = $1 AND conversation_key = $2 ORDER BY seq DESC, key DESC LIMIT 1)
			< (SELECT max(greatest(created_at, reverted_at)) FROM compactions WHERE org = $1 AND conversation_key = $2), false)`, org, c.Key)
	if err != nil || outdated {
		return err
	}
	return s.Recall.RecordReport(ctx, org, c.Key, position, tokens)
}
