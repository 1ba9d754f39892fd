package files

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/lru"
)

// openFile is a file of an agent's open set.
type openFile struct {
	Key       int64  `db:"key"`
	ID        string `db:"id"`
	Name      string `db:"name"` // folder/name
	Seq       int64  `db:"last_used_seq"`
	Pinned    bool   `db:"pinned"`
	FirstLine int    `db:"first_line"`
	LineCount *int   `db:"line_count"`
}

func (f openFile) lines() LineRange { return LineRange{Offset: f.FirstLine, Length: f.LineCount} }

// openSet is what an agent has open, least recently used first. Under the agent's lock it stays so.
func (s *Store) openSet(ctx context.Context, org db.Org, agentID string) ([]openFile, error) {
	return db.All[openFile](ctx, s.db, `
		SELECT f.key, f.id, d.name || '/' || f.name AS name, a.last_used_seq, a.pinned, a.first_line, a.line_count
		FROM agent_files a JOIN files f ON f.key = a.file_key JOIN folders d ON d.key = f.folder_key
		WHERE a.org = $1 AND a.agent_id = $2 AND a.is_open
		ORDER BY a.last_used_seq, f.id`, org, agentID)
}

// setOpen opens a file in the agent of the event, as of the event.
func (s *Store) setOpen(ctx context.Context, org db.Org, fileKey int64, lines LineRange, e event.Event) error {
	_, err := s.db.Exec(ctx, `
		INSERT INTO agent_files (agent_id, file_key, org, is_open, first_line, line_count, last_used_seq, last_used_at)
		VALUES (@agent, @file, @org, true, @first, @count, @seq, @at)
		ON CONFLICT (agent_id, file_key) DO UPDATE
		SET is_open = true, first_line = excluded.first_line, line_count = excluded.line_count,
		    last_used_seq = excluded.last_used_seq, last_used_at = excluded.last_used_at`,
		pgx.StrictNamedArgs{"agent": e.AgentID, "file": fileKey, "org": org, "first": lines.Offset, "count": lines.Length,
			"seq": e.Seq, "at": e.At})
	return err
}

// limits are the agent's as they stand under its lock, where the store can ask for them.
func (s *Store) limits(ctx context.Context, org db.Org, agentID string, l Limits) Limits {
	if s.o.Limits == nil {
		return l
	}
	now, err := s.o.Limits(ctx, s.db, org, []string{agentID})
	if at, ok := now[agentID]; ok && err == nil {
		return at
	}
	return l
}

func (s *Store) append(ctx context.Context, org db.Org, events []event.Event) (written []event.Event, err error) {
	err = pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		written, err = event.Append(ctx, tx, org, events...)
		return err
	})
	return written, err
}

// record appends events in a transaction of their own, or in the store's.
func (s *Store) record(ctx context.Context, org db.Org, events []event.Event) error {
	return pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		_, err := event.Append(ctx, tx, org, events...)
		return err
	})
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

// use marks files that the agent has open as used now, in the given order. It writes nothing where that changes no order.
func (s *Store) use(ctx context.Context, org db.Org, agentID string, fileIDs []string) error {
	open, err := s.openSet(ctx, org, agentID)
	if err != nil {
		return err
	}
	var used []openFile
	for _, id := range fileIDs {
		if at := slices.IndexFunc(open, func(f openFile) bool { return f.ID == id }); at >= 0 {
			used = append(used, open[at])
		}
	}
	if len(used) == 0 || slices.EqualFunc(used, open[len(open)-len(used):], func(a, b openFile) bool { return a.ID == b.ID }) {
		return nil
	}
	return db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		events := make([]event.Event, len(used))
		for i, f := range used {
			events[i] = event.Event{AgentID: agentID, Type: event.FileUsed, RefID: f.ID}
		}
		written, err := event.Append(ctx, tx, org, events...)
		if err != nil {
			return err
		}
		for i, e := range written {
			if _, err := tx.Exec(ctx, `
				UPDATE agent_files SET last_used_seq = $4, last_used_at = $5 WHERE org = $1 AND agent_id = $2 AND file_key = $3 AND is_open`,
				org, agentID, used[i].Key, e.Seq, e.At); err != nil {
				return err
			}
		}
		return nil
	})
}
