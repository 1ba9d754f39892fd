package files

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
)

// Attach gives an agent a folder: its files can be opened, searched and listed. The oldest files with text are opened at once while
// there is room; what the agent has open stays. Attaching twice changes nothing.
func (s *Store) Attach(ctx context.Context, org db.Org, agentID, folderID string, l Limits) error {
	return db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		in := s.With(tx)
		folder, err := in.Folder(ctx, org, folderID)
		if err != nil {
			return err
		}
		if err := in.lockFolder(ctx, org, folder.Key, "NO KEY UPDATE"); err != nil {
			return err
		}
		if err := in.lock(ctx, org, agentID); err != nil { // before the new row takes hold of the agent's
			return err
		}
		tag, err := tx.Exec(ctx, `
			INSERT INTO agent_folders (agent_id, folder_key, org)
			SELECT id, $3, org FROM agents WHERE id = $2 AND org = $1
			ON CONFLICT DO NOTHING`, org, agentID, folder.Key)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return in.mustHave(ctx, org, agentID)
		}
		if _, err := event.Append(ctx, tx, org, event.Event{AgentID: agentID, Type: event.FolderAttached, RefID: folder.ID}); err != nil {
			return err
		}
		return in.openFirst(ctx, org, agentID, folder, l)
	})
}

// lockFolder keeps attachments to a folder, which take it for themselves, and new texts in it, which share it, from missing each other:
// whoever comes second sees the first. It is taken before any agent's lock.
func (s *Store) lockFolder(ctx context.Context, org db.Org, key int64, mode string) error {
	_, err := db.One[int64](ctx, s.db, `SELECT key FROM folders WHERE org = $1 AND key = $2 FOR `+mode, org, key)
	if errors.Is(err, db.ErrNotFound) {
		return errNoFolder
	}
	return err
}

// mustHave returns ErrNotFound unless the organization has the agent.
func (s *Store) mustHave(ctx context.Context, org db.Org, agentID string) error {
	_, err := db.One[string](ctx, s.db, `SELECT id FROM agents WHERE org = $1 AND id = $2`, org, agentID)
	if errors.Is(err, db.ErrNotFound) {
		return db.NotFound("there is no agent %s", agentID)
	}
	return err
}

// Detach takes a folder from an agent and closes its files there. It changes nothing if the folder is not attached.
func (s *Store) Detach(ctx context.Context, org db.Org, agentID, folderID string) error {
	return db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		in := s.With(tx)
		folder, err := in.Folder(ctx, org, folderID)
		if err != nil {
			return err
		}
		if err := in.mustHave(ctx, org, agentID); err != nil {
			return err
		}
		return in.detach(ctx, org, agentID, folder)
	})
}

// detach locks the attachment before the agent, as everyone does who opens files through it.
func (s *Store) detach(ctx context.Context, org db.Org, agentID string, folder Folder) error {
	_, err := db.One[string](ctx, s.db, `
		SELECT agent_id FROM agent_folders WHERE org = $1 AND agent_id = $2 AND folder_key = $3 FOR UPDATE`, org, agentID, folder.Key)
	if err != nil {
		return ignoreNotFound(err)
	}
	if err := s.record(ctx, org, []event.Event{{AgentID: agentID, Type: event.FolderDetached, RefID: folder.ID}}); err != nil {
		return err
	}
	closed, err := db.All[string](ctx, s.db, `
		WITH gone AS (
			DELETE FROM agent_files a USING files f
			WHERE a.org = $1 AND f.org = $1 AND a.agent_id = $2 AND f.key = a.file_key AND f.folder_key = $3
			RETURNING f.id, a.is_open, a.last_used_seq
		)
		SELECT id FROM gone WHERE is_open ORDER BY last_used_seq, id`, org, agentID, folder.Key)
	if err != nil {
		return err
	}
	events := make([]event.Event, len(closed))
	for i, id := range closed {
		events[i] = event.Event{AgentID: agentID, Type: event.FileClosed, RefID: id}
	}
	if err := s.record(ctx, org, events); err != nil {
		return err
	}
	_, err = s.db.Exec(ctx, `DELETE FROM agent_folders WHERE org = $1 AND agent_id = $2 AND folder_key = $3`, org, agentID, folder.Key)
	return err
}

// AgentFolders lists the folders that an agent has.
func (s *Store) AgentFolders(ctx context.Context, org db.Org, agentID string, p db.Page) ([]Folder, error) {
	list, err := db.List[Folder](ctx, s.db, p, `
		SELECT `+folderColumns+` FROM folders d JOIN agent_folders a ON a.folder_key = d.key
		WHERE d.org = @org AND a.org = @org AND a.agent_id = @agent`,
		db.ByCreation, pgx.StrictNamedArgs{"org": org, "agent": agentID})
	return s.describedAll(list), err
}

// HasFolder says whether any folder is attached to the agent: the file tools come and go with the first and the last.
func (s *Store) HasFolder(ctx context.Context, org db.Org, agentID string) (bool, error) {
	return db.One[bool](ctx, s.db, `
		SELECT EXISTS (SELECT FROM agent_folders WHERE org = $1 AND agent_id = $2)`, org, agentID)
}

// LockFolders locks the folders that an agent has and is to have, as attaching does, and its attachments. Whoever will lock the agent,
// attach several folders to it, or delete it, in the same transaction calls it first: folders and attachments are locked before agents,
// and folders in the order of their keys, everywhere.
func (s *Store) LockFolders(ctx context.Context, org db.Org, agentID string, folderIDs []string) error {
	if folderIDs == nil {
		folderIDs = []string{}
	}
	_, err := s.db.Exec(ctx, `
		SELECT FROM folders d
		WHERE d.org = $1 AND (d.id = ANY ($3) OR d.key IN (SELECT folder_key FROM agent_folders WHERE org = $1 AND agent_id = $2))
		ORDER BY d.key
		FOR NO KEY UPDATE`, org, agentID, folderIDs)
	if err != nil {
		return err
	}
	_, err = s.db.Exec(ctx, `
		SELECT FROM agent_folders WHERE org = $1 AND agent_id = $2 ORDER BY folder_key FOR UPDATE`, org, agentID)
	return err
}

// SetFolders makes the given folders the ones that the agent has.
func (s *Store) SetFolders(ctx context.Context, org db.Org, agentID string, folderIDs []string, l Limits) error {
	had, err := s.AgentFolders(ctx, org, agentID, db.Page{Ascending: true})
	if err != nil {
		return err
	}
	for _, f := range had {
		if !slices.Contains(folderIDs, f.ID) {
			if err := s.Detach(ctx, org, agentID, f.ID); err != nil {
				return err
			}
		}
	}
	for _, id := range folderIDs {
		if slices.ContainsFunc(had, func(f Folder) bool { return f.ID == id }) {
			continue
		}
		if err := s.Attach(ctx, org, agentID, id, l); err != nil {
			return err
		}
	}
	return nil
}
