package archival

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
)

// Attach attaches an archive to an agent. An agent's first archive becomes its default. Attaching an archive twice
// changes nothing. ErrNotFound if the archive or the agent does not exist.
func (s *Store) Attach(ctx context.Context, org db.Org, agentID, archiveID string) error {
	return s.lockAndSet(ctx, org, agentID, archiveID, true)
}

// Detach detaches an archive from an agent. If it was the default, the agent's oldest other archive becomes the
// default. An archive that is not attached is ignored. ErrNotFound if the archive or the agent does not exist.
func (s *Store) Detach(ctx context.Context, org db.Org, agentID, archiveID string) error {
	return s.lockAndSet(ctx, org, agentID, archiveID, false)
}

func (s *Store) lockAndSet(ctx context.Context, org db.Org, agentID, archiveID string, attached bool) error {
	return db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		txStore := s.With(tx)
		if _, err := db.AgentKey(ctx, tx, org, agentID); err != nil {
			return err
		}
		key, err := txStore.lock(ctx, org, archiveID, "UPDATE")
		if err != nil {
			return err
		}
		return txStore.setAttached(ctx, org, agentID, Archive{Key: key, ID: archiveID}, attached)
	})
}

// setAttached attaches or detaches an archive. The caller's transaction holds the archive's lock.
func (s *Store) setAttached(ctx context.Context, org db.Org, agentID string, c Archive, attached bool) error {
	current, err := db.One[bool](ctx, s.db, `
		SELECT EXISTS (SELECT FROM agent_archives WHERE org = $1 AND agent_id = $2 AND archive_key = $3)`,
		org, agentID, c.Key)
	if err != nil || current == attached {
		return err
	}
	change := event.Event{AgentID: agentID, Type: event.ArchiveDetached, RefID: c.ID}
	if attached {
		change.Type = event.ArchiveAttached
	}
	// Appending the event locks the agent, so only one of two archives that are attached at once becomes the default.
	if _, err := event.Append(ctx, s.db.(pgx.Tx), org, change); err != nil {
		return err
	}
	if attached {
		return db.Exec(ctx, s.db, `
			INSERT INTO agent_archives (agent_id, archive_key, org, is_default, user_key)
			SELECT $2, key, $1, user_key IS NULL AND NOT EXISTS (
				SELECT FROM agent_archives WHERE org = $1 AND agent_id = $2 AND is_default), user_key
			FROM archives WHERE org = $1 AND key = $3`, org, agentID, c.Key)
	}
	if err := db.Exec(ctx, s.db, `
		DELETE FROM agent_archives WHERE org = $1 AND agent_id = $2 AND archive_key = $3`, org, agentID, c.Key); err != nil {
		return err
	}
	_, err = s.db.Exec(ctx, `
		UPDATE agent_archives SET is_default = true
		WHERE org = $1 AND agent_id = $2
		  AND NOT EXISTS (SELECT FROM agent_archives WHERE org = $1 AND agent_id = $2 AND is_default)
		  AND archive_key = (
			SELECT archive_key FROM agent_archives WHERE org = $1 AND agent_id = $2 AND user_key IS NULL
			ORDER BY attached_at, archive_key LIMIT 1)`,
		org, agentID)
	return err
}

// ArchiveAgents lists the ids of the agents that an archive is attached to, the oldest attachment first. ErrNotFound if
// the archive does not exist.
func (s *Store) ArchiveAgents(ctx context.Context, org db.Org, archiveID string) ([]string, error) {
	if _, err := s.Archive(ctx, org, archiveID); err != nil {
		return nil, err
	}
	return db.All[string](ctx, s.db, `
		SELECT a.agent_id FROM agent_archives a JOIN archives c ON c.org = a.org AND c.key = a.archive_key
		WHERE a.org = $1 AND c.id = $2
		ORDER BY a.attached_at, a.agent_id`, org, archiveID)
}

// defaultArchive returns the archive into which an agent inserts for the user of a reach. It creates one for an agent
// that has none.
func (s *Store) defaultArchive(ctx context.Context, org db.Org, r Reach) (Archive, error) {
	found, err := s.findDefault(ctx, org, r)
	if !errors.Is(err, db.ErrNotFound) {
		return found, err
	}
	err = db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		txStore := s.With(tx)
		name, err := db.One[string](ctx, tx, `
			SELECT name FROM agents WHERE org = $1 AND id = $2 FOR NO KEY UPDATE`, org, r.AgentID)
		if err != nil {
			return orNotFound(err, "Agent", r.AgentID)
		}
		// Another request may have created it before this one locked the agent.
		if found, err = txStore.findDefault(ctx, org, r); !errors.Is(err, db.ErrNotFound) {
			return err
		}
		fresh := NewArchive{Name: name + "'s Archive", Description: new("Default archive created automatically"),
			User: r.Users.User()}
		if fresh.User != 0 {
			fresh.Description = new("What the agent keeps of a user, created automatically")
		}
		found, err = txStore.CreateArchive(ctx, org, fresh)
		if err != nil {
			return err
		}
		return txStore.setAttached(ctx, org, r.AgentID, found, true)
	})
	return found, err
}

func (s *Store) findDefault(ctx context.Context, org db.Org, r Reach) (Archive, error) {
	which, args := `a.is_default`, []any{org, r.AgentID}
	if r.Users.User() != 0 {
		which, args = `a.user_key = $3`, append(args, r.Users.User())
	}
	return db.One[Archive](ctx, s.db, `
		SELECT `+archiveColumns+` FROM archives c JOIN agent_archives a ON a.org = c.org AND a.archive_key = c.key
		WHERE c.org = $1 AND a.org = $1 AND a.agent_id = $2 AND `+which+` AND c.deleted_at IS NULL
		ORDER BY a.attached_at, c.key LIMIT 1`, args...)
}
