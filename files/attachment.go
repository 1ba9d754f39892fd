package files

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
)

// Attachment is a folder to attach to an agent. Opens says whether the folder's files open by themselves, now and when
// they are uploaded. If it is nil, the agent's limits decide.
type Attachment struct {
	AgentID, FolderID string
	Opens             *bool
	Limits            Limits
}

// lockFolder locks a folder: exclusively to attach it, shared to add a text to it. The later of two such transactions
// then sees what the earlier one did. Folders are always locked before agents.
func (s *Store) lockFolder(ctx context.Context, org db.Org, key int64, mode string) error {
	_, err := db.One[int64](ctx, s.db, `
		SELECT key FROM folders WHERE org = $1 AND key = $2 AND deleted_at IS NULL FOR `+mode, org, key)
	return ifNotFound(err, errNoFolder)
}

// Detach detaches a folder from an agent, and closes its files there. If the folder is not attached, nothing changes.
func (s *Store) Detach(ctx context.Context, org db.Org, agentID, folderID string) error {
	return s.inTx(ctx, func(in *Store) error {
		set := in.openSet(org, Of(agentID))
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

// detach locks the attachment before the agent, like every transaction that opens files of an attached folder.
func (set openSet) detach(ctx context.Context, folder Folder) error {
	_, err := db.One[string](ctx, set.db, `
		SELECT agent_id FROM agent_folders WHERE org = $1 AND agent_id = $2 AND folder_key = $3 FOR UPDATE`,
		set.org, set.AgentID, folder.Key)
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
		SELECT id FROM gone WHERE is_open GROUP BY id ORDER BY min(last_used_seq), id`, set.org, set.AgentID, folder.Key)
	if err != nil {
		return err
	}
	if _, err := set.append(ctx, event.FileClosed, closed...); err != nil {
		return err
	}
	return set.exec(ctx, `
		DELETE FROM agent_folders WHERE org = $1 AND agent_id = $2 AND folder_key = $3`, set.org, set.AgentID, folder.Key)
}

// AgentFolders lists the folders that are attached to an agent, within a reach.
func (s *Store) AgentFolders(ctx context.Context, org db.Org, r Reach, p db.Page) ([]Folder, error) {
	args := pgx.StrictNamedArgs{"org": org, "agent": r.AgentID}
	list, err := db.List[Folder](ctx, s.db, p, `
		SELECT `+namedFolderColumns+`
		FROM folders d JOIN agent_folders a ON a.org = d.org AND a.folder_key = d.key
		WHERE d.org = @org AND a.agent_id = @agent AND d.deleted_at IS NULL AND `+r.Users.Where("a.user_key", args), args)
	return mapped(list, s.described), err
}

// HasFolder reports whether any folder is attached to the agent. Only then does the agent have the file tools.
func (s *Store) HasFolder(ctx context.Context, org db.Org, agentID string) (bool, error) {
	return db.One[bool](ctx, s.db, `
		SELECT EXISTS (SELECT FROM agent_folders WHERE org = $1 AND agent_id = $2)`, org, agentID)
}

// LockFolders locks an agent's folders, the given folders and the agent's attachments. A transaction calls it before it
// locks the agent, if it attaches several folders to the agent or deletes the agent. Folders, in the order of their
// keys, and attachments are always locked before agents.
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
