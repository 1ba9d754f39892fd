package agent

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Stats say what the messages of an agent's newest conversations contain, and how their prompts grow.
type Stats struct {
	Sessions []SessionStats `json:"sessions" doc:"The newest first."`
	Total    []Category     `json:"total" doc:"Of all these sessions."`
	Expands  []ExpandStats  `json:"expanded" doc:"What expand read, the most often first; often: too little is shown."`
	Steps    []ExpandedStep `json:"expanded_by_step" doc:"How often expand read what each step of a policy hid."`
}

// SessionStats are the statistics of a conversation.
type SessionStats struct {
	ConversationID string     `json:"conversation_id"`
	LastMessageAt  *time.Time `json:"last_message_at"`
	Categories     []Category `json:"categories"`
	Prompts        int        `json:"prompts" doc:"That were handed out and are stored."`
	Slope          float64    `json:"tokens_per_prompt" doc:"By which a prompt is larger than the last, after the fifth."`
	Window         int        `json:"context_window"`
	Growing        bool       `json:"growing" doc:"Prompts grow by more than 2 % of the window each."`
}

// Category is a kind of content.
type Category struct {
	Category string  `db:"category" json:"category" enum:"tool_results,system,assistant,user"`
	Messages int     `db:"messages" json:"messages"`
	Chars    int64   `db:"chars" json:"characters"`
	Tokens   int64   `db:"tokens" json:"tokens" doc:"As counted when they were stored."`
	Share    float64 `db:"-" json:"share" doc:"Of the characters; 0 to 1."`
}

// ExpandStats counts calls of expand by what they read.
type ExpandStats struct {
	ID    string `db:"id" json:"id" doc:"As the model named it."`
	Count int    `db:"count" json:"count"`
}

// ExpandedStep counts calls of expand that read messages which a policy's step had edited.
type ExpandedStep struct {
	Policy   string `db:"policy" json:"policy" doc:"The preset, or custom."`
	Step     string `db:"step" json:"step" doc:"The mechanism that edited them."`
	Messages int    `db:"messages" json:"messages" doc:"That the step edited, whether or not it was reverted."`
	Expands  int    `db:"expands" json:"expands" doc:"Calls of expand; many of few messages: the step shows too little."`
}

// maxExpandStats bounds the list of expanded ids.
const maxExpandStats = 20

// growingShare is the growth per prompt, as a share of the window, from which on a conversation counts as growing.
const growingShare = 0.02

// Stats returns the statistics of an agent's newest conversations. ErrNotFound if there is no such agent.
func (s *Store) Stats(ctx context.Context, org db.Org, agentID string, sessions int) (out Stats, err error) {
	a, err := s.Agent(ctx, org, agentID)
	if err != nil {
		return out, err
	}
	rows, err := db.All[statsRow](ctx, s.DB, `
		WITH newest AS (
			SELECT key, id, last_message_at FROM conversations
			WHERE org = @org AND agent_key = @agent AND deleted_at IS NULL
			ORDER BY last_message_at DESC NULLS LAST, key DESC
			LIMIT @sessions
		)
		SELECT n.id, n.key AS conversation, n.last_message_at,
		       CASE m.role WHEN 'tool' THEN 'tool_results' WHEN 'summary' THEN 'system' ELSE m.role END AS category,
		       count(*) AS messages, coalesce(sum(m.tokens), 0)::bigint AS tokens, coalesce(sum((
			SELECT sum(length(coalesce(p ->> 'text', '')) + length(coalesce(p ->> 'input', '')))
			FROM json_array_elements(m.content) p)), 0)::bigint AS chars
		FROM newest n JOIN messages m ON m.org = @org AND m.conversation_key = n.key
		GROUP BY n.id, n.key, n.last_message_at, category
		ORDER BY n.last_message_at DESC NULLS LAST, n.key DESC, category`,
		pgx.StrictNamedArgs{"org": org, "agent": a.Key, "sessions": sessions})
	if err != nil {
		return out, err
	}
	out.Sessions, out.Total = []SessionStats{}, []Category{}
	for _, r := range rows {
		if n := len(out.Sessions); n == 0 || out.Sessions[n-1].ConversationID != r.ID {
			session := SessionStats{ConversationID: r.ID, LastMessageAt: r.LastMessageAt, Categories: []Category{}}
			if err := s.growth(ctx, org, r.Conversation, &session); err != nil {
				return out, err
			}
			out.Sessions = append(out.Sessions, session)
		}
		last := &out.Sessions[len(out.Sessions)-1]
		last.Categories = append(last.Categories, r.Category)
		out.Total = added(out.Total, r.Category)
	}
	for i := range out.Sessions {
		share(out.Sessions[i].Categories)
	}
	share(out.Total)
	err = s.expands(ctx, org, a.Key, &out)
	return out, err
}

