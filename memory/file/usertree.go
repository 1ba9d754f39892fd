package file

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
)

// ofUser returns the tree that an agent keeps for a user. ErrNotFound if there is none.
func (s *Store) ofUser(ctx context.Context, org db.Org, agentID string, user int64) (Attached, error) {
	return db.One[Attached](ctx, s.db, `
		SELECT `+treeColumns+`, false AS read_only FROM user_memory_trees x
		JOIN memory_trees t ON t.org = x.org AND t.key = x.tree_key
		WHERE x.org = $1 AND t.org = $1 AND x.agent_id = $2 AND x.user_key = $3`, org, agentID, user)
}

// writableOf returns the tree that an agent keeps for a user. If there is none, it makes one with copies of the files
// of the agent's tree, so that what is written in a conversation with the user is the user's alone.
func (s *Store) writableOf(ctx context.Context, org db.Org, agentID string, user int64) (Attached, error) {
	t, err := s.ofUser(ctx, org, agentID, user)
	if !errors.Is(err, db.ErrNotFound) {
		return t, err
	}
	template, err := s.ofAll(ctx, org, agentID)
	if err == nil && template.ReadOnly {
		return t, db.Invalid("your memory files are read-only; nothing was changed")
	}
	if err != nil && !errors.Is(err, db.ErrNotFound) {
		return t, err
	}
	err = db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		t, err = s.With(tx).makeOf(ctx, org, agentID, user, template.Tree)
		return err
	})
	return t, err
}

// makeOf returns the tree that an agent keeps for a user. It creates one unless another transaction has created one.
func (s *Store) makeOf(ctx context.Context, org db.Org, agentID string, user int64, template Tree) (Attached, error) {
	name, err := db.One[string](ctx, s.db, `
		SELECT name FROM agents WHERE org = $1 AND id = $2 FOR NO KEY UPDATE`, org, agentID)
	if err != nil {
		return Attached{}, db.OrNotFound(err, "Agent with ID %s not found", agentID)
	}
	if t, err := s.ofUser(ctx, org, agentID, user); !errors.Is(err, db.ErrNotFound) {
		return t, err
	}
	t, err := s.CreateTree(ctx, org, db.Beginning(name, 200)+"'s memory files of a user",
		TreeUpdate{Rules: &template.Rules})
	if err != nil {
		return Attached{}, err
	}
	if _, err := event.Append(ctx, s.db.(pgx.Tx), org, event.Event{AgentID: agentID, Type: event.MemoryTreeAttached,
		RefID: t.ID}); err != nil {
		return Attached{}, err
	}
	err = db.Exec(ctx, s.db, `
		INSERT INTO user_memory_trees (org, agent_id, user_key, tree_key) VALUES ($1, $2, $3, $4)`, org, agentID, user, t.Key)
	if err != nil {
		return Attached{}, err
	}
	return Attached{Tree: t}, s.copyFiles(ctx, org, template, t)
}

// copyFiles copies the files of a tree into a new one, each as its first version.
func (s *Store) copyFiles(ctx context.Context, org db.Org, from, to Tree) error {
	_, err := s.db.Exec(ctx, `
		INSERT INTO memory_files (org, tree_key, path, folded, content, sha256, lex, terms, lex_version, valid_from,
		                          valid_until)
		SELECT org, $3, path, folded, content, sha256, lex, terms, lex_version, valid_from, valid_until FROM memory_files
		WHERE org = $1 AND tree_key = $2 AND deleted_at IS NULL
		ORDER BY key`, org, from.Key, to.Key)
	if err != nil {
		return db.Error(err)
	}
	author := db.Provenance{}.Or(ctx)
	return db.Insert(ctx, s.db, "memory_file_versions", `
		INSERT INTO memory_file_versions (org, file_key, version, change, path, content, sha256, author, valid_from,
		                                  valid_until)
		SELECT org, key, 1, 'created', path, content, sha256, $3, valid_from, valid_until FROM memory_files
		WHERE org = $1 AND tree_key = $2`, org, to.Key, author)
}

// DeleteOfUser deletes the trees that agents keep for a user. It returns how many there were.
func (s *Store) DeleteOfUser(ctx context.Context, org db.Org, user int64) (deleted int, err error) {
	trees, err := db.All[string](ctx, s.db, `
		SELECT t.id FROM user_memory_trees x JOIN memory_trees t ON t.org = x.org AND t.key = x.tree_key
		WHERE x.org = $1 AND t.org = $1 AND x.user_key = $2
		ORDER BY t.key`, org, user)
	for _, id := range trees {
		if err := s.DeleteTree(ctx, org, id); err != nil {
			return deleted, err
		}
		deleted++
	}
	return deleted, err
}
