package recall

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/db"
)

// A tool result longer than MaxResultChars is stored whole outside the log, which keeps its beginning and a Clip. So
// are the longest results of a message whose results together are longer than MaxResultsChars.
const (
	MaxResultChars  = 50_000
	MaxResultsChars = 200_000
	PreviewBytes    = 2_000
)

// longResult is a tool result to be stored outside the log, once per organization and hash.
type longResult struct {
	clip   string // id of the Clip
	part   int    // index of its part
	sha256 [sha256.Size]byte
	size   int // bytes of the text
	zstd   bool
	bytes  []byte // the text, compressed if zstd
}

// moveLongResults replaces the long results in parts with their beginnings, and returns the whole results in the order
// of the parts. ids are those that their Clips are to have, by the index of the part; others get new ones.
func moveLongResults(parts []Part, ids map[int]string) (moved []longResult) {
	total := 0
	var results []int
	chars := make([]int, len(parts))
	for i, p := range parts {
		if p.Type == ToolReturn {
			chars[i] = utf8.RuneCountInString(p.Text)
			total += chars[i]
			results = append(results, i)
		}
	}
	slices.SortStableFunc(results, func(a, b int) int { return cmp.Compare(chars[b], chars[a]) })
	for _, i := range results {
		if chars[i] <= MaxResultChars && total <= MaxResultsChars || chars[i] <= PreviewBytes {
			break
		}
		long := newLongResult(cmp.Or(ids[i], "clip-"+uuid.NewString()), parts[i].Text)
		long.part = i
		moved = append(moved, long)
		parts[i].clipTo(long, chars[i])
		total -= chars[i] - PreviewBytes
	}
	slices.SortFunc(moved, func(a, b longResult) int { return cmp.Compare(a.part, b.part) })
	return moved
}

// clipTo replaces a long result with its beginning.
func (p *Part) clipTo(long longResult, chars int) {
	shown := preview(p.Text)
	p.Clip = &Clip{ID: long.clip, Chars: chars, Bytes: long.size, SHA256: hex.EncodeToString(long.sha256[:]),
		Shown: len(shown)}
	p.Text = shown
	p.Text = p.Preview(len(shown), 0, nil)
}

// Preview returns the first bytes of a result of which the log holds the beginning, at most those that it holds, and a
// note on how a model with the tools has reads on, at most limit bytes at a time; 0 names no limit.
func (p Part) Preview(bytes, limit int, has Toolset) string {
	bytes = min(max(bytes, 0), p.Clip.Shown, len(p.Text))
	on := has.Hint("expand", " To read on, call: "+ExpandCall(strconv.Quote(p.Clip.ID), bytes, limit))
	return p.Text[:bytes] + fmt.Sprintf("\n"+frame.FirstBytes, bytes, p.Clip.Bytes, on)
}

// ExpandCall returns the call that reads a text on, at most limit bytes at a time. Without a limit it names none.
func ExpandCall(id string, offset, limit int) string {
	if limit == 0 {
		return fmt.Sprintf("expand(id=%s, offset=%d)", id, offset)
	}
	return fmt.Sprintf("expand(id=%s, offset=%d, limit=%d)", id, offset, limit)
}

// For returns messages as a model with these tools reads them: notes on cut results name no other tool. It does not
// change the messages given.
func (has Toolset) For(messages []Message) []Message {
	if has == nil || has("expand") {
		return messages
	}
	shown := slices.Clone(messages)
	for i, m := range shown {
		shown[i].Content = slices.Clone(m.Content)
		for j, p := range m.Content {
			if p.Clip != nil {
				shown[i].Content[j].Text = p.Preview(p.Clip.Shown, 0, has)
			}
		}
	}
	return shown
}

// preview returns the beginning of a text: whole lines if one ends within PreviewBytes, else whole characters.
func preview(text string) string {
	head := db.Beginning(text, PreviewBytes)
	if i := strings.LastIndexByte(head, '\n'); i > 0 {
		return head[:i+1]
	}
	return head
}

// minCompressBytes is the size from which texts are compressed.
const minCompressBytes = 1 << 10

// All goroutines share one encoder and one decoder, which are safe for concurrent use. Only wrong options make errors.
var (
	encoder, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	decoder, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(4*MaxPartBytes))
)

func newLongResult(id, text string) longResult {
	long := longResult{clip: id, sha256: sha256.Sum256([]byte(text)), size: len(text),
		bytes: []byte(text)}
	if long.size >= minCompressBytes {
		if small := encoder.EncodeAll(long.bytes, nil); len(small) < long.size {
			long.zstd, long.bytes = true, small
		}
	}
	return long
}

// queueLongResults queues the statements that store the long results of the conversation's last message.
func (end *conversationEnd) queueLongResults(batch *pgx.Batch, results []longResult) {
	for _, r := range results {
		batch.Queue(`
			INSERT INTO blobs (org, sha256, size_bytes, zstd, bytes) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (org, sha256) DO UPDATE SET used_at = now()`, end.org, r.sha256[:], r.size, r.zstd, r.bytes)
		batch.Queue(`
			INSERT INTO clips (id, org, sha256, agent_key, conversation_key, position, part)
			VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			r.clip, end.org, r.sha256[:], end.AgentKey, end.Key, end.Messages, r.part)
	}
}

func (s *Store) longResult(ctx context.Context, org db.Org, agentID string, q ExpandQuery) (string, error) {
	texts, err := s.longResults(ctx, org, agentID, q.Conversation, []string{q.ID})
	if text, ok := texts[q.ID]; ok || err != nil {
		return text, err
	}
	if shared, err := s.sharesLongResult(ctx, org, agentID, q); shared || err != nil {
		q.Conversation = ""
		return s.longResult(ctx, org, agentID, q)
	}
	return "", db.NotFound("There is no text with the id %q to expand; ids look like clip-… and are shown where a tool's "+
		"result was cut", db.Short(q.ID))
}

// sharesLongResult reports whether the query's conversation is a copy that has a long result of its original.
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

// unlessNotFound returns an error that is not ErrNotFound.
func unlessNotFound(err error) error {
	if isNotFound(err) {
		return nil
	}
	return err
}

// longResults reads the texts of an agent's Clips, by their ids. An empty conversation is any. Clips that do not exist
// are left out.
func (s *Store) longResults(ctx context.Context, org db.Org, agentID, conversation string, ids []string) (
	map[string]string, error) {
	type row struct {
		ID    string `db:"id"`
		ZSTD  bool   `db:"zstd"`
		Bytes []byte `db:"bytes"`
	}
	rows, err := db.All[row](ctx, s.db, `
		SELECT k.id, b.zstd, b.bytes
		FROM clips k JOIN blobs b ON b.org = k.org AND b.sha256 = k.sha256
		JOIN conversations c ON c.org = k.org AND c.key = k.conversation_key AND c.deleted_at IS NULL
		JOIN agents a ON a.org = k.org AND a.key = k.agent_key
		WHERE k.org = @org AND a.id = @agent AND k.id = ANY (@ids) AND `+inConversation,
		pgx.StrictNamedArgs{"org": org, "agent": agentID, "ids": ids, "within": conversation})
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
	texts, err := s.longResults(ctx, org, messages[0].AgentID, "", ids)
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
