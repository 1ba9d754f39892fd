package recall

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// seen is a condition: the model sees message m of conversation c. It holds only for positions from the first visible
// one on. A statement adds that bound itself, as a number, so that it reads no other messages.
const seen = `m.conversation_key = c.key AND m.position <> ALL (c.prompts) AND m.role <> 'summary' AND NOT m.is_err
	AND m.purpose = '' AND m.refused IS NULL`

// maxViewBytes bounds the rows of a prompt. The texts of a window of a million tokens take a fourth of it.
const maxViewBytes = 24 << 20

// maxWindowBytes bounds the rows of a Window's messages; no prompt is made of these.
const maxWindowBytes = 8 << 20

// View returns what the model sees of a conversation: the system prompt, the summary if there is one, and the visible
// messages, without tool results that have no call in the conversation. It uses the ContextView in c, and includes
// messages appended since c was read.
func (s *Store) View(ctx context.Context, org db.Org, c Conversation) ([]Message, error) {
	return s.view(ctx, org, c, span{})
}

// NewestView returns the newest messages of View that fit into a prompt. whole reports whether these are all.
func (s *Store) NewestView(ctx context.Context, org db.Org, c Conversation) (view []Message, whole bool, err error) {
	view, err = s.view(ctx, org, c, span{bytes: maxViewBytes, whole: &whole})
	return view, whole, err
}

// AbridgedView returns View. If that is too large for a prompt, the texts of older messages are cut to their
// beginnings.
func (s *Store) AbridgedView(ctx context.Context, org db.Org, c Conversation) ([]Message, error) {
	var older []Message
	view, err := s.view(ctx, org, c, span{bytes: maxViewBytes, more: func(m Message) {
		older = append(older, abridged(m))
	}})
	if len(older) == 0 || err != nil {
		return view, err
	}
	slices.Reverse(older)
	head := 1 // the system prompt, the summary and the kept messages
	for head < len(view) && (view[head].Role == Summary || slices.Contains(c.Kept, view[head].Position)) {
		head++
	}
	return withoutOrphans(slices.Insert(view, head, older...)), nil
}

// ViewUntil returns what View would return if the message at position last were the conversation's last. Of the visible
// messages it returns only the newest, at most most, and only what fits into a prompt.
func (s *Store) ViewUntil(ctx context.Context, org db.Org, c Conversation, last, most int) ([]Message, error) {
	return s.view(ctx, org, c, span{last: &last, most: &most, bytes: maxViewBytes})
}

// ViewOfFlush is View with the messages of the silent turn that began at a position.
func (s *Store) ViewOfFlush(ctx context.Context, org db.Org, c Conversation, begin int) ([]Message, error) {
	view, _, err := s.NewestView(ctx, org, c)
	if err != nil {
		return nil, err
	}
	own, err := s.FlushMessages(ctx, org, c, begin)
	return append(view, own...), err
}

// FlushMessages returns the messages of the silent turn that began at position begin.
func (s *Store) FlushMessages(ctx context.Context, org db.Org, c Conversation, begin int) ([]Message, error) {
	return db.All[Message](ctx, s.db, `
		SELECT `+messageColumns+` FROM `+messageTables+`
		WHERE m.org = $1 AND m.conversation_key = $2 AND m.position >= $3 AND m.purpose = 'flush'
		ORDER BY m.position`, org, c.Key, begin)
}

// span selects visible messages: those up to position last, and of these the newest most. Nil or 0 is no bound.
type span struct {
	last, most *int
	bytes      int64         // of the messages' rows
	more       func(Message) // gets the messages beyond bytes, the newest first; nil: these are not read
	whole      *bool         // set to whether no messages are beyond bytes; may be nil
}

