package recall

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// ErasedMessage is the place of a message that lost a text to an erasure.
type ErasedMessage struct {
	Key          int64  `db:"key"`
	Seq          int64  `db:"seq"`
	Conversation int64  `db:"conversation_key"`
	Agent        int64  `db:"agent_key"`
	Position     int    `db:"position"`
	Role         Role   `db:"role"`
	Found        int    `db:"-"` // how many occurrences were erased
	Content      []Part `db:"content"`

	Name     *string  `db:"name"`
	Sender   *string  `db:"sender_id"`
	Group    *string  `db:"group_id"`
	OTID     *string  `db:"otid"`
	StepID   *string  `db:"step_id"`
	RunID    *string  `db:"run_id"`
	Model    *string  `db:"model"`
	Refused  *Refused `db:"refused"`
	Searched bool     `db:"searched"`
}

// Eraser returns texts without what it erases, and the number of erased occurrences.
type Eraser struct {
	Text func(text string) (string, int) // for a text, or for JSON that a caller sent
	JSON func(raw string) (string, int)  // for JSON with names that must stay; nil uses Text

	// Across erases occurrences that span several texts, such as a name that begins in one text and ends in the next.
	// between is the text that joins them. Nil erases no such occurrence.
	Across func(texts []string, between string) ([]string, int)

	Dry bool // nothing is stored
}

// counting adds up what its Eraser finds.
type counting struct {
	Eraser
	found int
}

func (c *counting) text(text string) string {
	text, n := c.Text(text)
	c.found += n
	return text
}

func (c *counting) json(raw string) string {
	if c.JSON == nil {
		return c.text(raw)
	}
	raw, n := c.JSON(raw)
	c.found += n
	return raw
}

// EraseFrom removes texts from a stored message and from its long results outside the log. The message may be in any
// conversation, also a deleted one. A log otherwise never changes; the only other exception is the redaction of secrets
// before messages are stored. The message keeps its place, its id and its calls. Searches find it by its remaining
// words, and it waits for a new vector. EraseFrom must be called in a transaction.
func (s *Store) EraseFrom(ctx context.Context, org db.Org, key int64, eraser Eraser) (ErasedMessage, error) {
	m, err := s.toErase(ctx, org, key)
	if err != nil {
		return m, err
	}
	erase := &counting{Eraser: eraser}
	erase.fields(&m)
	if m.Refused != nil {
		m.Refused.Message = erase.text(m.Refused.Message)
	}
	erase.acrossParts(m.Content)
	var moved []longResult
	for i := range m.Content {
		long, err := s.eraseFromPart(ctx, org, &m.Content[i], erase)
		if err != nil {
			return m, err
		}
		if long != nil {
			long.part = i
			moved = append(moved, *long)
		}
	}
	if m.Found = erase.found; m.Found == 0 || eraser.Dry {
		return m, nil
	}
	return m, s.storeErased(ctx, org, m, moved)
}

// toErase reads and locks the message to erase from.
func (s *Store) toErase(ctx context.Context, org db.Org, key int64) (ErasedMessage, error) {
	return db.One[ErasedMessage](ctx, s.db, `
		SELECT key, seq, conversation_key, agent_key, position, role, content, name, sender_id, group_id, otid, step_id,
		       run_id, model, refused, lex IS NOT NULL AS searched
		FROM messages WHERE org = $1 AND key = $2
		FOR UPDATE`, org, key)
}

// fields erases from the message's short texts. Ids of steps and runs stay if Loci made them.
func (c *counting) fields(m *ErasedMessage) {
	for _, field := range []struct {
		text   **string
		prefix string // of ids that Loci makes
	}{{&m.Name, ""}, {&m.Sender, ""}, {&m.Group, ""}, {&m.OTID, ""}, {&m.Model, ""}, {&m.StepID, "step-"},
		{&m.RunID, "run-"}} {
		text := *field.text
		if text == nil || field.prefix != "" && db.UUID(field.prefix, *text) != uuid.Nil {
			continue
		}
		*field.text = new(c.text(*text))
	}
}

// sealed returns data that only a provider can read, or nothing if it contains an erased text: the provider would
// refuse changed data.
func (c *counting) sealed(data string) string {
	if after := c.text(data); after != data {
		return ""
	}
	return data
}

