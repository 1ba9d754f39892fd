package archival

import (
	"context"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
)

const archiveColumns = `c.key, c.id, c.name, c.description, c.metadata, c.embedding, c.created_at, c.updated_at,
	CASE WHEN c.embedded_space IS NOT NULL THEN json_build_object(
		'pending', (SELECT count(*) FROM unembedded_passages u WHERE u.archive_key = c.key AND u.refused IS NULL),
		'refused', (SELECT count(*) FROM unembedded_passages u WHERE u.archive_key = c.key AND u.refused IS NOT NULL),
		'error', coalesce(c.embed_error, (
			SELECT format('the embeddings endpoint refuses some passages (%s); they are found by their words', u.refused)
			FROM unembedded_passages u WHERE u.archive_key = c.key AND u.refused IS NOT NULL ORDER BY u.passage_key LIMIT 1)))
	END AS embedding_status`

// CreateArchive makes an archive.
func (s *Store) CreateArchive(ctx context.Context, org db.Org, n NewArchive) (Archive, error) {
	if err := checkName(n.Name); err != nil {
		return Archive{}, err
	}
	var embedded *int16
	if space, ok := s.dense.Space(); ok {
		embedded = &space.ID
	}
	return db.One[Archive](ctx, s.db, `
		INSERT INTO archives AS c (org, name, description, metadata, embedding, embedded_space)
		VALUES (@org, @name, @description, @metadata, @embedding, @space)
		RETURNING `+archiveColumns,
		pgx.StrictNamedArgs{"org": org, "name": db.Clean(n.Name), "description": n.Description, "metadata": n.Metadata, "embedding": n.Embedding,
			"space": embedded})
}

func checkName(name string) error {
	if n := utf8.RuneCountInString(name); n < 1 || n > 255 {
		return db.Invalid("an archive's name has %d characters; it must have from 1 to 255", n)
	}
	return nil
}

// Archive returns an archive by its id.
func (s *Store) Archive(ctx context.Context, org db.Org, id string) (Archive, error) {
	c, err := db.One[Archive](ctx, s.db, `
		SELECT `+archiveColumns+` FROM archives c WHERE c.org = $1 AND c.id = $2 AND c.deleted_at IS NULL`, org, id)
	return c, archiveError(err, id)
}

func archiveError(err error, id string) error {
	if isNotFound(err) {
		return db.NotFound("Archive with ID %s not found", id)
	}
	return err
}

// Archives lists archives: those of an agent, or all; those of a name, or of any. ErrNotFound if the agent is not there.
func (s *Store) Archives(ctx context.Context, org db.Org, agentID, name string, p db.Page) ([]Archive, error) {
	if agentID != "" {
		if err := s.knows(ctx, org, agentID); err != nil {
			return nil, err
		}
	}
	return db.List[Archive](ctx, s.db, p, `
		SELECT `+archiveColumns+` FROM archives c
		WHERE c.org = @org AND c.deleted_at IS NULL AND @name IN ('', c.name)
		  AND (@agent = '' OR EXISTS (SELECT FROM agent_archives a WHERE a.archive_key = c.key AND a.agent_id = @agent))`,
		db.ByCreation, pgx.StrictNamedArgs{"org": org, "agent": agentID, "name": name})
}

// UpdateArchive changes an archive.
func (s *Store) UpdateArchive(ctx context.Context, org db.Org, id string, u ArchiveUpdate) (Archive, error) {
	if u.Name != nil {
		if err := checkName(*u.Name); err != nil {
			return Archive{}, err
		}
	}
	c, err := db.One[Archive](ctx, s.db, `
		UPDATE archives c
		SET name = coalesce(@name, name), description = coalesce(@description, description), metadata = coalesce(@metadata, metadata),
		    updated_at = now()
		WHERE org = @org AND id = @id AND deleted_at IS NULL
		RETURNING `+archiveColumns,
		pgx.StrictNamedArgs{"org": org, "id": id, "name": u.Name, "description": u.Description, "metadata": u.Metadata})
	return c, archiveError(err, id)
}