// view reads what the model sees of a conversation, within limits.
func (s *Store) view(ctx context.Context, org db.Org, c Conversation, limits span) ([]Message, error) {
	head, err := s.head(ctx, org, c)
	if err != nil {
		return nil, err
	}
	budget := db.Budget[Message]{Bytes: cmp.Or(limits.bytes, math.MaxInt64), More: limits.more}
	rows, whole, err := db.Within(ctx, s.db, budget, viewSQL, pgx.StrictNamedArgs{"org": org, "key": c.Key,
		"first": c.FirstVisible, "last": limits.last, "most": limits.most})
	if limits.whole != nil {
		*limits.whole = whole
	}
	slices.Reverse(rows)
	return withoutOrphans(append(head, rows...)), err
}

// head reads the beginning of a view: the system prompt, the summary and the kept messages.
func (s *Store) head(ctx context.Context, org db.Org, c Conversation) ([]Message, error) {
	prompt, err := s.prompt(ctx, org, c)
	if err != nil || c.SummaryAt == nil && len(c.Kept) == 0 {
		return []Message{prompt}, err
	}
	rows, err := db.All[Message](ctx, s.db, `
		SELECT `+messageColumns+` FROM `+messageTables+`
		WHERE m.org = $1 AND m.conversation_key = $2 AND (m.position = $3 OR m.position = ANY ($4)) AND `+isSeenAtHead+`
		ORDER BY m.role <> 'summary', m.position`, org, c.Key, c.SummaryAt, c.Kept)
	for i, m := range rows {
		if m.Role == Summary && m.Refused != nil && len(m.Content) > 0 {
			rows[i].Content[0].Text = refusedSummary
		}
	}
	return append([]Message{prompt}, rows...), err
}

// isSeenAtHead is a condition: the model sees m, which is a summary or a kept message. A refused summary keeps its
// place, with refusedSummary as its text.
const isSeenAtHead = `(m.refused IS NULL OR m.role = 'summary')`

// refusedSummary is the text that a model reads in place of a summary that its provider refused.
const refusedSummary = "The model's provider refused the summary of these messages, so it is not shown."

// abridgedBytes is the length to which each text of an abridged message is cut.
const abridgedBytes = 1 << 10

// abridged returns a message with its long texts cut to their beginnings. Long results keep the beginnings that they
// have.
func abridged(m Message) Message {
	m.Abridged = true
	beginning := func(text string) string { return strings.Clone(db.Beginning(text, abridgedBytes)) }
	parts := make([]Part, len(m.Content))
	for i, p := range m.Content {
		if p.Clip != nil {
			parts[i] = p
			continue
		}
		parts[i] = Part{Type: p.Type, Text: beginning(p.Text), CallID: p.CallID, Name: p.Name, Approval: p.Approval,
			IsError: p.IsError, Orphan: p.Orphan, Input: p.Input}
		if len(p.Input) > abridgedBytes {
			parts[i].Input = "{}"
		}
		if p.Type == Image {
			parts[i].Type, parts[i].Text = Text, "[image]"
		}
	}
	m.Content = parts
	return m
}

const viewSQL = `
	SELECT ` + messageColumns + ` FROM ` + messageTables + `
	WHERE m.org = @org AND m.conversation_key = @key AND m.position >= @first
		AND m.position <= coalesce(@last, 2147483647) AND ` + seen + `
	ORDER BY m.position DESC
	LIMIT @most`

func (s *Store) prompt(ctx context.Context, org db.Org, c Conversation) (Message, error) {
	return db.One[Message](ctx, s.db, `
		SELECT `+messageColumns+` FROM `+messageTables+`
		WHERE m.org = $1 AND m.conversation_key = $2 AND m.position = $3`, org, c.Key, c.Prompts[len(c.Prompts)-1])
}

// withoutOrphans drops results without a call, and messages that are then empty. A late result stays even if its call
// has left the view.
func withoutOrphans(rows []Message) []Message {
	kept := rows[:0]
	for _, m := range rows {
		parts := m.Content[:0:0]
		for _, p := range m.Content {
			if p.Type != ToolReturn || !p.Orphan {
				parts = append(parts, p)
			}
		}
		if m.Content = parts; len(parts) > 0 || m.Role != Tool {
			kept = append(kept, m)
		}
	}
	return kept
}

