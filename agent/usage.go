package agent

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

// ReportUsage stores a provider's count of a prompt that ended with the message at position, and corrects the
// calibration of the conversation's model. It ignores the count of a prompt that was handed out before the view last
// changed. A caller who makes prompts of its own is assumed to have sent the current view.
func (s *Store) ReportUsage(ctx context.Context, org db.Org, c recall.Conversation, position, reported int) error {
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
	believed, err := s.calibrate(ctx, org, c, position, reported)
	if err != nil || !believed {
		return err
	}
	return s.Recall.RecordReport(ctx, org, c.Key, position, reported)
}

// RecordUsage stores what a provider counted for the answer to a prompt that was handed out and ended at position. It
// is for programs that ask the model themselves; runs of the server store it with their steps. If no such prompt is
// stored, it stores nothing.
func (s *Store) RecordUsage(ctx context.Context, org db.Org, c recall.Conversation, position int, u chat.Usage) error {
	if u.Prompt == 0 {
		return nil
	}
	_, err := s.DB.Exec(ctx, `
		UPDATE prompts SET tokens = (tokens::jsonb || jsonb_build_object('counted', jsonb_build_object(
			'answers', 1 + coalesce((tokens::jsonb #>> '{counted,answers}')::bigint, 0),
			'prompt_tokens', @prompt + coalesce((tokens::jsonb #>> '{counted,prompt_tokens}')::bigint, 0),
			'completion_tokens', @completion + coalesce((tokens::jsonb #>> '{counted,completion_tokens}')::bigint, 0),
			'cached_input_tokens', @read + coalesce((tokens::jsonb #>> '{counted,cached_input_tokens}')::bigint, 0),
			'cache_write_tokens', @write + coalesce((tokens::jsonb #>> '{counted,cache_write_tokens}')::bigint, 0))))::json
		WHERE org = @org AND key = (
			SELECT key FROM prompts
			WHERE org = @org AND conversation_key = @conversation AND last_position <= @position
			ORDER BY seq DESC, key DESC LIMIT 1)`,
		pgx.StrictNamedArgs{"org": org, "conversation": c.Key, "position": position, "prompt": int64(u.Prompt),
			"completion": int64(u.Completion), "read": int64(u.CacheRead), "write": int64(u.CacheWrite)})
	return db.Error(err)
}

// usage returns the token count that decides when the prompt's conversation is compacted; nil if there is none.
func (p Prompt) usage() *clip.Usage {
	switch c := p.Conversation; {
	case p.unread.Count == 0 && len(p.Messages) > 0:
		return &clip.Usage{PromptTokens: p.Tokens.Total, Position: lastPosition(p.Messages)}
	case c.Reported > 0:
		return &clip.Usage{PromptTokens: c.Reported, Position: c.ReportedPosition}
	}
	return nil
}

// lastPosition returns the last message's position; 0 if it is a summary, because a summary has a higher position than
// the messages that it replaces.
func lastPosition(messages []recall.Message) int {
	last := messages[len(messages)-1]
	if last.Role == recall.Summary {
		return 0
	}
	return last.Position
}

// recallUsage returns the result of checking the prompt, in the form to store. Only warn sets Warned.
func (p Prompt) recallUsage(now plan.TriggerState) recall.Usage {
	u := recall.Usage{Fixed: p.counted.Tools + p.counted.instructions(), Warned: p.Conversation.Warned && now.Warned}
	if now.Disarmed {
		u.Settled = now.Base
	}
	return u
}
