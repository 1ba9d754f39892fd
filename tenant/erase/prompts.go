package erase

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/loci-memory/loci/db"
)

// promptParts deletes the stored prompts that contain a text to erase.
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
			n := w.m.inPart(string(bytes.ToValidUTF8(r.Bytes, []byte{' '})))
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

// inPart counts the occurrences in a part of a prompt, which is a text or Loci's JSON.
func (m *matcher) inPart(part string) int {
	if !json.Valid([]byte(part)) {
		return len(m.find(part))
	}
	return m.eraseJSON(part, ownNames).n
}

// prompts deletes the stored prompts of a conversation that may contain the message at position, and the parts that no
// other prompt uses.
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
