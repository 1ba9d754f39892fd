package agent

import (
	"cmp"
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/recall/tokens"
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

// A provider's count is believed up to mostOfEstimate times our own count, and up to mostOfWindow times the context
// window.
const (
	mostOfEstimate = 10
	mostOfWindow   = 2
)

// calibrationOf reads a model's calibration. known is false if no usage of the model was reported.
func (s *Store) calibrationOf(ctx context.Context, org db.Org, model string) (of calibration, known bool, err error) {
	of, err = db.One[calibration](ctx, s.DB, `
		SELECT factor, coalesce(growth, 0) AS growth FROM model_factors WHERE org = $1 AND model = $2`, org, model)
	if errors.Is(err, db.ErrNotFound) {
		return calibration{Factor: tokens.InitialFactor(model)}, false, nil
	}
	return of, true, err
}

// leastGrowth is the fewest tokens between two reports that calibrate the growth.
const leastGrowth = 200

// calibrate corrects the calibration of a conversation's model by a provider's count of a prompt that ended with the
// message at position. The prompt is the newest one handed out by then, plus the messages since. Of two simultaneous
// reports one may be lost; a later report corrects that. A count beyond mostOfEstimate and mostOfWindow is not
// believed.
func (s *Store) calibrate(ctx context.Context, org db.Org, c recall.Conversation, position, reported int) (
	believed bool, err error) {
	type counted struct {
		Prompt *int `db:"prompt"` // nil if none was handed out, or by a version that stored no estimate
		Since  int  `db:"since"`  // position of the previous report
	}
	ours, err := db.One[counted](ctx, s.DB, `
		SELECT (
			SELECT (p.tokens ->> 'estimated')::integer + (
				SELECT coalesce(sum(m.tokens), 0)::integer FROM messages m
				WHERE m.org = $1 AND m.conversation_key = $2 AND m.position > p.last_position AND m.position <= $3)
			FROM prompts p
			WHERE p.org = $1 AND p.conversation_key = $2 AND p.last_position <= $3
			ORDER BY p.seq DESC, p.key DESC
			LIMIT 1
		) AS prompt, (
			SELECT coalesce(sum(tokens), 0)::integer FROM messages
			WHERE org = $1 AND conversation_key = $2 AND position > $4 AND position <= $3
		) AS since`, org, c.Key, position, c.ReportedPosition)
	if err != nil {
		return false, err
	}
	a, err := s.Agent(ctx, org, c.AgentID)
	if err != nil {
		return false, err
	}
	most := mostOfWindow * a.in(c).AssumedWindow()
	if ours.Prompt == nil {
		return reported <= max(most, mostOfEstimate*ours.Since), nil
	}
	if reported > max(most, mostOfEstimate**ours.Prompt) {
		return false, nil
	}
	model := a.in(c).model()
	calibrated, known, err := s.calibrationOf(ctx, org, model)
	if err != nil {
		return false, err
	}
	calibrated.Factor = calibrated.Factor.After(reported, *ours.Prompt, !known)
	if c.Reported > 0 && ours.Since >= leastGrowth {
		growth := cmp.Or(calibrated.Growth, calibrated.Factor)
		calibrated.Growth = growth.After(reported-c.Reported, ours.Since, calibrated.Growth == 0)
	}
	_, err = s.DB.Exec(ctx, `
		INSERT INTO model_factors (org, model, factor, growth) VALUES ($1, $2, $3, nullif($4::double precision, 0))
		ON CONFLICT (org, model) DO UPDATE SET factor = excluded.factor, growth = excluded.growth
		WHERE (model_factors.factor, model_factors.growth) IS DISTINCT FROM (excluded.factor, excluded.growth)`,
		org, model, calibrated.Factor, calibrated.Growth)
	return err == nil, db.Error(err)
}

// fullShare is a share of the window. From this size on, our own count of a prompt counts if the provider's is lower.
const fullShare = 0.95

// total returns the best known count of a prompt. It is the provider's report about an earlier prompt plus our count of
// what came after it; or, without a usable report, our count of what would be sent, times the model's factor. A report
// is not used if it is less than half our count, because the provider must have cut the prompt. It is not used either
// if it is below our count and our count fills the window, because files, blocks or a reverted compaction may have made
// the prompt longer since. Messages after a report count with the highest known factor of the provider, at most 2.
func (p Prompt) total() int {
	c, ours := p.Conversation, p.calibration.Factor.Of(p.counted.Total)
	full := float64(ours) >= fullShare*float64(p.window())
	if p.unread.Count > 0 || c.Reported < ours/2 || c.Reported < ours && full {
		return ours
	}
	after := 0
	for _, m := range p.Messages {
		if m.Role != recall.Summary && m.Position > c.ReportedPosition {
			after += m.Tokens
		}
	}
	factor := max(p.calibration.Factor, p.calibration.Growth)
	if before := p.counted.Total - after; before > 0 {
		factor = max(factor, min(tokens.Factor(c.Reported)/tokens.Factor(before), 2))
	}
	return c.Reported + factor.Of(after)
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
