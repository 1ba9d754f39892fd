package files

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
)

// Attachment is a folder to attach to an agent. Opens says whether the folder's files open by themselves, now and when
// they are uploaded; nil leaves it to the agent's limits.
type Attachment struct {
	AgentID, FolderID string
	Opens             *bool
	Limits            Limits
}

// Attach attaches a folder to an agent, which can then open, search and list its files. Unless at.Opens or the agent's
// limits forbid it, it opens the folder's oldest files with text while there is room; open files stay open. Attaching
// twice changes nothing.
func (s *Store) Attach(ctx context.Context, org db.Org, at Attachment) error {
	return s.inTx(ctx, func(in *Store) error {
		set := in.openSet(org, at.AgentID)
		folder, err := set.Folder(ctx, org, at.FolderID)
		if err != nil {
			return err
		}
		if err := set.lockFolder(ctx, org, folder.Key, "NO KEY UPDATE"); err != nil {
			return err
		}
		if err := set.lock(ctx); err != nil { // before the insert locks the agent's row
			return err
		}
		tag, err := set.db.Exec(ctx, `
			INSERT INTO agent_folders (agent_id, folder_key, org, opens)
			SELECT id, @folder, org, @opens FROM agents WHERE id = @agent AND org = @org
			ON CONFLICT DO NOTHING`,
			pgx.StrictNamedArgs{"org": org, "agent": at.AgentID, "folder": folder.Key, "opens": at.Opens})
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return set.checkAgent(ctx)
		}
		if _, err := set.append(ctx, event.FolderAttached, folder.ID); err != nil {
			return err
		}
		return set.openOldest(ctx, folder, at)
	})
}

// lockFolder locks a folder, exclusively to attach it and shared to add a text to it, so that the second sees what the
// first did. Folders are always locked before agents.
func (s *Store) lockFolder(ctx context.Context, org db.Org, key int64, mode string) error {
	_, err := db.One[int64](ctx, s.db, `
		SELECT key FROM folders WHERE org = $1 AND key = $2 AND deleted_at IS NULL FOR `+mode, org, key)
	return ifNotFound(err, errNoFolder)
}

// checkAgent returns ErrNotFound unless the organization has the agent.
func (set openSet) checkAgent(ctx context.Context) error {
	_, err := db.One[string](ctx, set.db, `SELECT id FROM agents WHERE org = $1 AND id = $2`, set.org, set.agentID)
	return db.OrNotFound(err, "there is no agent %s", set.agentID)
}

// Detach detaches a folder from an agent, and closes its files there. It changes nothing if the folder is not attached.
func (s *Store) Detach(ctx context.Context, org db.Org, agentID, folderID string) error {
	return s.inTx(ctx, func(in *Store) error {
		set := in.openSet(org, agentID)
		folder, err := set.Folder(ctx, org, folderID)
		if err != nil {
			return err
		}
		if err := set.checkAgent(ctx); err != nil {
			return err
		}
		return set.detach(ctx, folder)
	})
}

// detach locks the attachment before the agent, as every transaction does that opens files of an attached folder.
func (set openSet) detach(ctx context.Context, folder Folder) error {
	_, err := db.One[string](ctx, set.db, `
		SELECT agent_id FROM agent_folders WHERE org = $1 AND agent_id = $2 AND folder_key = $3 FOR UPDATE`,
		set.org, set.agentID, folder.Key)
	if err != nil {
		return ifNotFound(err, nil)
	}
	if _, err := set.append(ctx, event.FolderDetached, folder.ID); err != nil {
		return err
	}
	closed, err := db.All[string](ctx, set.db, `
		WITH gone AS (
			DELETE FROM agent_files a USING files f
			WHERE a.org = $1 AND f.org = $1 AND a.agent_id = $2 AND f.key = a.file_key AND f.folder_key = $3
			RETURNING f.id, a.is_open, a.last_used_seq
		)
		SELECT id FROM gone WHERE is_open ORDER BY last_used_seq, id`, set.org, set.agentID, folder.Key)
	if err != nil {
		return err
	}
	if _, err := set.append(ctx, event.FileClosed, closed...); err != nil {
		return err
	}
	return set.exec(ctx, `
		DELETE FROM agent_folders WHERE org = $1 AND agent_id = $2 AND folder_key = $3`, set.org, set.agentID, folder.Key)
}

// AgentFolders lists the folders attached to an agent.
func (s *Store) AgentFolders(ctx context.Context, org db.Org, agentID string, p db.Page) ([]Folder, error) {
	list, err := db.List[Folder](ctx, s.db, p, `
		SELECT `+folderColumns+` 
		FROM folders d JOIN agent_folders a ON a.org = d.org AND a.folder_key = d.key
		WHERE d.org = @org AND a.agent_id = @agent AND d.deleted_at IS NULL`,
		pgx.StrictNamedArgs{"org": org, "agent": agentID})
	return mapped(list, s.described), err
}

// HasFolder reports whether any folder is attached to the agent: only then it has the file tools.
func (s *Store) HasFolder(ctx context.Context, org db.Org, agentID string) (bool, error) {
	return db.One[bool](ctx, s.db, `
		SELECT EXISTS (SELECT FROM agent_folders WHERE org = $1 AND agent_id = $2)`, org, agentID)
}

// LockFolders locks an agent's folders, the given folders and the agent's attachments. A transaction calls it before it
// locks the agent, attaches several folders to it or deletes it: folders, in the order of their keys, and attachments
// are always locked before agents.
func (s *Store) LockFolders(ctx context.Context, org db.Org, agentID string, folderIDs []string) error {
	if err := s.exec(ctx, `
		SELECT FROM folders d
		WHERE d.org = $1 AND d.deleted_at IS NULL
		  AND (d.id = ANY (coalesce($3::text[], '{}'))
		       OR d.key IN (SELECT folder_key FROM agent_folders WHERE org = $1 AND agent_id = $2))
		ORDER BY d.key
		FOR NO KEY UPDATE`, org, agentID, folderIDs); err != nil {
		return err
	}
	return s.exec(ctx, `
		SELECT FROM agent_folders WHERE org = $1 AND agent_id = $2 ORDER BY folder_key FOR UPDATE`, org, agentID)
}

// SetFolders attaches the given folders to an agent, and detaches all others.
func (s *Store) SetFolders(ctx context.Context, org db.Org, agentID string, folderIDs []string, l Limits) error {
	before, err := s.AgentFolders(ctx, org, agentID, db.Page{Ascending: true})
	if err != nil {
		return err
	}
	had := mapped(before, func(f Folder) string { return f.ID })
	for _, id := range had {
		if !slices.Contains(folderIDs, id) {
			if err := s.Detach(ctx, org, agentID, id); err != nil {
				return err
			}
		}
	}
	for _, id := range folderIDs {
		if !slices.Contains(had, id) {
			if err := s.Attach(ctx, org, Attachment{AgentID: agentID, FolderID: id, Limits: l}); err != nil {
				return err
			}
		}
	}
	return nil
}