// Window says how much the model sees of a conversation, and has the newest messages.
type Window struct {
	Messages []Message // the system prompt, and the newest other messages
	Count    int       // all messages that the model sees, including the system prompt
	Tokens   int       // tokens of these messages, without the system prompt
}

// MaxWindow bounds the messages of a Window, and the ids per conversation in VisibleIDs; the system prompt does not
// count. The messages of a Window have at most maxWindowBytes.
const MaxWindow = 1000

// Window measures what the model sees of a conversation. It uses the token counts made when the messages were appended.
func (s *Store) Window(ctx context.Context, org db.Org, agentID, conversation string) (Window, error) {
	c, err := s.Conversation(ctx, org, agentID, conversation)
	if err != nil {
		return Window{}, err
	}
	w, err := s.measure(ctx, org, c)
	if err != nil {
		return Window{}, err
	}
	most := MaxWindow
	w.Messages, err = s.view(ctx, org, c, span{most: &most, bytes: maxWindowBytes})
	return w, err
}

// measure counts what the model sees. If the conversation was never summarized, it may be long, so its stored counts
// are used.
func (s *Store) measure(ctx context.Context, org db.Org, c Conversation) (Window, error) {
	type totals struct {
		Count  int `db:"count"`
		Tokens int `db:"tokens"`
	}
	if c.FirstVisible == 1 && c.SummaryAt == nil && (c.Refusal == nil || c.HiddenTokens == 0) {
		prompts, err := db.One[totals](ctx, s.db, `
			SELECT count(*) AS count, coalesce(sum(tokens), 0) AS tokens
			FROM messages WHERE org = $1 AND conversation_key = $2 AND position = ANY ($3)`, org, c.Key, c.Prompts)
		return Window{Count: c.Messages - prompts.Count + 1, Tokens: int(c.Tokens) - prompts.Tokens}, err
	}
	rest, err := db.One[totals](ctx, s.db, `
		SELECT count(*) AS count, coalesce(sum(tokens), 0) AS tokens
		FROM (
			SELECT m.tokens FROM messages m JOIN conversations c ON `+seen+`
			WHERE m.org = $1 AND c.org = $1 AND m.conversation_key = $2 AND m.position >= $3
			UNION ALL
			SELECT m.tokens FROM messages m
			WHERE m.org = $1 AND m.conversation_key = $2 AND (m.position = $4 OR m.position = ANY ($5)) AND `+isSeenAtHead+`
		) seen`, org, c.Key, c.FirstVisible, c.SummaryAt, c.Kept)
	return Window{Count: rest.Count + 1, Tokens: rest.Tokens}, err
}

// VisibleIDs returns the ids of the messages that the model sees, by the conversations' keys: the first system prompt,
// in whose place lists show the current one, and the newest MaxWindow others. Messages that only have tool results
// without a call are left out.
func (s *Store) VisibleIDs(ctx context.Context, org db.Org, conversations ...Conversation) (map[int64][]string, error) {
	keys := make([]int64, len(conversations))
	for i, c := range conversations {
		keys[i] = c.Key
	}
	type row struct {
		Key int64    `db:"key"`
		IDs []string `db:"ids"`
	}
	rows, err := db.All[row](ctx, s.db, fmt.Sprintf(`
		SELECT c.key, ARRAY(
			SELECT 'message-' || m.id FROM messages m
			WHERE m.org = $1 AND m.conversation_key = c.key AND m.position = c.prompts[1]
		) || ARRAY(
			SELECT 'message-' || m.id FROM messages m
			WHERE m.org = $1 AND m.conversation_key = c.key
			  AND (m.position = c.summary_position OR m.position = ANY (c.kept))
			  AND `+isSeenAtHead+`
			ORDER BY m.role <> 'summary', m.position
		) || ARRAY(
			SELECT 'message-' || newest.id
			FROM (
				SELECT m.id, m.position FROM messages m
				WHERE m.org = $1 AND `+seen+` AND m.position >= c.first_visible AND (m.role <> 'tool' OR EXISTS (
					SELECT FROM json_array_elements(m.content) AS part WHERE NOT `+isOrphan+`))
				ORDER BY m.position DESC
				LIMIT %d
			) newest
			ORDER BY newest.position
		) AS ids
		FROM conversations c
		WHERE c.org = $1 AND c.key = ANY ($2)`, MaxWindow), org, keys) // a limit in $3 would make Postgres plan each call
	ids := make(map[int64][]string, len(rows))
	for _, r := range rows {
		ids[r.Key] = r.IDs
	}
	return ids, err
}

