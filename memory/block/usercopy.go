package block

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// own returns the block that an agent's tool changes: for a user, the user's copy of an agent's block, which it makes
// if there is none. So what an agent writes in the conversation with a user, only that user reads.
func (s *Store) own(ctx context.Context, org db.Org, agentID string, b Block) (Block, error) {
	user := db.UserOf(ctx)
	if user == 0 || b.TemplateKey != nil {
		return b, nil
	}
	label := b.Label
	err := db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		txStore := s.With(tx)
		if _, err := txStore.lock(ctx, org, b.ID); err != nil { // only one request makes the copy
			return err
		}
		existing, err := db.All[Block](ctx, tx, `
			SELECT `+columns+` FROM blocks b WHERE b.org = $1 AND b.template_key = $2 AND b.user_key = $3`, org, b.Key, user)
		if err != nil {
			return err
		}
		if len(existing) > 0 {
			b = existing[0]
			return nil
		}
		b, err = db.One[Block](ctx, tx, `
			INSERT INTO blocks AS b (org, label, description, value, limit_chars, read_only, hidden, tags, metadata,
			                         template_key, user_key)
			SELECT org, label, description, value, limit_chars, read_only, hidden, tags, metadata, key, $3
			FROM blocks WHERE org = $1 AND key = $2
			RETURNING `+columns, org, b.Key, user)
		if err != nil {
			return err
		}
		return txStore.record(ctx, org, agentID, b)
	})
	b.Label = label
	return b, err
}

// DeleteOfUser deletes a user's copies of blocks, with their versions. It returns how many copies there were.
func (s *Store) DeleteOfUser(ctx context.Context, org db.Org, user int64) (blocks int, err error) {
	_, err = db.Delete(ctx, s.DB, "block_versions", `r.block_key IN (
		SELECT u.key FROM blocks u WHERE u.org = $1 AND u.user_key = $2)`, org, user)
	if err == nil {
		blocks, err = db.Delete(ctx, s.DB, "blocks", `r.user_key = $2`, org, user)
	}
	return blocks, err
}

// forAll returns ErrInvalid if ctx works for a user: the change of what would be seen by all users of the agent.
func forAll(ctx context.Context, what string) error {
	if db.UserOf(ctx) == 0 {
		return nil
	}
	return db.Invalid("Blocks are not %s in a conversation with one user, because the other users would see it; nothing "+
		"was changed. Edit a block that you have, or keep it in archival memory or a memory file.", what)
}
