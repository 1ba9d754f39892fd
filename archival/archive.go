package archival

import (
	"context"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
)

const archiveColumns = `c.key, c.id, c.name, c.description, c.metadata, c.embedding, c.created_at, c.updated_at,
	c.made_by, c.changed_by, (SELECT i.id FROM identities i WHERE i.org = $1 AND i.key = c.user_key) AS user_id,
	CASE WHEN c.embedded_space IS NOT NULL THEN json_build_object(
		'pending', (
			SELECT count(*) FROM unembedded_passages u
			WHERE u.org = $1 AND u.archive_key = c.key AND u.refused IS NULL),
		'refused', (
			SELECT count(*) FROM unembedded_passages u
			WHERE u.org = $1 AND u.archive_key = c.key AND u.refused IS NOT NULL),
		'error', coalesce(c.embed_error, (
			SELECT format('some passages get no vector (%s); they are found by their words', u.refused)
			FROM unembedded_passages u WHERE u.org = $1 AND u.archive_key = c.key AND u.refused IS NOT NULL
			ORDER BY u.passage_key LIMIT 1)))
	END AS embedding_status`

// CreateArchive creates an archive. ErrInvalid if the name is empty or longer than 255 characters.
func (s *Store) CreateArchive(ctx context.Context, org db.Org, n NewArchive) (Archive, error) {
	if err := checkName(n.Name); err != nil {
		return Archive{}, err
	}
	var embedded *int16
	if space, ok := s.endpoint.Space(); ok {
		embedded = &space.ID
	}
	id, err := db.One[string](ctx, s.db, `
		INSERT INTO archives (org, name, description, metadata, embedding, embedded_space, made_by, user_key)
		VALUES (@org, @name, @description, @metadata, @embedding, @space, @by, nullif(@user, 0))
		RETURNING id`,
		pgx.StrictNamedArgs{"org": org, "name": db.Clean(n.Name), "description": n.Description, "metadata": n.Metadata,
			"embedding": n.Embedding, "space": embedded, "by": db.ProvenanceOf(ctx), "user": n.User})
	if err != nil {
		return Archive{}, err
	}
	return s.Archive(ctx, org, id)
}

func checkName(name string) error {
	if n := utf8.RuneCountInString(name); n < 1 || n > 255 {
		return db.Invalid("an archive's name has %d characters; it must have from 1 to 255", n)
	}
	return db.CheckUTF8("the archive's name", name)
}

// Archive returns an archive by its id.
func (s *Store) Archive(ctx context.Context, org db.Org, id string) (Archive, error) {
	c, err := db.One[Archive](ctx, s.db, `
		SELECT `+archiveColumns+` FROM archives c WHERE c.org = $1 AND c.id = $2 AND c.deleted_at IS NULL`, org, id)
	return c, orNotFound(err, "Archive", id)
}

// Archives lists the archives within a reach that have the name. An empty name does not narrow the list. ErrNotFound if
// the agent does not exist.
func (s *Store) Archives(ctx context.Context, org db.Org, r Reach, name string, p db.Page) ([]Archive, error) {
	if r.AgentID != "" {
		if _, err := db.AgentKey(ctx, s.db, org, r.AgentID); err != nil {
			return nil, err
		}
	}
	args := pgx.StrictNamedArgs{"org": org, "name": name}
	return db.List[Archive](ctx, s.db, p, `
		SELECT `+db.Named(archiveColumns)+` FROM archives c
		WHERE c.org = @org AND c.deleted_at IS NULL AND @name IN ('', c.name) AND `+r.where(args), args)
}

// UpdateArchive changes an archive. ErrNotFound if it does not exist.
func (s *Store) UpdateArchive(ctx context.Context, org db.Org, id string, u ArchiveUpdate) (Archive, error) {
	if u.Name != nil {
		if err := checkName(*u.Name); err != nil {
			return Archive{}, err
		}
	}
	err := db.Exec(ctx, s.db, `
		UPDATE archives
		SET name = coalesce(@name, name), description = coalesce(@description, description),
		    metadata = coalesce(@metadata, metadata),
		    updated_at = now(), changed_by = @by
		WHERE org = @org AND id = @id AND deleted_at IS NULL`,
		pgx.StrictNamedArgs{"org": org, "id": id, "name": u.Name, "description": u.Description, "metadata": u.Metadata,
			"by": db.ProvenanceOf(ctx)})
	if err != nil {
		return Archive{}, orNotFound(err, "Archive", id)
	}
	return s.Archive(ctx, org, id)
}

// DeleteArchive detaches an archive from its agents and hides it and its passages. Clear deletes their rows later.
// ErrNotFound if it does not exist.
func (s *Store) DeleteArchive(ctx context.Context, org db.Org, id string) error {
	return db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		txStore := s.With(tx)
		key, err := txStore.lock(ctx, org, id, "UPDATE")
		if err != nil {
			return err
		}
		if err := txStore.appendEvents(ctx, org, key, event.ArchiveDetached, id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM agent_archives WHERE org = $1 AND archive_key = $2`, org, key); err != nil {
			return err
		}
		return db.Exec(ctx, tx, `
			WITH gone AS (
				UPDATE archives SET deleted_at = now(), user_key = NULL WHERE org = $1 AND key = $2 RETURNING id, created_at, key
			)
			INSERT INTO deleted_places (id, org, created_at, key) SELECT id, $1, created_at, key FROM gone
			ON CONFLICT (org, id) DO NOTHING`, org, key)
	})
}

// lock locks an archive and returns its key. rowLock is one of:
//   - "UPDATE", which excludes every other lock
//   - "KEY SHARE", which excludes deletion and a change of the embedding space, but lets other requests write passages
//   - superseding, which also excludes itself
func (s *Store) lock(ctx context.Context, org db.Org, id, rowLock string) (int64, error) {
	key, err := db.One[int64](ctx, s.db, `
		SELECT key FROM archives WHERE org = $1 AND id = $2 AND deleted_at IS NULL FOR `+rowLock, org, id)
	return key, orNotFound(err, "Archive", id)
}

// appendEvents appends an event to the log of each agent that an archive is attached to.
func (s *Store) appendEvents(ctx context.Context, org db.Org, archive int64, eventType event.Type, ref string) error {
	agents, err := db.All[string](ctx, s.db, `
		SELECT agent_id FROM agent_archives WHERE org = $1 AND archive_key = $2 ORDER BY agent_id`, org, archive)
	if err != nil {
		return err
	}
	events := make([]event.Event, len(agents))
	for i, agent := range agents {
		events[i] = event.Event{AgentID: agent, Type: eventType, RefID: ref}
	}
	_, err = event.Append(ctx, s.db.(pgx.Tx), org, events...)
	return err
}