// CountMessages returns how many messages an agent has, except those in deleted conversations.
func (s *Store) CountMessages(ctx context.Context, org db.Org, agentID string) (int, error) {
	return db.One[int](ctx, s.db, `
		SELECT coalesce(sum(c.messages), 0)::bigint
		FROM conversations c JOIN agents a ON a.org = c.org AND a.key = c.agent_key
		WHERE c.org = $1 AND a.id = $2 AND c.deleted_at IS NULL`, org, agentID)
}

// NewestOfUser returns the tokens and the position of the newest message that the model sees of a conversation. Both
// are 0 if that message is not the user's.
func (s *Store) NewestOfUser(ctx context.Context, org db.Org, c Conversation) (tokens, position int, err error) {
	type newest struct {
		Role     Role `db:"role"`
		Tokens   int  `db:"tokens"`
		Position int  `db:"position"`
	}
	rows, err := db.All[newest](ctx, s.db, `
		SELECT m.role, m.tokens, m.position
		FROM messages m JOIN conversations c ON `+seen+`
		WHERE m.org = $1 AND c.org = $1 AND m.conversation_key = $2 AND m.position >= $3
		ORDER BY m.position DESC
		LIMIT 1`, org, c.Key, c.FirstVisible)
	if err != nil || len(rows) == 0 || rows[0].Role != User {
		return 0, 0, err
	}
	return rows[0].Tokens, rows[0].Position, nil
}

// Newest returns the newest messages of a role after a position in a conversation, the newest first, at most ten.
func (s *Store) Newest(ctx context.Context, org db.Org, c Conversation, role Role, after int) ([]Message, error) {
	return db.All[Message](ctx, s.db, `
		SELECT `+messageColumns+` FROM `+messageTables+`
		WHERE m.org = $1 AND m.conversation_key = $2 AND m.role = $3 AND m.position > $4
		ORDER BY m.position DESC
		LIMIT 10`, org, c.Key, role, after)
}

// CountSaid counts like CountMessages, but only in the conversations of a scope, without system prompts, and without
// copies of messages that the original conversation still has.
func (s *Store) CountSaid(ctx context.Context, org db.Org, agentID string, users db.UserScope) (int, error) {
	args := pgx.StrictNamedArgs{"org": org, "agent": agentID}
	return db.One[int](ctx, s.db, `
		SELECT coalesce(sum(c.messages - own.first + 1 - (
			SELECT count(*) FROM unnest(c.prompts) AS prompt (position) WHERE prompt.position >= own.first)), 0)::bigint
		FROM conversations c
		JOIN agents a ON a.org = c.org AND a.key = c.agent_key
		LEFT JOIN conversations o ON o.org = c.org AND o.key = c.forked_from AND o.deleted_at IS NULL
		CROSS JOIN LATERAL (SELECT CASE WHEN o.key IS NULL THEN 1 ELSE c.forked_to + 1 END) AS own (first)
		WHERE c.org = @org AND a.id = @agent AND c.deleted_at IS NULL AND c.messages > 0
		  AND NOT c.delegated AND `+users.Where(UserOf, args), args)
}
