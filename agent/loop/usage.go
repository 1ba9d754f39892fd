package loop

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// DayUsage is what models counted for an agent on a day in UTC.
type DayUsage struct {
	Day string `json:"day" db:"day" format:"date" doc:"In UTC."`
	agent.Counted
}

// answerUsage selects what was counted for each answer of a model to an agent.
const answerUsage = `
	SELECT s.created_at AS at, r.conversation_key, (s.status = 'success')::integer AS answers, s.prompt_tokens AS prompt,
	       s.completion_tokens AS completion, s.cached_tokens AS read, s.cache_write_tokens AS write
	FROM steps s JOIN runs r ON r.org = s.org AND r.key = s.run_key
	WHERE s.org = @org AND s.agent_key = @agent
	UNION ALL
	SELECT p.handed_out_at, p.conversation_key, counted.answers, counted.prompt_tokens, counted.completion_tokens,
	       counted.cached_input_tokens, counted.cache_write_tokens
	FROM prompts p
	CROSS JOIN LATERAL jsonb_to_record(p.tokens::jsonb -> 'counted') AS counted (answers bigint, prompt_tokens bigint,
		completion_tokens bigint, cached_input_tokens bigint, cache_write_tokens bigint)
	WHERE p.org = @org AND p.agent_key = @agent AND p.tokens::jsonb ? 'counted'`

// sums adds them up.
const sums = `coalesce(sum(answers), 0)::bigint AS answers, coalesce(sum(prompt), 0)::bigint AS prompt_tokens,
	coalesce(sum(completion), 0)::bigint AS completion_tokens, coalesce(sum(read), 0)::bigint AS cached_input_tokens,
	coalesce(sum(write), 0)::bigint AS cache_write_tokens`

// UsageIn returns what models counted for a conversation.
func (l *Loop) UsageIn(ctx context.Context, org db.Org, c recall.Conversation) (agent.Counted, error) {
	return db.One[agent.Counted](ctx, l.DB, `
		SELECT `+sums+` FROM (`+answerUsage+`) a WHERE conversation_key = @conversation`,
		pgx.StrictNamedArgs{"org": org, "agent": c.AgentKey, "conversation": c.Key})
}

// UsageByDay returns what models counted for an agent in a time, by day: the steps of runs, and the answers to prompts
// that programs with their own loops reported. Days without any are left out.
func (l *Loop) UsageByDay(ctx context.Context, org db.Org, a agent.Agent, from, to *time.Time) ([]DayUsage, error) {
	return db.All[DayUsage](ctx, l.DB, `
		SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day, `+sums+` FROM (`+answerUsage+`) a
		WHERE (@from::timestamptz IS NULL OR at >= @from) AND (@to::timestamptz IS NULL OR at <= @to)
		GROUP BY day ORDER BY day`,
		pgx.StrictNamedArgs{"org": org, "agent": a.Key, "from": from, "to": to})
}
