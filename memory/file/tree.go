package file

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/embed/rank"
)

// Options configure a Store.
type Options struct {
	Endpoint *endpoint.Endpoint // nil: searches rank by words alone
	Reranker *rank.Reranker     // reorders the best hits of a search; nil: no reordering

	// Redactor returns a function that removes secrets from texts to be written. It reads its settings from d. If it is
	// nil, nothing is removed.
	Redactor func(ctx context.Context, d db.DB, org db.Org) (func(text string) string, error)
}

// Store keeps memory files in Postgres.
type Store struct {
	db     db.DB
	search *rank.Search
	settle time.Duration // delay between a write and the job that embeds it
	o      Options
}

// New returns a store on d.
func New(d db.DB, o Options) *Store {
	search := rank.NewSearch(o.Endpoint, "memory_files", "memory_file_vectors", "file_key")
	search.Reranker = o.Reranker
	return &Store{d, search, endpoint.Settle, o}
}

// With returns a store that works in tx.
func (s *Store) With(tx pgx.Tx) *Store { return &Store{tx, s.search, s.settle, s.o} }

// ByMeaning reports whether searches also rank by meaning.
func (s *Store) ByMeaning() bool {
	_, ok := s.search.Endpoint.Space()
	return ok
}

const treeColumns = `t.key, t.id, t.name, t.description, t.rules, t.created_at, t.updated_at,
	CASE WHEN t.embedded_space IS NOT NULL THEN (
		SELECT json_build_object(
			'pending', count(*) FILTER (WHERE w.unembedded),
			'refused', coalesce(sum(cardinality(w.refused_chunks)), 0),
			'error', coalesce(t.embed_error, max(
				'some parts of files get no vector; they are found by their words'
			) FILTER (WHERE w.refused_chunks <> '{}')))
		FROM memory_files w WHERE w.org = $1 AND w.tree_key = t.key AND w.deleted_at IS NULL)
	END AS embedding_status`

// TreeUpdate changes the fields that are not nil.
type TreeUpdate struct {
	Name        *string
	Description *string
	Rules       *IndexRules
}

func (u TreeUpdate) check() error {
	switch {
	case u.Name != nil && (*u.Name == "" || utf8.RuneCountInString(*u.Name) > 255):
		return db.Invalid("the name of a tree must have from 1 to 255 characters")
	case u.Description != nil && utf8.RuneCountInString(*u.Description) > 1_024:
		return db.Invalid("the description of a tree may have at most 1,024 characters")
	case u.Rules != nil:
		return u.Rules.check()
	}
	return nil
}

// CreateTree creates a tree without files.
func (s *Store) CreateTree(ctx context.Context, org db.Org, name string, u TreeUpdate) (Tree, error) {
	u.Name = &name
	if err := u.check(); err != nil {
		return Tree{}, err
	}
	var embedded *int16
	if space, ok := s.search.Endpoint.Space(); ok {
		embedded = &space.ID
	}
	id, err := db.One[string](ctx, s.db, `
		INSERT INTO memory_trees (org, name, description, rules, embedded_space) VALUES ($1, $2, $3, $4, $5)
		RETURNING id`, org, db.Clean(name), u.Description, cmp.Or(u.Rules, &IndexRules{}), embedded)
	if err != nil {
		return Tree{}, err
	}
	return s.Tree(ctx, org, id)
}

// Tree returns a tree by its id.
func (s *Store) Tree(ctx context.Context, org db.Org, id string) (Tree, error) {
	t, err := db.One[Tree](ctx, s.db, `SELECT `+treeColumns+` FROM memory_trees t WHERE t.org = $1 AND t.id = $2`, org, id)
	return t, treeNotFound(err, id)
}

func treeNotFound(err error, id string) error {
	return db.OrNotFound(err, "Memory tree %s not found", id)
}

// Trees lists the trees of an organization.
func (s *Store) Trees(ctx context.Context, org db.Org, p db.Page) ([]Tree, error) {
	return db.List[Tree](ctx, s.db, p, `SELECT `+db.Named(treeColumns)+` FROM memory_trees t WHERE t.org = @org`,
		pgx.StrictNamedArgs{"org": org})
}

