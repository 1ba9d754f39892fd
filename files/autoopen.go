package files

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
)

// openFirst opens a folder's oldest files with text where the agent has room. It runs under the agent's lock.
func (s *Store) openFirst(ctx context.Context, org db.Org, agentID string, folder Folder, l Limits) error {
	open, err := s.openSet(ctx, org, agentID)
	if err != nil {
		return err
	}
	ready, err := db.All[placed](ctx, s.db, `
		SELECT key, id FROM files
		WHERE org = $1 AND folder_key = $2 AND generation > 0 AND replaces IS NULL
		ORDER BY created_at, key
		LIMIT $3
		FOR KEY SHARE SKIP LOCKED`, org, folder.Key, max(s.limits(ctx, org, agentID, l).MaxOpen-len(open), 0)) // locked: being deleted
	if err != nil {
		return err
	}
	for _, f := range ready {
		if err := s.openWhole(ctx, org, agentID, f); err != nil {
			return err
		}
	}
	return nil
}

// openWhole opens a file from its first line to its end, without regard to limits. It runs under the agent's lock.
func (s *Store) openWhole(ctx context.Context, org db.Org, agentID string, f placed) error {
	return pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		events, err := event.Append(ctx, tx, org, event.Event{AgentID: agentID, Type: event.FileOpened, RefID: f.ID})
		if err != nil {
			return err
		}
		return s.With(tx).setOpen(ctx, org, f.Key, LineRange{}, events[0])
	})
}

// openUploaded opens a new file in the agents that its folder is attached to and that have room.
func (s *Store) openUploaded(ctx context.Context, src source) error {
	if s.o.Limits == nil {
		return nil
	}
	type room struct {
		AgentID string `db:"agent_id"`
		Open    int    `db:"open"`
	}
	agents, err := db.All[room](ctx, s.db, `
		SELECT a.agent_id, (SELECT count(*) FROM agent_files o WHERE o.org = $1 AND o.agent_id = a.agent_id AND o.is_open) AS open
		FROM agent_folders a
		WHERE a.org = $1 AND a.folder_key = $2
		  AND NOT EXISTS (SELECT FROM agent_files o WHERE o.org = $1 AND o.agent_id = a.agent_id AND o.file_key = $3)
		ORDER BY a.agent_id
		FOR KEY SHARE OF a`, src.Org, src.FolderKey, src.Key)
	if err != nil || len(agents) == 0 {
		return err
	}
	ids := make([]string, len(agents))
	for i, a := range agents {
		ids[i] = a.AgentID
	}
	limits, err := s.o.Limits(ctx, s.db, src.Org, ids)
	if err != nil {
		return err
	}
	id, err := db.One[string](ctx, s.db, `SELECT id FROM files WHERE org = $1 AND key = $2`, src.Org, src.Key)
	if err != nil {
		return err
	}
	var events []event.Event
	for _, a := range agents {
		if a.Open < limits[a.AgentID].MaxOpen {
			events = append(events, event.Event{AgentID: a.AgentID, Type: event.FileOpened, RefID: id})
		}
	}
	return s.openIn(ctx, src, id, events)
}

// openIn opens a file in several agents. Where one has no room any more once it is locked, the file itself is closed again: what an agent
// opened stays.
func (s *Store) openIn(ctx context.Context, src source, id string, events []event.Event) error {
	return pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		in := s.With(tx)
		written, err := event.Append(ctx, tx, src.Org, events...)
		if err != nil {
			return err
		}
		for _, e := range written {
			if err := in.setOpen(ctx, src.Org, src.Key, LineRange{}, e); err != nil {
				return err
			}
			if err := in.closeIfFull(ctx, src.Org, e.AgentID, id); err != nil {
				return err
			}
		}
		return nil
	})
}

// closeIfFull closes a file again if the agent has more open than it may. It runs under the agent's lock.
func (s *Store) closeIfFull(ctx context.Context, org db.Org, agentID, fileID string) error {
	open, err := s.openSet(ctx, org, agentID)
	if err != nil || len(open) <= s.limits(ctx, org, agentID, Limits{}).MaxOpen {
		return err
	}
	_, err = s.close(ctx, org, agentID, slices.DeleteFunc(open, func(f openFile) bool { return f.ID != fileID }))
	return err
}
