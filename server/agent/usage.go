package agent

import (
	"context"

	"github.com/loci-memory/loci/compaction"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// ReportUsage stores a provider's count of a prompt whose last message was at a position. It ignores the count of a
// prompt that was handed out before the view last changed. It assumes that a caller who makes prompts of its own sent
// the current view.
func (s *Store) ReportUsage(ctx context.Context, org db.Org, c recall.Conversation, position, tokens int) error {
	outdated, err := db.One[bool](ctx, s.DB, `
		SELECT coalesce((
			SELECT handed_out_at FROM prompts
			WHERE org = $1 AND conversation_key = $2
			ORDER BY seq DESC, key DESC LIMIT 1
		) < (
			SELECT max(greatest(created_at, reverted_at)) FROM compactions WHERE org = $1 AND conversation_key = $2
		), false)`, org, c.Key)
	if err != nil || outdated {
		return err
	}
	return s.Recall.RecordReport(ctx, org, c.Key, position, tokens)
}

// fullShare is the share of a window from which our count of a prompt overrides a lower one of the provider.
const fullShare = 0.95

// usage returns the best known count of a prompt: the provider's report of an earlier one, or else our count of what
// would be sent. Two reports are not believed: one of less than half our count, because the provider must have cut
// the prompt, and one below our count of a prompt that is full by it, because files, blocks or a reverted compaction
// may have made it longer since. If the provider counts more than we do, its factor, at most 2, applies to the
// messages after its report.
func (p Prompt) usage() *compaction.Usage {
	c := p.Conversation
	full := float64(p.Tokens.Total) >= fullShare*float64(p.window())
	doubtful := c.Reported < p.Tokens.Total/2 || c.Reported < p.Tokens.Total && full
	if p.unread.Count == 0 && len(p.Messages) > 0 && doubtful {
		return &compaction.Usage{PromptTokens: p.Tokens.Total, Position: lastPosition(p.Messages)}
	}
	if c.Reported == 0 {
		return nil
	}
	after := 0
	for _, m := range p.Messages {
		if m.Role != recall.Summary && m.Position > c.ReportedPosition {
			after += m.Tokens
		}
	}
	if before := p.Tokens.Total - after; p.unread.Count == 0 && after > 0 && before > 0 && c.Reported > before {
		return &compaction.Usage{PromptTokens: c.Reported + after*min(c.Reported, 2*before)/before,
			Position: lastPosition(p.Messages)}
	}
	return &compaction.Usage{PromptTokens: c.Reported, Position: c.ReportedPosition}
}

// lastPosition returns the position of the last message; 0 if it is a summary, whose position is later than those of
// the messages that it replaces.
func lastPosition(messages []recall.Message) int {
	last := messages[len(messages)-1]
	if last.Role == recall.Summary {
		return 0
	}
	return last.Position
}

// recallUsage returns what is stored of a check of the prompt. Only warn sets Warned.
func (p Prompt) recallUsage(now compaction.TriggerState) recall.Usage {
	u := recall.Usage{Fixed: p.Tokens.Tools + p.Tokens.instructions(), Warned: p.Conversation.Warned && now.Warned}
	if now.Disarmed {
		u.Settled = now.Base
	}
	return u
}
