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

// seen is the condition on messages m, from the first visible one of conversation c on, that the model sees them. A
// statement that compares the position with a number of its own reads no other messages.
const seen = `m.conversation_key = c.key AND m.position <> ALL (c.prompts) AND m.role <> 'summary' AND NOT m.is_err
	AND m.purpose = '' AND m.refused IS NULL`

// maxViewBytes bounds the rows that a prompt is made of. The texts of a window of a million tokens have a fourth of it.
const maxViewBytes = 24 << 20

// maxWindowBytes bounds the rows of a Window's messages, of which no prompt is made.
const maxWindowBytes = 8 << 20

// View returns what the model sees of a conversation, in the view that the conversation was read with and with the
// messages appended since: the system prompt, the summary, if there is one, and the visible messages, without tool
// results that have no call in the conversation.
func (s *Store) View(ctx context.Context, org db.Org, c Conversation) ([]Message, error) {
	return s.view(ctx, org, c, span{})
}

// NewestView returns of View the newest messages that a prompt can be made of, and reports whether these are all.
func (s *Store) NewestView(ctx context.Context, org db.Org, c Conversation) (view []Message, whole bool, err error) {
	view, err = s.view(ctx, org, c, span{bytes: maxViewBytes, whole: &whole})
	return view, whole, err
}

// AbridgedView returns View with the beginnings only of the texts of its older messages, if a prompt cannot be made of
// all.
func (s *Store) AbridgedView(ctx context.Context, org db.Org, c Conversation) ([]Message, error) {
	var older []Message
	view, err := s.view(ctx, org, c, span{bytes: maxViewBytes, more: func(m Message) {
		older = append(older, abridged(m))
	}})
	if len(older) == 0 || err != nil {
		return view, err
	}
	slices.Reverse(older)
	head := 1 // the system prompt, the summary and what is kept
	for head < len(view) && (view[head].Role == Summary || slices.Contains(c.Kept, view[head].Position)) {
		head++
	}
	return withoutOrphans(slices.Insert(view, head, older...)), nil
}

// ViewUntil returns what View does when the message at a position is the conversation's last: the newest most of its
// visible messages that a prompt can be made of.
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

// FlushMessages returns the messages of the silent turn that began at a position of a conversation.
func (s *Store) FlushMessages(ctx context.Context, org db.Org, c Conversation, begin int) ([]Message, error) {
	return db.All[Message](ctx, s.db, `
		SELECT `+messageColumns+` FROM `+messageTables+`
		WHERE m.org = $1 AND m.conversation_key = $2 AND m.position >= $3 AND m.purpose = 'flush'
		ORDER BY m.position`, org, c.Key, begin)
}

// span selects visible messages: those up to a position, and the newest of them. Nil or 0 is no bound.
type span struct {
	last, most *int
	bytes      int64         // of their rows
	more       func(Message) // gets those beyond the bytes, the newest first; nil to read none
	whole      *bool         // is told whether there are none beyond the bytes; may be nil
}

// view reads what the model sees of a conversation.
func (s *Store) view(ctx context.Context, org db.Org, c Conversation, of span) ([]Message, error) {
	head, err := s.head(ctx, org, c)
	if err != nil {
		return nil, err
	}
	rows, whole, err := db.Within(ctx, s.db, db.Budget[Message]{Bytes: cmp.Or(of.bytes, math.MaxInt64), More: of.more},
		viewSQL, pgx.StrictNamedArgs{"org": org, "key": c.Key, "first": c.FirstVisible, "last": of.last, "most": of.most})
	if of.whole != nil {
		*of.whole = whole
	}
	slices.Reverse(rows)
	return withoutOrphans(append(head, rows...)), err
}

// head reads the beginning of a view: the system prompt, the summary, and the kept messages.
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

// isSeenAtHead is the condition on a summary or a kept message m that the model sees it. A refused summary keeps its
// place, with refusedSummary as its text.
const isSeenAtHead = `(m.refused IS NULL OR m.role = 'summary')`

// refusedSummary is what a model reads in place of a summary that its provider refused.
const refusedSummary = "The model's provider refused the summary of these messages, so it is not shown."

// abridgedBytes is what is left of each text of an abridged message.
const abridgedBytes = 1 << 10

// abridged returns a message with the beginnings only of its long texts. Long results keep theirs.
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