// acrossParts erases what stands only in neighboring texts joined together.
func (c *counting) acrossParts(parts []Part) {
	if c.Across == nil {
		return
	}
	for i := 0; i < len(parts); {
		n := 0
		var texts []string
		for ; i+n < len(parts) && parts[i+n].Type == Text && parts[i+n].Clip == nil; n++ {
			texts = append(texts, parts[i+n].Text)
		}
		for _, between := range []string{"", "\n"} {
			after, found := c.Across(texts, between)
			texts, c.found = after, c.found+found
		}
		for k, text := range texts {
			if p := &parts[i+k]; p.Text != text {
				p.Text, p.Extra = cmp.Or(text, "[…]"), "" // Extra refers to places in the old text
			}
		}
		i += max(n, 1)
	}
}

// WholeTexts returns every text of a stored message: what it says, the texts in the arguments of its calls, and its
// results, with long ones whole. A message that was erased has none.
func (s *Store) WholeTexts(ctx context.Context, org db.Org, key int64) (texts []string, err error) {
	content, err := db.One[[]Part](ctx, s.db, `SELECT content FROM messages WHERE org = $1 AND key = $2`, org, key)
	if err != nil {
		return nil, err
	}
	whole, err := s.wholeParts(ctx, org, content, nil)
	for _, p := range whole {
		texts = append(texts, p.Text)
		var input any
		if json.Unmarshal([]byte(p.Input), &input) == nil {
			texts = append(texts, textsIn(input)...)
		}
		texts = append(append(texts, p.Stdout...), p.Stderr...)
	}
	return slices.DeleteFunc(texts, func(t string) bool { return t == "" || t == erasedMessage }), err
}

// textsIn returns the texts in a JSON value, ordered by the names of their fields.
func textsIn(value any) (texts []string) {
	switch v := value.(type) {
	case string:
		return []string{v}
	case []any:
		for _, item := range v {
			texts = append(texts, textsIn(item)...)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			texts = append(texts, textsIn(v[name])...)
		}
	}
	return texts
}

// erasedMessage is the text of a message that was erased whole.
const erasedMessage = "[This message was erased.]"

// EraseMessage erases every text of a stored message, as EraseFrom does. Its calls stay without arguments, and its
// results without texts, so that each call has its result. It must be called in a transaction.
func (s *Store) EraseMessage(ctx context.Context, org db.Org, key int64) (ErasedMessage, error) {
	m, err := s.toErase(ctx, org, key)
	if err != nil {
		return m, err
	}
	parts := []Part{}
	for _, p := range m.Content {
		switch p.Type {
		case ToolCall:
			parts = append(parts, Part{Type: ToolCall, CallID: p.CallID, Name: p.Name, Input: "{}"})
		case ToolReturn:
			parts = append(parts, Part{Type: ToolReturn, CallID: p.CallID, Text: erasedMessage, IsError: p.IsError,
				Orphan: p.Orphan})
		}
	}
	if len(parts) == 0 || m.Role == Assistant {
		parts = append([]Part{{Type: Text, Text: erasedMessage}}, parts...)
	}
	if !slices.EqualFunc(m.Content, parts, func(a, b Part) bool { return a.Text == b.Text && a.Input == b.Input }) {
		m.Found = 1
	} else if m.Name == nil && (m.Refused == nil || m.Refused.Message == "") {
		return m, nil // it was erased before
	}
	m.Content, m.Name = parts, nil
	if m.Refused != nil {
		m.Refused.Message = ""
	}
	if _, err := s.db.Exec(ctx, db.Deleting(`
		cut AS (DELETE FROM clips WHERE org = $1 AND conversation_key = $2 AND position = $3 RETURNING id, sha256), `,
		"blobs", `r.org = $1 AND r.sha256 IN (SELECT sha256 FROM cut) AND NOT EXISTS (
			SELECT FROM clips k WHERE k.org = $1 AND k.sha256 = r.sha256 AND k.id NOT IN (SELECT id FROM cut))`),
		org, m.Conversation, m.Position); err != nil {
		return m, db.Error(err)
	}
	return m, s.storeErased(ctx, org, m, nil)
}

