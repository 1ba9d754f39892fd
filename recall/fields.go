package recall

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/filter"
)

// Fields are what filters may ask of messages.
var Fields = filter.Fields{
	"role":       {Kind: filter.Text, SQL: `$.role`},
	"created_at": {Kind: filter.Time, SQL: `$.created_at`},
	"agent": {Kind: filter.Text, SQL: `(
		SELECT a.id FROM agents a WHERE a.org = @org AND a.key = $.agent_key)`},
	"conversation": {Kind: filter.Texts, SQL: `(
		SELECT ` + conversationNames + ` FROM conversations c WHERE c.org = @org AND c.key = $.conversation_key)`},
	"user": {Kind: filter.Texts, SQL: `(
		SELECT ` + userNames + ` FROM conversation_identities x
		JOIN identities i ON i.org = x.org AND i.key = x.identity_key
		WHERE x.org = @org AND i.org = @org AND x.agent_key = $.agent_key AND x.conversation_key = $.conversation_key)`},
	"position": {Kind: filter.Number, SQL: `$.position`},
	"seq":      {Kind: filter.Number, SQL: `$.seq`},
	"name":     {Kind: filter.Text, SQL: `$.name`},
	"model":    {Kind: filter.Text, SQL: `$.model`},
	"tool": {Kind: filter.Texts, SQL: `ARRAY(
		SELECT part ->> 'name' FROM json_array_elements($.content) AS part WHERE part ->> 'type' = 'tool_call'
		UNION
		SELECT t.name FROM json_array_elements($.content) AS part JOIN tool_calls t ON t.call_id = part ->> 'call_id'
		WHERE t.org = @org AND t.conversation_key = $.conversation_key AND t.result_position = $.position
		  AND part ->> 'type' = 'tool_return')`},
}

const (
	conversationNames = `ARRAY[c.id] || CASE WHEN c.is_default THEN ARRAY['default'] ELSE ARRAY[]::text[] END`
	userNames         = `ARRAY[i.id, i.identifier_key]`
)

// besideVectors are the fields that rows of vectors and of passages of long messages have, too.
var besideVectors = []string{"role", "created_at", "agent", "conversation", "user"}

// narrowed is the filter of a query, read.
type narrowed struct {
	filter.Filter
	conversations []int64 // each message is in one of these; nil: unknown
}

// narrowed reads the filter of a query. If it names conversations or users, it looks up their conversations, of one
// agent or, if agent is 0, of all.
func (s *Store) narrowed(ctx context.Context, org db.Org, agent int64, q Query) (n narrowed, err error) {
	if n.Filter, err = filter.Parse(q.Filter, Fields, q.Zone); err != nil {
		return n, err
	}
	args := pgx.StrictNamedArgs{"org": org, "agent": agent, "most": maxListed + 1}
	where, names := ``, false
	for _, test := range n.Must() {
		if texts := test.Texts(); texts != nil && test.Field == "conversation" {
			args["conversations"], names = texts, true
			where += ` AND ` + conversationNames + ` && @conversations`
		} else if texts != nil && test.Field == "user" {
			args["users"], names = texts, true
			where += ` AND EXISTS (
				SELECT FROM conversation_identities x JOIN identities i ON i.org = x.org AND i.key = x.identity_key
				WHERE x.org = @org AND i.org = @org AND x.agent_key = c.agent_key AND x.conversation_key = c.key
				  AND ` + userNames + ` && @users)`
		}
	}
	if !names {
		return n, nil
	}
	keys, err := db.All[int64](ctx, s.db, `
		SELECT c.key FROM conversations c
		WHERE c.org = @org AND (@agent = 0 OR c.agent_key = @agent)`+where+`
		LIMIT @most`, args)
	if len(keys) <= maxListed {
		n.conversations = append([]int64{}, keys...)
	}
	return n, err
}

// where returns the condition on rows named row, beginning with AND; empty if the filter leaves all. key is SQL for the
// key of the row's message. A field that the rows lack is read in the message, by its key: Postgres does not turn the
// subquery into a join of all messages.
func (n narrowed) where(row, key string, args pgx.StrictNamedArgs) string {
	if n.Empty() {
		return ""
	}
	where := ""
	if n.conversations != nil {
		args["filter_conversations"] = n.conversations
		where = ` AND ` + row + `.conversation_key = ANY (@filter_conversations)`
	}
	for name := range n.Asks() {
		if !slices.Contains(besideVectors, name) {
			return where + ` AND (SELECT ` + n.Where(Fields, "m", args) + ` FROM messages m
				WHERE m.org = @org AND m.key = ` + key + `)`
		}
	}
	return where + ` AND ` + n.Where(Fields, row, args)
}