// expandCalls selects the ids in an agent's calls of expand, and how often each occurs.
const expandCalls = `
	SELECT coalesce(substring(p ->> 'input' FROM '"id" *: *"?([^",} ]*)'), '') AS id, count(*) AS count
	FROM messages m CROSS JOIN LATERAL json_array_elements(m.content) p
	WHERE m.org = @org AND m.agent_key = @agent AND m.role = 'assistant' AND p ->> 'name' = 'expand'
	GROUP BY 1`

// expands counts an agent's calls of expand by the id, and by the policy's step that had hidden the text.
func (s *Store) expands(ctx context.Context, org db.Org, agentKey int64, out *Stats) (err error) {
	out.Expands, err = db.All[ExpandStats](ctx, s.DB, expandCalls+` ORDER BY count DESC, id LIMIT @most`,
		pgx.StrictNamedArgs{"org": org, "agent": agentKey, "most": maxExpandStats})
	if err != nil {
		return err
	}
	out.Steps, err = db.All[ExpandedStep](ctx, s.DB, `
		WITH expanded AS (`+expandCalls+`), edited AS (
			SELECT DISTINCT k.policy, e.step, m.seq, m.id
			FROM conversations c
			JOIN compactions k ON k.org = @org AND k.conversation_key = c.key AND k.edits IS NOT NULL
			CROSS JOIN LATERAL jsonb_to_recordset(k.edits) AS e (position integer, step text)
			JOIN messages m ON m.org = @org AND m.conversation_key = c.key AND m.position = e.position
			WHERE c.org = @org AND c.agent_key = @agent AND c.deleted_at IS NULL
		)
		SELECT d.policy, d.step, count(*)::integer AS messages, coalesce(sum(x.count), 0)::integer AS expands
		FROM edited d LEFT JOIN expanded x ON x.id IN (d.seq::text, d.id::text, 'message-' || d.id)
		GROUP BY d.policy, d.step ORDER BY expands DESC, d.policy, d.step`,
		pgx.StrictNamedArgs{"org": org, "agent": agentKey})
	out.Expands = append([]ExpandStats{}, out.Expands...)
	out.Steps = append([]ExpandedStep{}, out.Steps...)
	return err
}

// statsRow is a category of content in a conversation.
type statsRow struct {
	ID            string     `db:"id"`
	Conversation  int64      `db:"conversation"`
	LastMessageAt *time.Time `db:"last_message_at"`
	Category
}

// growth reads how the prompts of a conversation grow.
func (s *Store) growth(ctx context.Context, org db.Org, conversation int64, out *SessionStats) error {
	type row struct {
		Prompts int     `db:"prompts"`
		Slope   float64 `db:"slope"`
		Window  int     `db:"window"`
	}
	r, err := db.One[row](ctx, s.DB, `
		SELECT count(*) AS prompts, coalesce(max(context_window), 0) AS window,
		       coalesce(regr_slope(total, n) FILTER (WHERE n > 5), 0) AS slope
		FROM (
			SELECT row_number() OVER (ORDER BY seq, key) AS n, (tokens ->> 'total')::float8 AS total, context_window
			FROM prompts WHERE org = $1 AND conversation_key = $2
		) p`, org, conversation)
	out.Prompts, out.Slope, out.Window = r.Prompts, r.Slope, r.Window
	out.Growing = r.Window > 0 && r.Slope > growingShare*float64(r.Window)
	return err
}

// added returns categories after adding one to its equal.
func added(all []Category, c Category) []Category {
	for i := range all {
		if all[i].Category == c.Category {
			all[i].Messages, all[i].Chars = all[i].Messages+c.Messages, all[i].Chars+c.Chars
			all[i].Tokens += c.Tokens
			return all
		}
	}
	return append(all, c)
}

// share sets the shares of categories.
func share(all []Category) {
	sum := int64(0)
	for _, c := range all {
		sum += c.Chars
	}
	for i := range all {
		all[i].Share = float64(all[i].Chars) / float64(max(sum, 1))
	}
}