// eraseFromPart erases from a part. It returns the part's long result if that changed.
func (s *Store) eraseFromPart(ctx context.Context, org db.Org, p *Part, erase *counting) (*longResult, error) {
	whole := p.Text
	if p.Clip != nil {
		var err error
		if whole, err = s.clipped(ctx, org, p.Clip.ID); errors.Is(err, db.ErrNotFound) {
			whole = p.Text
		} else if err != nil {
			return nil, err
		}
	}
	after := erase.text(whole)
	changed := after != whole
	if changed {
		erased := Part{Text: whole, ImagesAt: p.ImagesAt}
		erased.ReplaceText(after, func(text string) string { text, _ = erase.Text(text); return text })
		p.ImagesAt = erased.ImagesAt
	}
	if changed && p.Type != Text && p.Type != ToolReturn { // a provider signs thoughts, and refuses them changed
		p.Signature, p.Native = "", false
	}
	var moved *longResult
	switch {
	case changed && p.Clip != nil:
		long := newLongResult(p.Clip.ID, after)
		p.Text = after
		p.clipTo(long, len([]rune(after)))
		moved = &long
	case p.Clip == nil:
		p.Text = after
	}
	if signature := erase.sealed(p.Signature); signature != p.Signature {
		p.Signature, p.Native = "", false
	}
	p.Name, p.Input, p.Data, p.Item = erase.text(p.Name), erase.text(p.Input), erase.sealed(p.Data), erase.json(p.Item)
	if p.Extra = erase.json(p.Extra); changed {
		p.Extra = "" // Extra refers to places in the old text
	}
	for _, lines := range [][]string{p.Stdout, p.Stderr} {
		for i := range lines {
			lines[i] = erase.text(lines[i])
		}
	}
	for _, raw := range []*json.RawMessage{&p.Source, &p.Stats, &p.Summary} {
		if len(*raw) > 0 {
			*raw = json.RawMessage(erase.json(string(*raw)))
		}
	}
	for i := range p.Images {
		p.Images[i] = json.RawMessage(erase.json(string(p.Images[i])))
	}
	return moved, nil
}

// storeErased stores the message after an erasure, and deletes what was derived from the old text.
func (s *Store) storeErased(ctx context.Context, org db.Org, m ErasedMessage, moved []longResult) error {
	content, err := json.Marshal(m.Content)
	if err != nil {
		return err
	}
	whole, err := s.wholeParts(ctx, org, m.Content, moved)
	if err != nil {
		return err
	}
	e := entry{searchText: searchText(m.Role, m.Name, whole), repeatsLog: !m.Searched}
	weights, passages := weigh(m.Agent, &e)
	if err := s.search.Words.Note(ctx, s.db, org, m.Key); err != nil {
		return err
	}
	var batch pgx.Batch
	// This comes first. A batch of vectors that is being stored is then stored before the deletion below, or not at all.
	batch.Queue(`
		UPDATE conversations SET embedded = least(embedded, $3 - 1), unembedded = true WHERE org = $1 AND key = $2`,
		org, m.Conversation, m.Position)
	for _, r := range moved {
		r.queueReplacement(&batch, org)
	}
	batch.Queue(db.CountBytes("messages", `r.org = $1 AND r.key = $2`, -1), org, m.Key)
	batch.Queue(`
		UPDATE messages
		SET content = $3, name = $4, sender_id = $5, group_id = $6, otid = $7, length = $8, lex = $9, terms = $10,
		    refused = $11, step_id = $12, run_id = $13, model = $14
		WHERE org = $1 AND key = $2`,
		org, m.Key, content, m.Name, m.Sender, m.Group, m.OTID, sizeOf(m.Content, termLength), weights.lex, weights.terms,
		m.Refused, m.StepID, m.RunID, m.Model)
	batch.Queue(db.CountBytes("messages", `r.org = $1 AND r.key = $2`, 1), org, m.Key)
	queuePassages(&batch, org, m.Key, passages)
	batch.Queue(`DELETE FROM message_vectors WHERE org = $1 AND message_key = $2`, org, m.Key)
	return db.Error(s.db.SendBatch(ctx, &batch).Close())
}

// queueReplacement queues the statements that store r in place of the old long result of its Clip.
func (r longResult) queueReplacement(batch *pgx.Batch, org db.Org) {
	batch.Queue(storeText, org, r.sha256[:], r.size, r.zstd, r.bytes)
	batch.Queue(db.Deleting(`
		old AS (SELECT sha256 FROM clips WHERE org = $1 AND id = $2), moved AS (
			UPDATE clips SET sha256 = $3 WHERE org = $1 AND id = $2), `,
		"blobs", `r.org = $1 AND r.sha256 IN (SELECT sha256 FROM old) AND r.sha256 <> $3 AND NOT EXISTS (
			SELECT FROM clips k WHERE k.org = $1 AND k.sha256 = r.sha256 AND k.id <> $2)`), org, r.clip, r.sha256[:])
}