// withoutOrphans leaves out results without a call, and messages that are empty then. A result whose call left the view
// stays: it came late.
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

// Window is what the model sees of a conversation in numbers, with the newest messages.
type Window struct {
	Messages []Message // the system prompt, and the newest of the others
	Count    int       // of all messages that the model sees, including the system prompt
	Tokens   int       // of these, without the system prompt
}

// MaxWindow bounds the messages of a Window and the ids that VisibleIDs lists of a conversation, without the system
// prompt. The messages of a Window have maxWindowBytes at most.
const MaxWindow = 1000

// Window measures what the model sees of a conversation by the tokens that were counted when its messages were
// appended.
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

// measure counts what the model sees. A conversation that was never summarized may be long; its stored counts are used.
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

// VisibleIDs returns the ids of the messages that the model sees of conversations, by the keys of these: the system
// prompt, and the newest MaxWindow of the others, without messages that only have tool results without a call.
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
			WHERE m.org = c.org AND m.conversation_key = c.key AND m.position = c.prompts[cardinality(c.prompts)]
		) || ARRAY(
			SELECT 'message-' || m.id FROM messages m
			WHERE m.org = c.org AND m.conversation_key = c.key
			  AND (m.position = c.summary_position OR m.position = ANY (c.kept))
			  AND `+isSeenAtHead+`
			ORDER BY m.role <> 'summary', m.position
		) || ARRAY(
			SELECT 'message-' || newest.id
			FROM (
				SELECT m.id, m.position FROM messages m
				WHERE m.org = c.org AND `+seen+` AND m.position >= c.first_visible AND (m.role <> 'tool' OR EXISTS (
					SELECT FROM json_array_elements(m.content) AS part WHERE NOT `+isOrphan+`))
				ORDER BY m.position DESC
				LIMIT %d
			) newest
			ORDER BY newest.position
		) AS ids
		FROM conversations c
		WHERE c.org = $1 AND c.key = ANY ($2)`, MaxWindow), org, keys) // a limit in $3 would be planned for each call
	ids := make(map[int64][]string, len(rows))
	for _, r := range rows {
		ids[r.Key] = r.IDs
	}
	return ids, err
}

// CountMessages returns how many messages an agent has, without those of deleted conversations.
func (s *Store) CountMessages(ctx context.Context, org db.Org, agentID string) (int, error) {
	return db.One[int](ctx, s.db, `
		SELECT coalesce(sum(c.messages), 0)::bigint
		FROM conversations c JOIN agents a ON a.org = c.org AND a.key = c.agent_key
		WHERE c.org = $1 AND a.id = $2 AND c.deleted_at IS NULL`, org, agentID)
}

// NewestOfUser returns the tokens and the position of the newest message that the model sees of a conversation, if it
// is the user's; else 0.
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

// Newest returns the newest messages of a role in a conversation after a position, at most ten, the newest first.
func (s *Store) Newest(ctx context.Context, org db.Org, c Conversation, role Role, after int) ([]Message, error) {
	return db.All[Message](ctx, s.db, `
		SELECT `+messageColumns+` FROM `+messageTables+`
		WHERE m.org = $1 AND m.conversation_key = $2 AND m.role = $3 AND m.position > $4
		ORDER BY m.position DESC
		LIMIT 10`, org, c.Key, role, after)
}

// CountSaid returns what CountMessages returns without the system prompts, and without copies of messages that the
// conversation they come from still has.
func (s *Store) CountSaid(ctx context.Context, org db.Org, agentID string) (int, error) {
	return db.One[int](ctx, s.db, `
		SELECT coalesce(sum(c.messages - own.first + 1 - (
			SELECT count(*) FROM unnest(c.prompts) AS prompt (position) WHERE prompt.position >= own.first)), 0)::bigint
		FROM conversations c
		JOIN agents a ON a.org = c.org AND a.key = c.agent_key
		LEFT JOIN conversations o ON o.org = c.org AND o.key = c.forked_from AND o.deleted_at IS NULL
		CROSS JOIN LATERAL (SELECT CASE WHEN o.key IS NULL THEN 1 ELSE c.forked_to + 1 END) AS own (first)
		WHERE c.org = $1 AND a.id = $2 AND c.deleted_at IS NULL AND c.messages > 0
		  AND NOT c.delegated`, org, agentID)
}
