package archival

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
)

// attachment is an archive and an agent, which its transaction has locked for attaching or detaching.
type attachment struct {
	org                db.Org
	agentID, archiveID string
	archive            int64 // the archive's key
}

// Attach attaches an archive to an agent. The agent's first archive becomes its default; attaching it again changes
// nothing. ErrNotFound if either does not exist.
func (s *Store) Attach(ctx context.Context, org db.Org, agentID, archiveID string) error {
	return s.lockAndSet(ctx, attachment{org: org, agentID: agentID, archiveID: archiveID}, true)
}

// Detach detaches an archive from an agent, whose oldest other archive becomes the default. It ignores an archive that
// is not attached. ErrNotFound if either does not exist.
func (s *Store) Detach(ctx context.Context, org db.Org, agentID, archiveID string) error {
	return s.lockAndSet(ctx, attachment{org: org, agentID: agentID, archiveID: archiveID}, false)
}

func (s *Store) lockAndSet(ctx context.Context, a attachment, attached bool) error {
	return db.Tx(ctx, s.db, func(tx pgx.Tx) (err error) {
		in := s.With(tx)
		if err := in.checkAgent(ctx, a.org, a.agentID); err != nil {
			return err
		}
		if a.archive, err = in.lock(ctx, a.org, a.archiveID, "UPDATE"); err != nil {
			return err
		}
		return in.setAttached(ctx, a, attached)
	})
}

// setAttached attaches the archive, or detaches it, in the transaction that holds its lock.
func (s *Store) setAttached(ctx context.Context, a attachment, attached bool) error {
	is, err := db.One[bool](ctx, s.db, `
		SELECT EXISTS (SELECT FROM agent_archives WHERE org = $1 AND agent_id = $2 AND archive_key = $3)`,
		a.org, a.agentID, a.archive)
	if err != nil || is == attached {
		return err
	}
	change := event.Event{AgentID: a.agentID, Type: event.ArchiveDetached, RefID: a.archiveID}
	if attached {
		change.Type = event.ArchiveAttached
	}
	// The event is the agent's lock: of two archives attached at once, one is the first.
	if _, err := event.Append(ctx, s.db.(pgx.Tx), a.org, change); err != nil {
		return err
	}
	if attached {
		return db.Exec(ctx, s.db, `
			INSERT INTO agent_archives (agent_id, archive_key, org, is_default)
			SELECT $2, $3, $1, NOT EXISTS (SELECT FROM agent_archives WHERE org = $1 AND agent_id = $2 AND is_default)`,
			a.org, a.agentID, a.archive)
	}
	if err := db.Exec(ctx, s.db, `
		DELETE FROM agent_archives WHERE org = $1 AND agent_id = $2 AND archive_key = $3`,
		a.org, a.agentID, a.archive); err != nil {
		return err
	}
	_, err = s.db.Exec(ctx, `
		UPDATE agent_archives SET is_default = true
		WHERE org = $1 AND agent_id = $2
		  AND NOT EXISTS (SELECT FROM agent_archives WHERE org = $1 AND agent_id = $2 AND is_default)
		  AND archive_key = (
			SELECT archive_key FROM agent_archives WHERE org = $1 AND agent_id = $2 ORDER BY attached_at, archive_key LIMIT 1)`,
		a.org, a.agentID)
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

// defaultArchive returns the archive that an agent inserts into, and creates it where the agent has none.
func (s *Store) defaultArchive(ctx context.Context, org db.Org, agentID string) (Archive, error) {
	found, err := s.findDefault(ctx, org, agentID)
	if !isNotFound(err) {
		return found, err
	}
	err = db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		in := s.With(tx)
		name, err := db.One[string](ctx, tx, `
			SELECT name FROM agents WHERE org = $1 AND id = $2 FOR NO KEY UPDATE`, org, agentID)
		if err != nil {
			return missing(err, "Agent", agentID)
		}
		// Another request may have created it meanwhile.
		if found, err = in.findDefault(ctx, org, agentID); !isNotFound(err) {
			return err
		}
		found, err = in.CreateArchive(ctx, org, NewArchive{Name: name + "'s Archive",
			Description: new("Default archive created automatically")})
		if err != nil {
			return err
		}
		return in.setAttached(ctx, attachment{org, agentID, found.ID, found.Key}, true)
	})
	return found, err
}

func (s *Store) findDefault(ctx context.Context, org db.Org, agentID string) (Archive, error) {
	return db.One[Archive](ctx, s.db, `
		SELECT `+archiveColumns+` FROM archives c JOIN agent_archives a ON a.archive_key = c.key
		WHERE c.org = $1 AND a.org = $1 AND a.agent_id = $2 AND a.is_default AND c.deleted_at IS NULL`, org, agentID)
}
