package erase

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// sweep is the work on one erasure.
type sweep struct {
	*Store
	org    db.Org
	e      Erasure
	m      *matcher // nil where a message is erased
	dry    bool
	report Report

	stuck map[string]bool // rows that cannot be changed, by table and key
	found int             // of the present pass
}

func (s *Store) sweep(org db.Org, e Erasure) (*sweep, error) {
	w := &sweep{Store: s, org: org, e: e, stuck: map[string]bool{},
		report: Report{Found: map[string]int{}, Left: map[string]int{}}}
	if len(e.Texts) == 0 {
		return w, nil
	}
	var err error
	w.m, err = newMatcher(e.Texts, e.WholeWords)
	return w, err
}

// pass searches everything once, erases what it finds, and returns how many occurrences there were.
func (w *sweep) pass(ctx context.Context) (int, error) {
	w.found, w.report.Unread = 0, 0
	for _, step := range []func(context.Context) error{w.messages, w.files, w.passages, w.promptParts, w.tables} {
		if err := step(ctx); err != nil {
			return 0, err
		}
		if !w.dry { // another server does not take it over meanwhile
			if err := db.Exec(ctx, w.DB, `UPDATE erasures SET claimed_at = now() WHERE org = $1 AND key = $2`, w.org,
				w.e.Key); err != nil {
				return 0, err
			}
		}
	}
	return w.found, nil
}

func (w *sweep) count(table string, n int) {
	if n > 0 {
		w.found += n
		w.report.Found[table] += n
	}
}

// erase returns a text or a JSON value without the texts to erase.
func (w *sweep) erase(text string) (string, int) {
	trimmed := strings.TrimSpace(text)
	if strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		if json.Valid([]byte(trimmed)) {
			after, n := w.m.eraseJSON(text)
			if !w.m.in(after) {
				return after, n
			}
		}
	}
	return w.m.erase(text)
}

// keysPage is how many rows of a large table are read at a time.
const keysPage = 200

// messages erases in the log, deleted conversations too, and in the long results outside of it.
func (w *sweep) messages(ctx context.Context) error {
	if err := w.blobs(ctx); err != nil {
		return err
	}
	type row struct {
		Key     int64  `db:"key"`
		Content string `db:"content"`
		Fields  string `db:"fields"`
	}
	for after := int64(0); ; {
		page, err := db.All[row](ctx, w.DB, `
			SELECT key, content::text AS content, concat_ws(E'\n', name, sender_id, group_id, otid) AS fields
			FROM messages WHERE org = $1 AND key > $2 ORDER BY key LIMIT $3`, w.org, after, keysPage)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, r := range page {
			after = r.Key
			in := len(w.m.find(r.Fields))
			if in == 0 && !w.m.in(r.Content) {
				continue
			}
			if w.dry {
				w.count("messages", in)
			}
			if err := w.inMessage(ctx, r.Key, r.Content); err != nil {
				return err
			}
		}
	}
}

// inMessage erases in one message, and notes it, so that what was made of it is made again.
func (w *sweep) inMessage(ctx context.Context, key int64, content string) error {
	if w.dry {
		_, n := w.m.eraseJSON(content)
		w.count("messages", n)
		return nil
	}
	return db.Tx(ctx, w.DB, func(tx pgx.Tx) error {
		m, err := w.Recall.With(tx).EraseFrom(ctx, w.org, key, w.erase)
		if errors.Is(err, db.ErrNotFound) {
			return nil
		}
		if err != nil || m.Found == 0 {
			return err
		}
		w.count("messages", m.Found)
		return w.note(ctx, tx, m)
	})
}

