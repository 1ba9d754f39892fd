package files

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/lru"
)

// evict closes the least recently used files beyond the limit and returns their names. It runs under the agent's lock.
func (s *Store) evict(ctx context.Context, org db.Org, agentID string, l Limits, fresh map[string]bool) ([]string, error) {
	open, err := s.openSet(ctx, org, agentID)
	if err != nil {
		return nil, err
	}
	candidates := make([]lru.File, len(open))
	for i, f := range open {
		candidates[i] = lru.File{ID: f.ID, Seq: f.Seq, Pinned: f.Pinned}
	}
	evicted := lru.Evict(candidates, l.MaxOpen, fresh)
	return s.close(ctx, org, agentID, slices.DeleteFunc(open, func(f openFile) bool { return !slices.Contains(evicted, f.ID) }))
}

// close closes open files, in the given order, and returns their names. It runs under the agent's lock.
func (s *Store) close(ctx context.Context, org db.Org, agentID string, open []openFile) ([]string, error) {
	names := make([]string, len(open))
	if len(open) == 0 {
		return names, nil
	}
	events, keys := make([]event.Event, len(open)), make([]int64, len(open))
	for i, f := range open {
		names[i], keys[i] = f.Name, f.Key
		events[i] = event.Event{AgentID: agentID, Type: event.FileClosed, RefID: f.ID}
	}
	if err := s.record(ctx, org, events); err != nil {
		return nil, err
	}
	_, err := s.db.Exec(ctx, `
		UPDATE agent_files SET is_open = false, first_line = 0, line_count = NULL
		WHERE org = $1 AND agent_id = $2 AND file_key = ANY ($3)`, org, agentID, keys)
	return names, err
}

// lock takes the agent's lock without an event, for changes that may turn out to be none; ErrNotFound if there is no such agent.
func (s *Store) lock(ctx context.Context, org db.Org, agentID string) error {
	_, err := db.One[int64](ctx, s.db, `SELECT seq FROM agent_heads WHERE org = $1 AND agent_id = $2 FOR UPDATE`, org, agentID)
	if err != nil {
		return s.orNoAgent(ctx, org, agentID, err)
	}
	return nil
}

func (s *Store) orNoAgent(ctx context.Context, org db.Org, agentID string, err error) error {
	if missing := s.mustHave(ctx, org, agentID); missing != nil {
		return missing
	}
	return err
}

// closeWhere closes the open files that fit, and returns their names.
func (s *Store) closeWhere(ctx context.Context, org db.Org, agentID string, fits func(openFile) bool) (names []string, err error) {
	err = db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		in := s.With(tx)
		if err := in.lock(ctx, org, agentID); err != nil {
			return err
		}
		open, err := in.openSet(ctx, org, agentID)
		if err != nil {
			return err
		}
		names, err = in.close(ctx, org, agentID, slices.DeleteFunc(open, func(f openFile) bool { return !fits(f) }))
		return err
	})
	return names, err
}

// CloseAll closes all that an agent has open and returns the names.
func (s *Store) CloseAll(ctx context.Context, org db.Org, agentID string) ([]string, error) {
	return s.closeWhere(ctx, org, agentID, func(openFile) bool { return true })
}

// CloseFile closes a file by its id. ErrNotFound unless it is attached to the agent; a file that is closed stays so.
func (s *Store) CloseFile(ctx context.Context, org db.Org, agentID, fileID string) error {
	if _, err := s.attachedFile(ctx, org, agentID, fileID); err != nil {
		return err
	}
	_, err := s.closeWhere(ctx, org, agentID, func(f openFile) bool { return f.ID == fileID })
	return err
}

// Close closes files by name, as the tools name them, and returns the full names of those that were open.
func (s *Store) Close(ctx context.Context, org db.Org, agentID string, names []string) ([]string, error) {
	found, err := s.resolve(ctx, org, agentID, names)
	if err != nil {
		return nil, err
	}
	return s.closeWhere(ctx, org, agentID, func(f openFile) bool {
		return slices.ContainsFunc(found, func(a attached) bool { return a.Key == f.Key })
	})
}

// Trim closes what an agent has open beyond its limit, least recently used first, and returns the names.
func (s *Store) Trim(ctx context.Context, org db.Org, agentID string, l Limits) (closed []string, err error) {
	err = db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		in := s.With(tx)
		if err := in.lock(ctx, org, agentID); err != nil {
			return err
		}
		closed, err = in.evict(ctx, org, agentID, l, nil)
		return err
	})
	return closed, err
}