// UpdateTree changes a tree.
func (s *Store) UpdateTree(ctx context.Context, org db.Org, id string, u TreeUpdate) (Tree, error) {
	if err := u.check(); err != nil {
		return Tree{}, err
	}
	err := db.Exec(ctx, s.db, `
		UPDATE memory_trees
		SET name = coalesce($3, name), description = coalesce($4, description), rules = coalesce($5, rules),
		    updated_at = now()
		WHERE org = $1 AND id = $2`, org, id, u.Name, u.Description, u.Rules)
	if err != nil {
		return Tree{}, treeNotFound(err, id)
	}
	return s.Tree(ctx, org, id)
}

// DeleteTree deletes a tree with all versions of its files, and takes it from its agents.
func (s *Store) DeleteTree(ctx context.Context, org db.Org, id string) error {
	return db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		txStore := s.With(tx)
		t, err := txStore.lock(ctx, org, id)
		if err != nil {
			return err
		}
		if err := txStore.appendToAgents(ctx, org, t, event.MemoryTreeDetached, t.ID); err != nil {
			return err
		}
		if _, err := db.Delete(ctx, tx, "memory_file_versions", `r.file_key IN (
			SELECT key FROM memory_files WHERE org = $1 AND tree_key = $2)`, org, t.Key); err != nil {
			return err
		}
		return db.DeleteOne(ctx, tx, "memory_trees", `r.key = $2`, org, t.Key)
	})
}

// lock locks a tree and returns it. Until the transaction ends, no other transaction changes, attaches or detaches it.
func (s *Store) lock(ctx context.Context, org db.Org, id string) (Tree, error) {
	t, err := db.One[Tree](ctx, s.db, `
		SELECT `+treeColumns+` FROM memory_trees t WHERE t.org = $1 AND t.id = $2 FOR UPDATE`, org, id)
	return t, treeNotFound(err, id)
}

// appendToAgents appends one event per ref to the log of each agent that has the tree.
func (s *Store) appendToAgents(ctx context.Context, org db.Org, t Tree, eventType event.Type, refs ...string) error {
	agents, err := db.All[string](ctx, s.db, `
		SELECT agent_id FROM agent_memory_trees WHERE org = $1 AND tree_key = $2
		UNION
		SELECT agent_id FROM user_memory_trees WHERE org = $1 AND tree_key = $2
		ORDER BY agent_id`, org, t.Key)
	if err != nil {
		return err
	}
	var events []event.Event
	for _, agent := range agents {
		for _, ref := range slices.Compact(slices.Sorted(slices.Values(refs))) {
			events = append(events, event.Event{AgentID: agent, Type: eventType, RefID: ref})
		}
	}
	_, err = event.Append(ctx, s.db.(pgx.Tx), org, events...)
	return err
}

// Agents lists the ids of the agents that have a tree, in the order in which it was attached to them.
func (s *Store) Agents(ctx context.Context, org db.Org, id string) ([]string, error) {
	t, err := s.Tree(ctx, org, id)
	if err != nil {
		return nil, err
	}
	return db.All[string](ctx, s.db, `
		SELECT agent_id FROM agent_memory_trees WHERE org = $1 AND tree_key = $2 ORDER BY attached_at, agent_id`,
		org, t.Key)
}

// OfAgent returns the tree of an agent: if ctx works for a user who has one, the user's own. ErrNotFound if there is
// none.
func (s *Store) OfAgent(ctx context.Context, org db.Org, agentID string) (Attached, error) {
	if user := db.UserOf(ctx); user != 0 {
		if t, err := s.ofUser(ctx, org, agentID, user); !errors.Is(err, db.ErrNotFound) {
			return t, err
		}
	}
	return s.ofAll(ctx, org, agentID)
}

