package recall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// ExpandQuery names a text of an agent to expand, and says what part to return.
type ExpandQuery struct {
	ID      string // id of a Clip or a message, a message's seq, or a range of the log such as "seq 120-188"
	Offset  int    // in bytes
	Limit   int    // in bytes; 0 means ExpandBytes
	Pattern string // an RE2 expression; empty: do not search lines

	Reach // where the text is
}

// longResult returns the text behind a Clip of an agent.
func (s *Store) longResult(ctx context.Context, org db.Org, agentID string, q ExpandQuery) (text, error) {
	args := pgx.StrictNamedArgs{"org": org, "agent": agentID, "id": q.ID}
	size, err := db.One[int64](ctx, s.db, `
		SELECT b.size_bytes`+longResultTables+q.where(args)+` AND k.id = @id`, args)
	if isNotFound(err) {
		if shared, err := s.sharesLongResult(ctx, org, agentID, q); shared || err != nil {
			q.Reach = Reach{Users: db.AllUsers()}
			return s.longResult(ctx, org, agentID, q)
		}
		err = noLongResult(q.ID)
	}
	return onePiece(size, func() (string, error) {
		texts, err := s.longResults(ctx, org, agentID, q.Reach, []string{q.ID})
		if text, ok := texts[q.ID]; ok || err != nil {
			return text, err
		}
		return "", noLongResult(q.ID)
	}), err
}

func noLongResult(id string) error {
	return db.NotFound("There is no text with the id %q to expand; ids look like clip-… and are shown where a tool's "+
		"result was cut", db.Short(id))
}

// longResultTables joins an agent's Clips to their stored texts. A condition on the conversation c follows.
const longResultTables = `
		FROM clips k JOIN blobs b ON b.org = k.org AND b.sha256 = k.sha256
		JOIN conversations c ON c.org = k.org AND c.key = k.conversation_key AND c.deleted_at IS NULL
		JOIN agents a ON a.org = k.org AND a.key = k.agent_key
		WHERE k.org = @org AND a.id = @agent AND `

// sharesLongResult reports whether the query's conversation is a copy that shares the long result with its original.
func (s *Store) sharesLongResult(ctx context.Context, org db.Org, agentID string, q ExpandQuery) (bool, error) {
	if q.Conversation == "" || q.Conversation == DefaultConversation {
		return false, nil
	}
	c, err := s.Conversation(ctx, org, agentID, q.Conversation)
	if err != nil || !c.Delegated {
		return false, err
	}
	type place struct {
		Conversation int64 `db:"conversation_key"`
		Position     int   `db:"position"`
	}
	clip, err := db.One[place](ctx, s.db, `
		SELECT conversation_key, coalesce(position, 0) AS position FROM clips
		WHERE org = $1 AND agent_key = $2 AND id = $3`, org, c.AgentKey, q.ID)
	if err != nil {
		return false, unlessNotFound(err)
	}
	l, err := s.lineageOf(ctx, org, c.AgentKey, true)
	for key, to := range l.path(c.Key) {
		if key == clip.Conversation && clip.Position <= to {
			return true, err
		}
	}
	return false, err
}

// unlessNotFound returns nil for ErrNotFound, and any other error unchanged.
func unlessNotFound(err error) error {
	if isNotFound(err) {
		return nil
	}
	return err
}

// longResults maps Clip id → text, for an agent's Clips within a reach. Clips that do not exist are left out.
func (s *Store) longResults(ctx context.Context, org db.Org, agentID string, within Reach, ids []string) (
	map[string]string, error) {
	type row struct {
		ID    string `db:"id"`
		ZSTD  bool   `db:"zstd"`
		Bytes []byte `db:"bytes"`
	}
	args := pgx.StrictNamedArgs{"org": org, "agent": agentID, "ids": ids}
	rows, err := db.All[row](ctx, s.db, `
		SELECT k.id, b.zstd, b.bytes`+longResultTables+within.where(args)+` AND k.id = ANY (@ids)`, args)
	texts := make(map[string]string, len(rows))
	for _, r := range rows {
		if r.ZSTD {
			if r.Bytes, err = decoder.DecodeAll(r.Bytes, nil); err != nil {
				return nil, fmt.Errorf("expand %s: %w", r.ID, err)
			}
		}
		texts[r.ID] = string(r.Bytes)
	}
	return texts, err
}

