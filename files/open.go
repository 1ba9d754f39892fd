package files

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
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

// target is a request with the attached file that it names.
type target struct {
	attached
	request OpenRequest
	lines   LineRange
	was     *openFile // what was open of it
}

// Open opens views of attached files, and closes the least recently used others beyond the limit. Either all requests are done or
// none: a file that is not attached, has no text yet, or ends before the offset is ErrInvalid. The contents returned are bounded
// together by OpenContentChars.
func (s *Store) Open(ctx context.Context, org db.Org, agentID string, l Limits, reqs []OpenRequest, closeOthers bool) (Opening, error) {
	if len(reqs) > l.MaxOpen {
		return Opening{}, db.Invalid("Cannot open %d files: exceeds configured maximum limit of %d files", len(reqs), l.MaxOpen)
	}
	var done Opening
	var targets []target
	err := db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		in := s.With(tx)
		var err error
		if targets, err = in.targets(ctx, org, agentID, reqs); err != nil {
			return err
		}
		if done, err = in.open(ctx, org, agentID, l, targets, closeOthers); err != nil {
			return err
		}
		done.Files, err = in.contents(ctx, org, targets)
		return err
	})
	if err != nil {
		return Opening{}, err
	}
	return done, s.shown(ctx, org, agentID, l, done.Files)
}

// shown says where the prompt's views of opened files stop.
func (s *Store) shown(ctx context.Context, org db.Org, agentID string, l Limits, opened []Opened) error {
	views, err := s.Views(ctx, org, agentID, l)
	for _, v := range views {
		for i := range opened {
			if opened[i].ID == v.FileID && v.Truncated && v.NextOffset > 0 {
				opened[i].ShownNext = &v.NextOffset
			}
		}
	}
	return err
}

// targets finds the files of the requests and checks their ranges.
func (s *Store) targets(ctx context.Context, org db.Org, agentID string, reqs []OpenRequest) ([]target, error) {
	names := make([]string, len(reqs))
	for i, r := range reqs {
		names[i] = r.FileName
	}
	found, err := s.resolve(ctx, org, agentID, names)
	if err != nil {
		return nil, err
	}
	targets := make([]target, len(reqs))
	for i, r := range reqs {
		t := target{attached: found[i], request: r}
		if t.Generation == 0 {
			return nil, t.notReady()
		}
		if r.Offset != nil {
			t.lines.Offset = *r.Offset
		}
		t.lines.Length = r.Length
		if t.lines.Offset > 0 && t.lines.Offset >= t.Lines {
			return nil, db.Invalid("File %s has only %d lines, but requested offset %d is out of range", t.FullName, t.Lines, t.lines.Offset+1)
		}
		targets[i] = t
	}
	return s.hold(ctx, org, agentID, lastOfEach(targets))
}

// lastOfEach drops earlier requests for a file that is asked for again: it has one view.
func lastOfEach(targets []target) []target {
	var last []target
	for i, t := range targets {
		if !slices.ContainsFunc(targets[i+1:], func(later target) bool { return later.Key == t.Key }) {
			last = append(last, t)
		}
	}
	return last
}

// hold keeps the files from being deleted, replaced or detached until the transaction ends. Files and attachments are locked before
// agents, everywhere.
func (s *Store) hold(ctx context.Context, org db.Org, agentID string, targets []target) ([]target, error) {
	keys := make([]int64, len(targets))
	for i, t := range targets {
		keys[i] = t.Key
	}
	held, err := db.All[int64](ctx, s.db, `
		SELECT f.key FROM files f JOIN agent_folders a ON a.folder_key = f.folder_key
		WHERE f.org = $1 AND a.org = $1 AND a.agent_id = $2 AND f.key = ANY ($3)
		ORDER BY f.key
		FOR KEY SHARE`, org, agentID, keys)
	if err != nil {
		return nil, err
	}
	for _, t := range targets {
		if !slices.Contains(held, t.Key) {
			return nil, db.Invalid("%s was deleted, replaced or detached this moment: try again", t.FullName)
		}
	}
	return targets, nil
}

// open writes the openings and what they close. The first event is the agent's lock.
func (s *Store) open(ctx context.Context, org db.Org, agentID string, l Limits, targets []target, closeOthers bool) (Opening, error) {
	events := make([]event.Event, len(targets))
	for i, t := range targets {
		events[i] = event.Event{AgentID: agentID, Type: event.FileOpened, RefID: t.ID}
	}
	events, err := s.append(ctx, org, events)
	if err != nil {
		return Opening{}, err
	}
	if l = s.limits(ctx, org, agentID, l); len(targets) > l.MaxOpen {
		return Opening{}, db.Invalid("Cannot open %d files: exceeds configured maximum limit of %d files", len(targets), l.MaxOpen)
	}
	before, err := s.openSet(ctx, org, agentID)
	if err != nil {
		return Opening{}, err
	}
	fresh := map[string]bool{}
	for i := range targets {
		t := &targets[i]
		if at := slices.IndexFunc(before, func(f openFile) bool { return f.Key == t.Key }); at >= 0 {
			t.was = &before[at]
		}
		fresh[t.ID] = true
		if err := s.setOpen(ctx, org, t.Key, t.lines, events[i]); err != nil {
			return Opening{}, err
		}
	}
	var done Opening
	if closeOthers {
		others := slices.DeleteFunc(slices.Clone(before), func(f openFile) bool { return fresh[f.ID] })
		if done.ClosedOthers, err = s.close(ctx, org, agentID, others); err != nil {
			return Opening{}, err
		}
	}
	done.ClosedToLimit, err = s.evict(ctx, org, agentID, l, fresh)
	return done, err
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

// OpenWhole opens a file by its id, from its first line to its end, and returns the names of the files closed to keep the limit.
// ErrNotFound unless it is attached to the agent.
func (s *Store) OpenWhole(ctx context.Context, org db.Org, agentID, fileID string, l Limits) ([]string, error) {
	f, err := s.attachedFile(ctx, org, agentID, fileID)
	if err != nil {
		return nil, err
	}
	if f.Generation == 0 {
		return nil, f.notReady()
	}
	var closed []string
	err = db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		in := s.With(tx)
		held, err := in.hold(ctx, org, agentID, []target{{attached: f}})
		if err != nil {
			return err
		}
		done, err := in.open(ctx, org, agentID, l, held, false)
		closed = done.ClosedToLimit
		return err
	})
	return closed, err
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