// ofAll returns the tree of an agent that is no user's own.
func (s *Store) ofAll(ctx context.Context, org db.Org, agentID string) (Attached, error) {
	t, err := db.One[Attached](ctx, s.db, `
		SELECT `+treeColumns+`, a.read_only FROM agent_memory_trees a
		JOIN memory_trees t ON t.org = a.org AND t.key = a.tree_key
		WHERE a.org = $1 AND t.org = $1 AND a.agent_id = $2`, org, agentID)
	return t, db.OrNotFound(err, "Agent %s has no memory files yet: its first write makes its tree, or attach one (PATCH "+
		"/v1/agents/%s/memory-trees/attach/{tree_id})", agentID, agentID)
}

// Attach gives an agent a tree, or changes whether the agent's tool may change it. ErrConflict if the agent has another
// tree.
func (s *Store) Attach(ctx context.Context, org db.Org, agentID, id string, readOnly bool) error {
	return db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		txStore := s.With(tx)
		t, err := txStore.lock(ctx, org, id)
		if err != nil {
			return err
		}
		if _, err := db.AgentKey(ctx, tx, org, agentID); err != nil {
			return err
		}
		if _, err := event.Append(ctx, tx, org, event.Event{AgentID: agentID, Type: event.MemoryTreeAttached,
			RefID: id}); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			INSERT INTO agent_memory_trees AS a (org, agent_id, tree_key, read_only) VALUES ($1, $2, $3, $4)
			ON CONFLICT (org, agent_id) DO UPDATE SET read_only = $4 WHERE a.org = $1 AND a.tree_key = $3`,
			org, agentID, t.Key, readOnly)
		if err == nil && tag.RowsAffected() == 0 {
			return db.Conflict("agent %s has another memory tree: detach that one first", agentID)
		}
		return db.Error(err)
	})
}

// Detach takes a tree from an agent. The tree stays. ErrNotFound if the agent does not have it.
func (s *Store) Detach(ctx context.Context, org db.Org, agentID, id string) error {
	return db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		t, err := s.With(tx).lock(ctx, org, id)
		if err != nil {
			return err
		}
		if _, err := event.Append(ctx, tx, org, event.Event{AgentID: agentID, Type: event.MemoryTreeDetached,
			RefID: id}); err != nil {
			return err
		}
		err = db.Exec(ctx, tx, `
			DELETE FROM agent_memory_trees WHERE org = $1 AND agent_id = $2 AND tree_key = $3`, org, agentID, t.Key)
		return db.OrNotFound(err, "Memory tree %s is not attached to agent %s", id, agentID)
	})
}

// Writable returns the tree that an agent's tool changes. It creates a tree if the agent has none. If ctx works for a
// user, it is that user's own tree, which begins as a copy of the agent's. ErrInvalid if the agent may only read its
// tree.
func (s *Store) Writable(ctx context.Context, org db.Org, agentID string) (t Attached, err error) {
	if user := db.UserOf(ctx); user != 0 {
		return s.writableOf(ctx, org, agentID, user)
	}
	t, err = s.OfAgent(ctx, org, agentID)
	if errors.Is(err, db.ErrNotFound) {
		err = db.Tx(ctx, s.db, func(tx pgx.Tx) error {
			t, err = s.With(tx).make(ctx, org, agentID)
			return err
		})
	}
	if err == nil && t.ReadOnly {
		err = db.Invalid("your memory files are read-only; nothing was changed")
	}
	return t, err
}

// make returns the tree of an agent. It creates one unless another transaction has created one.
func (s *Store) make(ctx context.Context, org db.Org, agentID string) (Attached, error) {
	name, err := db.One[string](ctx, s.db, `
		SELECT name FROM agents WHERE org = $1 AND id = $2 FOR NO KEY UPDATE`, org, agentID)
	if err != nil {
		return Attached{}, db.OrNotFound(err, "Agent with ID %s not found", agentID)
	}
	if t, err := s.OfAgent(ctx, org, agentID); !errors.Is(err, db.ErrNotFound) {
		return t, err
	}
	t, err := s.CreateTree(ctx, org, db.Beginning(name, 200)+"'s memory files", TreeUpdate{})
	if err != nil {
		return Attached{}, err
	}
	return Attached{Tree: t}, s.Attach(ctx, org, agentID, t.ID, false)
}