// LongResult returns the whole text of an agent's long result by its Clip's id; ErrNotFound if it is not stored.
func (s *Store) LongResult(ctx context.Context, org db.Org, agentID, clip string) (string, error) {
	texts, err := s.longResults(ctx, org, agentID, Reach{Users: db.AllUsers()}, []string{clip})
	text, ok := texts[clip]
	if err == nil && !ok {
		err = db.ErrNotFound
	}
	return text, err
}

// whole returns messages of one agent with their long results whole.
func (s *Store) whole(ctx context.Context, org db.Org, messages []Message) ([]Message, error) {
	var ids []string
	for _, m := range messages {
		for _, p := range m.Content {
			if p.Clip != nil {
				ids = append(ids, p.Clip.ID)
			}
		}
	}
	if len(ids) == 0 {
		return messages, nil
	}
	texts, err := s.longResults(ctx, org, messages[0].AgentID, Reach{Users: db.AllUsers()}, ids)
	whole := slices.Clone(messages)
	for i, m := range whole {
		whole[i].Content = slices.Clone(m.Content)
		for j, p := range m.Content {
			if p.Clip != nil {
				whole[i].Content[j].Text = cmp.Or(texts[p.Clip.ID], p.Text)
			}
		}
	}
	return whole, err
}

// clipped returns the whole text behind a Clip, in any conversation.
func (s *Store) clipped(ctx context.Context, org db.Org, id string) (string, error) {
	type row struct {
		ZSTD  bool   `db:"zstd"`
		Bytes []byte `db:"bytes"`
	}
	r, err := db.One[row](ctx, s.db, `
		SELECT b.zstd, b.bytes FROM clips k JOIN blobs b ON b.org = k.org AND b.sha256 = k.sha256
		WHERE k.org = $1 AND b.org = $1 AND k.id = $2`, org, id)
	if err != nil {
		return "", err
	}
	return Unpacked(r.Bytes, r.ZSTD)
}

// clippedTexts returns id → text of Clips of any agents.
func (s *Store) clippedTexts(ctx context.Context, org db.Org, ids []string) (map[string]string, error) {
	type row struct {
		ID    string `db:"id"`
		ZSTD  bool   `db:"zstd"`
		Bytes []byte `db:"bytes"`
	}
	if len(ids) == 0 {
		return nil, nil //nolint:nilnil // no text
	}
	rows, err := db.All[row](ctx, s.db, `
		SELECT k.id, b.zstd, b.bytes FROM clips k JOIN blobs b ON b.org = k.org AND b.sha256 = k.sha256
		WHERE k.org = $1 AND b.org = $1 AND k.id = ANY ($2)`, org, ids)
	texts := make(map[string]string, len(rows))
	for _, r := range rows {
		if texts[r.ID], err = Unpacked(r.Bytes, r.ZSTD); err != nil {
			return nil, err
		}
	}
	return texts, err
}

// Unpacked returns the text of a stored long result.
func Unpacked(bytes []byte, zstd bool) (string, error) {
	if !zstd {
		return string(bytes), nil
	}
	text, err := decoder.DecodeAll(bytes, nil)
	if err != nil {
		return "", fmt.Errorf("unpack a long result: %w", err)
	}
	return string(text), nil
}

// wholeParts returns parts with their long results whole. moved are long results of these parts that are not stored
// yet.
func (s *Store) wholeParts(ctx context.Context, org db.Org, parts []Part, moved []longResult) ([]Part, error) {
	whole := append([]Part{}, parts...)
	for i, p := range whole {
		if p.Clip == nil {
			continue
		}
		text, err := s.clipped(ctx, org, p.Clip.ID)
		for _, long := range moved {
			if long.part == i {
				text, err = Unpacked(long.bytes, long.zstd)
			}
		}
		if err != nil && !errors.Is(err, db.ErrNotFound) {
			return nil, err
		}
		if err == nil {
			whole[i].Text = text
		}
	}
	return whole, nil
}