// note records the gap that an erasure left in the log.
func (w *sweep) note(ctx context.Context, tx pgx.Tx, m recall.ErasedMessage) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO erased_messages (org, erasure_key, message_key, conversation_key, agent_key, position, seq)
		VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (org, erasure_key, message_key) DO UPDATE SET remade = false`,
		w.org, w.e.Key, m.Key, m.Conversation, m.Agent, m.Position, m.Seq)
	return db.Error(err)
}

// blobs erases in the long results outside of the log: those of messages with them, those of none at once.
func (w *sweep) blobs(ctx context.Context) error {
	type row struct {
		SHA256 []byte `db:"sha256"`
		ZSTD   bool   `db:"zstd"`
		Bytes  []byte `db:"bytes"`
	}
	for after := []byte{}; ; {
		page, err := db.All[row](ctx, w.DB, `
			SELECT sha256, zstd, bytes FROM blobs WHERE org = $1 AND sha256 > $2 ORDER BY sha256 LIMIT 20`, w.org, after)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, r := range page {
			after = r.SHA256
			text, err := recall.Unpacked(r.Bytes, r.ZSTD)
			if err != nil {
				return err
			}
			if n := len(w.m.find(text)); n > 0 {
				if err := w.inBlob(ctx, r.SHA256, n); err != nil {
					return err
				}
			}
		}
	}
}

func (w *sweep) inBlob(ctx context.Context, sum []byte, n int) error {
	messages, err := db.All[int64](ctx, w.DB, `
		SELECT m.key FROM clips k
		JOIN messages m ON m.org = k.org AND m.conversation_key = k.conversation_key AND m.position = k.position
		WHERE k.org = $1 AND m.org = $1 AND k.sha256 = $2
		ORDER BY m.key`, w.org, sum)
	if err != nil {
		return err
	}
	if w.dry {
		w.count("blobs", n)
		return nil
	}
	for _, key := range messages {
		if err := w.inMessage(ctx, key, ""); err != nil {
			return err
		}
	}
	tag, err := w.DB.Exec(ctx, `
		DELETE FROM blobs b WHERE b.org = $1 AND b.sha256 = $2 AND NOT EXISTS (
			SELECT FROM clips k WHERE k.org = $1 AND k.sha256 = $2)`, w.org, sum)
	w.count("blobs", int(tag.RowsAffected()))
	return db.Error(err)
}

// files erases in the bytes of files, their text, chunks and vectors, and the index of n-grams.
func (w *sweep) files(ctx context.Context) error {
	for after := int64(0); ; {
		keys, err := db.All[int64](ctx, w.DB, `
			SELECT key FROM files WHERE org = $1 AND key > $2 ORDER BY key LIMIT $3`, w.org, after, keysPage)
		if err != nil || len(keys) == 0 {
			return err
		}
		for _, key := range keys {
			after = key
			out, err := w.Files.EraseFrom(ctx, w.org, key, w.dry, w.m.erase)
			if err != nil {
				return err
			}
			w.count("files", out.Found)
			if out.Unread {
				w.report.Unread++
			}
		}
	}
}

// passages erases in passages, those of deleted archives too. One of which nothing is left is deleted.
func (w *sweep) passages(ctx context.Context) error {
	type row struct {
		Key      int64    `db:"key"`
		Text     string   `db:"text"`
		Tags     []string `db:"tags"`
		Metadata string   `db:"metadata"`
	}
	for after := int64(0); ; {
		page, err := db.All[row](ctx, w.DB, `
			SELECT key, text, tags, metadata::text AS metadata FROM passages
			WHERE org = $1 AND key > $2 ORDER BY key LIMIT $3`, w.org, after, keysPage)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, r := range page {
			after = r.Key
			text, n := w.m.erase(r.Text)
			metadata, k := w.m.eraseJSON(r.Metadata)
			n += k
			for i, t := range r.Tags {
				if r.Tags[i], k = w.m.erase(t); k > 0 {
					n += k
				}
			}
			if w.count("passages", n); n == 0 || w.dry {
				continue
			}
			if strings.Trim(strings.NewReplacer(mark, "", shortMark, "").Replace(text), " \t\r\n.,;:") == "" {
				text = ""
			}
			if err := w.Archival.Replace(ctx, w.org, r.Key,
				archival.Contents{Text: text, Tags: r.Tags, Metadata: []byte(metadata)}); err != nil {
				return err
			}
		}
	}
}

// promptParts deletes the stored prompts that have a text to erase.
func (w *sweep) promptParts(ctx context.Context) error {
	type row struct {
		Agent  int64  `db:"agent_key"`
		SHA256 []byte `db:"sha256"`
		Bytes  []byte `db:"bytes"`
	}
	for agent, after := int64(0), []byte{}; ; {
		page, err := db.All[row](ctx, w.DB, `
			SELECT agent_key, sha256, bytes FROM prompt_parts
			WHERE org = $1 AND (agent_key, sha256) > ($2, $3) ORDER BY agent_key, sha256 LIMIT $4`,
			w.org, agent, after, keysPage)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, r := range page {
			agent, after = r.Agent, r.SHA256
			n := len(w.m.find(string(bytes.ToValidUTF8(r.Bytes, []byte{' '}))))
			if w.count("prompt_parts", n); n == 0 || w.dry {
				continue
			}
			tag, err := w.DB.Exec(ctx, `DELETE FROM prompts WHERE org = $1 AND agent_key = $2 AND parts @> ARRAY[$3::bytea]`,
				w.org, r.Agent, r.SHA256)
			if err != nil {
				return db.Error(err)
			}
			w.report.Prompts += int(tag.RowsAffected())
			if _, err := w.DB.Exec(ctx, `DELETE FROM prompt_parts WHERE org = $1 AND agent_key = $2 AND sha256 = $3`,
				w.org, r.Agent, r.SHA256); err != nil {
				return db.Error(err)
			}
		}
	}
}

// tables erases in the texts of all other tables, and reports what it cannot change.
func (w *sweep) tables(ctx context.Context) error {
	all, err := w.Store.tables(ctx)
	if err != nil {
		return err
	}
	w.report.Left = map[string]int{}
	for _, t := range all {
		for {
			hits, err := t.hits(ctx, w.DB, w.org, func(_ column, text string) bool { return w.m.in(text) }, w.stuck)
			if err != nil {
				return err
			}
			for _, h := range hits {
				if err := w.inRow(ctx, t, h); err != nil {
					return err
				}
				w.stuck[t.name+"\x00"+strings.Join(h.keys, "\x00")] = true
			}
			if len(hits) < maxHits {
				break
			}
		}
	}
	w.stuck = map[string]bool{}
	return nil
}

// inRow erases in a row. What cannot be changed is left and counted.
func (w *sweep) inRow(ctx context.Context, t table, h hit) error {
	after, found := map[int]string{}, map[int]int{}
	for i, v := range h.values {
		if v == nil {
			continue
		}
		c := t.columns[i]
		text, n := w.m.erase(*v)
		if c.isJSON() {
			text, n = w.m.eraseJSON(*v)
		}
		if n == 0 {
			continue
		}
		if found[i] = n; !c.IsKey {
			after[i] = text
		}
	}
	for i, n := range found {
		ok := after[i] != "" || h.values[i] != nil && !t.columns[i].IsKey
		if ok && !w.dry {
			var err error
			if ok, err = w.store(ctx, t, h, erasedValue{i, after[i]}); err != nil {
				return err
			}
		}
		if !ok {
			w.report.Left[t.name+"."+t.columns[i].Name] += n
			continue
		}
		w.count(t.name, n)
	}
	return nil
}

// store stores the new value of a column of a row. It returns false if the table does not allow it.
func (w *sweep) store(ctx context.Context, t table, h hit, v erasedValue) (bool, error) {
	err := db.Tx(ctx, w.DB, func(tx pgx.Tx) error {
		if err := t.update(ctx, tx, w.org, h, v); err != nil {
			return err
		}
		return w.afterUpdate(ctx, tx, t.name, h)
	})
	if db.Constraint(err) != "" || errors.Is(err, db.ErrInvalid) || errors.Is(err, db.ErrConflict) {
		return false, nil
	}
	return err == nil, err
}

// afterUpdate brings what a table keeps of its texts up to date.
func (w *sweep) afterUpdate(ctx context.Context, tx pgx.Tx, name string, h hit) error {
	switch name {
	case "memory_files":
		return w.MemoryFiles.With(tx).Reindex(ctx, w.org, h.keys[0])
	case "memory_file_versions":
		_, err := tx.Exec(ctx, `
			UPDATE memory_file_versions SET redacted = true, sha256 = encode(sha256(convert_to(content, 'UTF8')), 'hex')
			WHERE org = $1 AND file_key = $2::text::bigint AND version = $3::text::integer`, w.org, h.keys[0], h.keys[1])
		return db.Error(err)
	}
	return nil
}

// message erases a message, its copies in forks, and the events of runs that show it.
func (w *sweep) message(ctx context.Context, id string) error {
	key, err := w.messageKey(ctx, w.org, id)
	if errors.Is(err, db.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	keys, err := db.All[int64](ctx, w.DB, `
		WITH RECURSIVE copy AS (
			SELECT conversation_key, position FROM messages WHERE org = $1 AND key = $2
			UNION
			SELECT c.key, copy.position FROM copy
			JOIN conversations c ON c.org = $1 AND c.forked_from = copy.conversation_key AND c.forked_to >= copy.position
		)
		SELECT m.key FROM copy JOIN messages m
		  ON m.org = $1 AND m.conversation_key = copy.conversation_key AND m.position = copy.position
		ORDER BY m.key`, w.org, key)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := db.Tx(ctx, w.DB, func(tx pgx.Tx) error {
			m, err := w.Recall.With(tx).EraseMessage(ctx, w.org, key)
			if err != nil {
				return err
			}
			w.count("messages", 1)
			return w.note(ctx, tx, m)
		}); err != nil {
			return err
		}
	}
	return w.runsOf(ctx, id)
}

// runsOf erases the events of runs that show a message, and the request of the run that it began.
func (w *sweep) runsOf(ctx context.Context, id string) error {
	type row struct {
		Run  int64  `db:"run_key"`
		Seq  int64  `db:"seq"`
		Item string `db:"item"`
	}
	items, err := db.All[row](ctx, w.DB, `
		SELECT run_key, seq, item::text AS item FROM run_items WHERE org = $1 AND strpos(item::text, $2) > 0
		ORDER BY run_key, seq`, w.org, id)
	if err != nil {
		return err
	}
	for _, r := range items {
		var value any
		if err := json.Unmarshal([]byte(r.Item), &value); err != nil {
			return err
		}
		item, err := json.Marshal(blank(value, ""))
		if err != nil {
			return err
		}
		if err := db.Exec(ctx, w.DB, `UPDATE run_items SET item = $4 WHERE org = $1 AND run_key = $2 AND seq = $3`, w.org,
			r.Run, r.Seq, item); err != nil {
			return err
		}
		w.count("run_items", 1)
	}
	return nil
}

// blank returns a JSON value with a mark in the place of each text that is not Loci's own word.
func blank(value any, name string) any {
	switch v := value.(type) {
	case string:
		own := []string{"message_type", "date", "created_at", "name", "stop_reason", "run_type"}
		if slices.Contains(append(own, machineWords...), name) || strings.HasSuffix(name, "id") {
			return v
		}
		return mark
	case []any:
		for i := range v {
			v[i] = blank(v[i], name)
		}
	case map[string]any:
		for key, item := range v {
			v[key] = blank(item, key)
		}
	}
	return value
}

// derived makes the summaries again that replace what was erased, and deletes the prompts that showed it.
func (w *sweep) derived(ctx context.Context) error {
	type row struct {
		Conversation int64 `db:"conversation_key"`
		Position     int   `db:"position"`
	}
	list, err := db.All[row](ctx, w.DB, `
		SELECT conversation_key, min(position) AS position FROM erased_messages
		WHERE org = $1 AND erasure_key = $2 AND NOT remade
		GROUP BY conversation_key ORDER BY conversation_key`, w.org, w.e.Key)
	if err != nil {
		return err
	}
	for _, r := range list {
		n, err := w.Compaction.Remake(ctx, w.org, r.Conversation, r.Position)
		if err != nil {
			return err
		}
		w.report.Summaries += n
		if err := w.prompts(ctx, r.Conversation, r.Position); err != nil {
			return err
		}
		if err := db.Exec(ctx, w.DB, `
			UPDATE erased_messages SET remade = true WHERE org = $1 AND erasure_key = $2 AND conversation_key = $3`,
			w.org, w.e.Key, r.Conversation); err != nil {
			return err
		}
	}
	return nil
}

// prompts deletes the stored prompts of a conversation that were handed out when it had a message, and the parts that
// no other prompt has.
func (w *sweep) prompts(ctx context.Context, conversation int64, position int) error {
	tag, err := w.DB.Exec(ctx, `
		DELETE FROM prompts p
		WHERE p.org = $1 AND p.conversation_key = $2 AND (p.last_position >= $3 OR p.last_position = 0)`,
		w.org, conversation, position)
	if err != nil {
		return db.Error(err)
	}
	w.report.Prompts += int(tag.RowsAffected())
	_, err = w.DB.Exec(ctx, `
		DELETE FROM prompt_parts part USING conversations c
		WHERE part.org = $1 AND c.org = $1 AND c.key = $2 AND part.agent_key = c.agent_key AND NOT EXISTS (
			SELECT FROM prompts p WHERE p.org = $1 AND p.agent_key = part.agent_key AND p.parts @> ARRAY[part.sha256])`,
		w.org, conversation)
	return db.Error(err)
}
