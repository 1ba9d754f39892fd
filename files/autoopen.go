package files

import (
	"context"
	"slices"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
)

// openOldest opens a folder's oldest files with text while the agent has room. It needs the agent's lock.
func (set openSet) openOldest(ctx context.Context, folder Folder, l Limits) error {
	open, err := set.files(ctx)
	if err != nil {
		return err
	}
	room := max(set.limits(ctx, l).MaxOpen-len(open), 0)
	ready, err := db.All[fileRef](ctx, set.db, `
		SELECT key, id FROM files
		WHERE org = $1 AND folder_key = $2 AND generation > 0 AND replaces IS NULL
		ORDER BY created_at, key
		LIMIT $3
		FOR KEY SHARE SKIP LOCKED`, set.org, folder.Key, room) // a locked file is being deleted
	if err != nil {
		return err
	}
	ids := mapped(ready, func(f fileRef) string { return f.ID })
	events, err := set.append(ctx, event.FileOpened, ids...)
	for i := 0; err == nil && i < len(events); i++ {
		err = set.setOpen(ctx, set.org, ready[i].Key, LineRange{}, events[i])
	}
	return err
}

// openUploaded opens a file that got its first text in the agents that its folder is attached to and that have room.
func (s *Store) openUploaded(ctx context.Context, src source) error {
	if s.o.Limits == nil || src.Previous > 0 {
		return nil
	}
	type agent struct {
		ID   string `db:"agent_id"`
		Open int    `db:"open"`
	}
	agents, err := db.All[agent](ctx, s.db, `
		SELECT a.agent_id,
		       (SELECT count(*) FROM agent_files o WHERE o.org = $1 AND o.agent_id = a.agent_id AND o.is_open) AS open
		FROM agent_folders a
		WHERE a.org = $1 AND a.folder_key = $2
		  AND NOT EXISTS (SELECT FROM agent_files o WHERE o.org = $1 AND o.agent_id = a.agent_id AND o.file_key = $3)
		ORDER BY a.agent_id
		FOR KEY SHARE OF a`, src.Org, src.FolderKey, src.Key)
	if err != nil || len(agents) == 0 {
		return err
	}
	limits, err := s.o.Limits(ctx, s.db, src.Org, mapped(agents, func(a agent) string { return a.ID }))
	if err != nil {
		return err
	}
	var events []event.Event
	for _, a := range agents {
		if a.Open < limits[a.ID].MaxOpen {
			events = append(events, event.Event{AgentID: a.ID, Type: event.FileOpened, RefID: src.ID})
		}
	}
	if events, err = event.Append(ctx, s.tx, src.Org, events...); err != nil {
		return err
	}
	for i := 0; err == nil && i < len(events); i++ {
		err = inOrder(
			func() error { return s.setOpen(ctx, src.Org, src.Key, LineRange{}, events[i]) },
			func() error { return s.openSet(src.Org, events[i].AgentID).closeIfFull(ctx, src.ID) })
	}
	return err
}

// closeIfFull closes a file that was just opened, if other files took the room before the agent was locked. It needs
// the agent's lock.
func (set openSet) closeIfFull(ctx context.Context, fileID string) error {
	open, err := set.files(ctx)
	if err != nil || len(open) <= set.limits(ctx, Limits{}).MaxOpen {
		return err
	}
	_, err = set.close(ctx, slices.DeleteFunc(open, func(f openFile) bool { return f.ID != fileID }))
	return err
}