// DeleteArchive detaches an archive from its agents and hides it with its passages, which Clear deletes.
func (s *Store) DeleteArchive(ctx context.Context, org db.Org, id string) error {
	return db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		in := s.With(tx)
		key, err := in.lock(ctx, org, id)
		if err != nil {
			return err
		}
		if err := in.tell(ctx, org, key, event.ArchiveDetached, id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM agent_archives WHERE org = $1 AND archive_key = $2`, org, key); err != nil {
			return err
		}
		return db.Exec(ctx, tx, `UPDATE archives SET deleted_at = now() WHERE org = $1 AND key = $2`, org, key)
	})
}

// lock locks an archive against deletion and being attached or detached; it returns its key.
func (s *Store) lock(ctx context.Context, org db.Org, id string) (int64, error) {
	key, err := db.One[int64](ctx, s.db, `
		SELECT key FROM archives WHERE org = $1 AND id = $2 AND deleted_at IS NULL FOR UPDATE`, org, id)
	return key, archiveError(err, id)
}

// hold holds an archive against deletion, and against being taken over by another space, while passages are written; it returns its key. Who
// writes to it too is not held up.
func (s *Store) hold(ctx context.Context, org db.Org, id string) (int64, error) {
	key, err := db.One[int64](ctx, s.db, `
		SELECT key FROM archives WHERE org = $1 AND id = $2 AND deleted_at IS NULL FOR KEY SHARE`, org, id)
	return key, archiveError(err, id)
}

// tell appends an event to the log of each agent that an archive is attached to.
func (s *Store) tell(ctx context.Context, org db.Org, archive int64, what event.Type, ref string) error {
	agents, err := db.All[string](ctx, s.db, `
		SELECT agent_id FROM agent_archives WHERE org = $1 AND archive_key = $2 ORDER BY agent_id`, org, archive)
	if err != nil {
		return err
	}
	events := make([]event.Event, len(agents))
	for i, agent := range agents {
		events[i] = event.Event{AgentID: agent, Type: what, RefID: ref}
	}
	_, err = event.Append(ctx, s.db.(pgx.Tx), org, events...)
	return err
}

// Attach attaches an archive to an agent; the first one is its default. Attached already, it stays as it is. ErrNotFound if either is
// not there.
func (s *Store) Attach(ctx context.Context, org db.Org, agentID, archiveID string) error {
	return db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		in := s.With(tx)
		if err := in.knows(ctx, org, agentID); err != nil {
			return err
		}
		key, err := in.lock(ctx, org, archiveID)
		if err != nil {
			return err
		}
		return in.attach(ctx, org, agentID, archiveID, key)
	})
}

func (s *Store) isAttached(ctx context.Context, org db.Org, agentID string, key int64) (bool, error) {
	return db.One[bool](ctx, s.db, `
		SELECT EXISTS (SELECT FROM agent_archives WHERE org = $1 AND agent_id = $2 AND archive_key = $3)`, org, agentID, key)
}

func (s *Store) attach(ctx context.Context, org db.Org, agentID, archiveID string, key int64) error {
	if has, err := s.isAttached(ctx, org, agentID, key); err != nil || has {
		return err
	}
	// The event is the agent's lock: of two archives attached at once, one is the first.
	if _, err := event.Append(ctx, s.db.(pgx.Tx), org, event.Event{AgentID: agentID, Type: event.ArchiveAttached, RefID: archiveID}); err != nil {
		return err
	}
	return db.Exec(ctx, s.db, `
		INSERT INTO agent_archives (agent_id, archive_key, org, is_default)
		SELECT $2, $3, $1, NOT EXISTS (SELECT FROM agent_archives WHERE agent_id = $2 AND is_default)`, org, agentID, key)
}

// Detach detaches an archive from an agent; its oldest other one becomes the default. One that is not attached is left alone.
func (s *Store) Detach(ctx context.Context, org db.Org, agentID, archiveID string) error {
	return db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		in := s.With(tx)
		if err := in.knows(ctx, org, agentID); err != nil {
			return err
		}
		key, err := in.lock(ctx, org, archiveID)
		if err != nil {
			return err
		}
		if has, err := in.isAttached(ctx, org, agentID, key); err != nil || !has {
			return err
		}
		if _, err := event.Append(ctx, tx, org, event.Event{AgentID: agentID, Type: event.ArchiveDetached, RefID: archiveID}); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM agent_archives WHERE org = $1 AND agent_id = $2 AND archive_key = $3`, org, agentID, key); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `
			UPDATE agent_archives SET is_default = true
			WHERE org = $1 AND agent_id = $2 AND NOT EXISTS (SELECT FROM agent_archives WHERE agent_id = $2 AND is_default)
			  AND archive_key = (SELECT archive_key FROM agent_archives WHERE agent_id = $2 ORDER BY attached_at, archive_key LIMIT 1)`, org, agentID)
		return err
	})
}

// ArchiveAgents lists the ids of the agents that an archive is attached to, the oldest attachment first.
func (s *Store) ArchiveAgents(ctx context.Context, org db.Org, archiveID string) ([]string, error) {
	if _, err := s.Archive(ctx, org, archiveID); err != nil {
		return nil, err
	}
	return db.All[string](ctx, s.db, `
		SELECT a.agent_id FROM agent_archives a JOIN archives c ON c.key = a.archive_key
		WHERE a.org = $1 AND c.id = $2
		ORDER BY a.attached_at, a.agent_id`, org, archiveID)
}

// defaultArchive is the archive that an agent inserts into; it is made where there is none.
func (s *Store) defaultArchive(ctx context.Context, org db.Org, agentID string) (Archive, error) {
	find := func() (Archive, error) {
		return db.One[Archive](ctx, s.db, `
			SELECT `+archiveColumns+` FROM archives c JOIN agent_archives a ON a.archive_key = c.key
			WHERE c.org = $1 AND a.agent_id = $2 AND a.is_default AND c.deleted_at IS NULL`, org, agentID)
	}
	found, err := find()
	if !isNotFound(err) {
		return found, err
	}
	err = db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		in := s.With(tx)
		name, err := db.One[string](ctx, tx, `SELECT name FROM agents WHERE org = $1 AND id = $2 FOR NO KEY UPDATE`, org, agentID)
		if isNotFound(err) {
			return db.NotFound("Agent with ID %s not found", agentID)
		}
		if err != nil {
			return err
		}
		if has, err := in.hasDefault(ctx, agentID); err != nil || has {
			return err // made by another request meanwhile
		}
		description := "Default archive created automatically"
		c, err := in.CreateArchive(ctx, org, NewArchive{Name: name + "'s Archive", Description: &description})
		if err != nil {
			return err
		}
		return in.attach(ctx, org, agentID, c.ID, c.Key)
	})
	if err != nil {
		return Archive{}, err
	}
	return find()
}

func (s *Store) hasDefault(ctx context.Context, agentID string) (bool, error) {
	return db.One[bool](ctx, s.db, `SELECT EXISTS (SELECT FROM agent_archives WHERE agent_id = $1 AND is_default)`, agentID)
}
