package recall

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
)

// scope is the part of the messages that a search may see: of a conversation, of an agent, or of the organization.
type scope struct {
	org          db.Org
	agent        int64 // 0 is all
	conversation int64 // 0 is all of the agent
	rows         int   // at most
	gone         []int64
	q            Query

	visibleIn   int64 // the conversation whose messages from position visibleFrom the model sees anyway; 0 is none
	visibleFrom int
	visibleKept []int // and those before it that it sees too
}

// scope finds what a query may see. ErrNotFound if the agent or the conversation is not there.
func (s *Store) scope(ctx context.Context, org db.Org, q Query) (scope, error) {
	in := scope{org: org, q: q}
	if q.AgentID != "" {
		agent, err := s.agentKey(ctx, org, q.AgentID)
		if err != nil {
			return scope{}, err
		}
		in.agent = agent
	}
	if q.Conversation != "" {
		c, err := s.Conversation(ctx, org, q.AgentID, q.Conversation)
		if err != nil {
			return scope{}, err
		}
		in.agent, in.conversation = c.AgentKey, c.Key
	}
	if q.Unseen && in.agent != 0 {
		if err := s.unseen(ctx, &in); err != nil {
			return scope{}, err
		}
	}
	return in, s.size(ctx, &in)
}

// unseen leaves out what the model has before it: the messages of the conversation that no summary stands for. Before a conversation was
// first summarised nothing tells how much of it its caller's model sees, and nothing is left out.
func (s *Store) unseen(ctx context.Context, in *scope) error {
	type row struct {
		Key          int64 `db:"key"`
		FirstVisible int   `db:"first_visible"`
		Kept         []int `db:"kept"`
	}
	rows, err := db.All[row](ctx, s.db, `
		SELECT key, first_visible, kept FROM conversations
		WHERE org = $1 AND agent_key = $2 AND CASE WHEN $3 = 0 THEN is_default ELSE key = $3 END AND first_visible > 1`,
		in.org, in.agent, in.conversation)
	for _, r := range rows {
		in.visibleIn, in.visibleFrom, in.visibleKept = r.Key, r.FirstVisible, r.Kept
	}
	return err
}

func (s *Store) size(ctx context.Context, in *scope) error {
	type row struct {
		Rows int     `db:"rows"`
		Gone []int64 `db:"gone"`
	}
	r, err := db.One[row](ctx, s.db, `
		SELECT coalesce(sum(messages) FILTER (WHERE deleted_at IS NULL), 0)::bigint AS rows,
		       coalesce(array_agg(key ORDER BY key) FILTER (WHERE deleted_at IS NOT NULL), '{}') AS gone
		FROM conversations
		WHERE org = $1 AND ($2 = 0 OR agent_key = $2) AND ($3 = 0 OR key = $3)`, in.org, in.agent, in.conversation)
	in.rows, in.gone = r.Rows, r.Gone
	return err
}

// key names the words of the scope, whatever a query filters.
func (c scope) key() string { return fmt.Sprint(c.org, c.agent, c.conversation) }

// where is the scope as a condition on messages m that are searched; its arguments are those of args.
func (c scope) where() string { return ` m.lex IS NOT NULL AND` + c.within("m") }

// within is the scope as a condition on rows that tell of a message what a query filters by.
func (c scope) within(row string) string {
	w := ` @.org = @org AND @.conversation_key <> ALL (@gone)`
	if c.agent != 0 {
		w += ` AND @.agent_key = @agent`
	} else {
		w += ` AND @.agent_key IN (SELECT key FROM agents WHERE org = @org)`
	}
	if c.conversation != 0 {
		w += ` AND @.conversation_key = @conversation`
	}
	if c.visibleIn != 0 {
		w += ` AND NOT (@.conversation_key = @visible_in AND (@.position >= @visible_from OR @.position = ANY (@visible_kept)))`
	}
	if len(c.q.Roles) > 0 {
		w += ` AND @.role = ANY (@roles)`
	} else {
		w += ` AND @.role <> 'summary'` // what it says stands in the log as it was said
	}
	if c.q.Start != nil {
		w += ` AND @.created_at >= @start`
	}
	if c.q.End != nil {
		w += ` AND @.created_at <= @end`
	}
	return strings.ReplaceAll(w, "@.", row+".")
}

func (c scope) args() pgx.StrictNamedArgs {
	args := pgx.StrictNamedArgs{"org": c.org, "gone": c.gone}
	if c.agent != 0 {
		args["agent"] = c.agent
	}
	if c.conversation != 0 {
		args["conversation"] = c.conversation
	}
	if c.visibleIn != 0 {
		args["visible_in"], args["visible_from"], args["visible_kept"] = c.visibleIn, c.visibleFrom, c.visibleKept
	}
	if len(c.q.Roles) > 0 {
		args["roles"] = c.q.Roles
	}
	if c.q.Start != nil {
		args["start"] = *c.q.Start
	}
	if c.q.End != nil {
		args["end"] = *c.q.End
	}
	return args
}

// statistics are the idf of a scope. A small scope is read anew each time: it may grow by half with the next message.
func (s *Store) statistics(ctx context.Context, in scope) (*embed.IDF, error) {
	if in.rows <= embed.SampleRows {
		return s.sample(ctx, in)
	}
	return s.idf.Get(ctx, in.key(), func(ctx context.Context) (*embed.IDF, error) { return s.sample(ctx, in) })
}

// sample reads the terms of embed.SampleRows messages, evenly spread over the scope, or of all if there are fewer.
func (s *Store) sample(ctx context.Context, in scope) (*embed.IDF, error) {
	place, of, ends := "key", `org = @of`, `SELECT min(key) AS first, max(key) AS last FROM messages WHERE org = @of`
	var key any = in.org
	switch {
	case in.conversation != 0:
		place, of, key = "position", `conversation_key = @of`, in.conversation
		ends = `SELECT 1::bigint AS first, messages::bigint AS last FROM conversations WHERE key = @of`
	case in.agent != 0:
		place, of, key = "seq", `agent_key = @of`, in.agent
		ends = `SELECT min(seq) AS first, max(seq) AS last FROM messages WHERE agent_key = @of`
	}
	terms, err := db.All[[]int64](ctx, s.db, `
		WITH ends AS (`+ends+`), places AS (
			SELECT first + (last - first + 1) * n / least(@n, last - first + 1) AS place
			FROM ends CROSS JOIN LATERAL generate_series(0, least(@n, last - first + 1) - 1) AS n
		), drawn AS (
			SELECT DISTINCT m.key
			FROM places CROSS JOIN LATERAL (
				SELECT key FROM messages WHERE `+of+` AND `+place+` >= places.place ORDER BY `+place+` LIMIT 1
			) m
		)
		SELECT m.terms FROM drawn JOIN messages m USING (key) WHERE m.terms IS NOT NULL ORDER BY m.key`,
		pgx.StrictNamedArgs{"of": key, "n": int64(embed.SampleRows)})
	return embed.NewIDF(embed.Words(terms), in.rows), err
}
