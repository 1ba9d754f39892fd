package files

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
)

// Attach attaches a folder to an agent, which can then open, search and list its files. It opens the folder's oldest
// files with text as long as there is room, unless at.Opens or the agent's limits forbid it, or the folder is one of
// skills. Files that are open stay open. Attaching a folder twice changes nothing.
func (s *Store) Attach(ctx context.Context, org db.Org, at Attachment) error {
	return s.inTx(ctx, func(in *Store) error {
		folder, err := in.Folder(ctx, org, at.FolderID)
		if err != nil {
			return err
		}
		set := in.openSet(org, user{org, at.AgentID, folder.Owner}.reach())
		if err := set.lockFolder(ctx, org, folder.Key, "NO KEY UPDATE"); err != nil {
			return err
		}
		if err := set.lock(ctx); err != nil { // before the insert locks the agent's row
			return err
		}
		tag, err := set.db.Exec(ctx, `
			INSERT INTO agent_folders (agent_id, folder_key, org, opens, user_key)
			SELECT id, @folder, org, @opens, nullif(@owner::bigint, 0) FROM agents WHERE id = @agent AND org = @org
			ON CONFLICT DO NOTHING`,
			pgx.StrictNamedArgs{"org": org, "agent": at.AgentID, "folder": folder.Key, "opens": at.Opens,
				"owner": folder.Owner})
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

// SetFolders attaches the given folders to an agent, and detaches all others.
func (s *Store) SetFolders(ctx context.Context, org db.Org, agentID string, folderIDs []string, l Limits) error {
	before, err := s.AgentFolders(ctx, org, Of(agentID), db.Page{Ascending: true})
	if err != nil {
		return err
	}
	attached := mapped(before, func(f Folder) string { return f.ID })
	for _, id := range attached {
		if !slices.Contains(folderIDs, id) {
			if err := s.Detach(ctx, org, agentID, id); err != nil {
				return err
			}
		}
	}
	for _, id := range folderIDs {
		if !slices.Contains(attached, id) {
			if err := s.Attach(ctx, org, Attachment{AgentID: agentID, FolderID: id, Limits: l}); err != nil {
				return err
			}
		}
	}
	return nil
}
