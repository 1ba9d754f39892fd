package files

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
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
func (s *Store) setOpen(ctx context.Context, org db.Org, fileKey int64, lines LineRange, e db.Event) error {
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
		done, err = in.open(ctx, org, agentID, l, targets, closeOthers)
		return err
	})
	if err != nil {
		return Opening{}, err
	}
	done.Files, err = s.contents(ctx, org, targets)
	return done, err
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
	return targets, nil
}

// open writes the openings and what they close. The first event is the agent's lock.
func (s *Store) open(ctx context.Context, org db.Org, agentID string, l Limits, targets []target, closeOthers bool) (Opening, error) {
	events := make([]db.Event, len(targets))
	for i, t := range targets {
		events[i] = db.Event{AgentID: agentID, Type: db.FileOpened, RefID: t.ID}
	}
	events, err := s.append(ctx, org, events)
	if err != nil {
		return Opening{}, err
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

func (s *Store) append(ctx context.Context, org db.Org, events []db.Event) (written []db.Event, err error) {
	err = pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		written, err = db.Append(ctx, tx, org, events...)
		return err
	})
	return written, err
}

// evict closes the least recently used files beyond the limit and returns their names. It runs under the agent's lock.
func (s *Store) evict(ctx context.Context, org db.Org, agentID string, l Limits, fresh map[string]bool) ([]string, error) {
	open, err := s.openSet(ctx, org, agentID)
	if err != nil {
		return nil, err
	}
	entries := make([]lru.Entry, len(open))
	for i, f := range open {
		entries[i] = lru.Entry{ID: f.ID, Seq: f.Seq, Pinned: f.Pinned}
	}
	evicted := lru.Evict(entries, l.MaxOpen, fresh)
	return s.close(ctx, org, agentID, slices.DeleteFunc(open, func(f openFile) bool { return !slices.Contains(evicted, f.ID) }))
}

// close closes open files, in the given order, and returns their names. It runs under the agent's lock.
func (s *Store) close(ctx context.Context, org db.Org, agentID string, open []openFile) ([]string, error) {
	names := make([]string, len(open))
	if len(open) == 0 {
		return names, nil
	}
	events, keys := make([]db.Event, len(open)), make([]int64, len(open))
	for i, f := range open {
		names[i], keys[i] = f.Name, f.Key
		events[i] = db.Event{AgentID: agentID, Type: db.FileClosed, RefID: f.ID}
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
		done, err := s.With(tx).open(ctx, org, agentID, l, []target{{attached: f}}, false)
		closed = done.ClosedToLimit
		return err
	})
	return closed, err
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
		events := make([]db.Event, len(used))
		for i, f := range used {
			events[i] = db.Event{AgentID: agentID, Type: db.FileUsed, RefID: f.ID}
		}
		written, err := db.Append(ctx, tx, org, events...)
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

// attached is a file that an agent has through a folder.
type attached struct {
	Key        int64   `db:"key"`
	ID         string  `db:"id"`
	FullName   string  `db:"full_name"`
	Name       string  `db:"name"`
	Generation int     `db:"generation"`
	Lines      int     `db:"lines"`
	Error      *string `db:"error"`
}

func (a attached) notReady() error {
	if a.Error != nil {
		return db.Invalid("File %s has no text: %s", a.FullName, *a.Error)
	}
	return db.Invalid("File %s is still being processed: try again in a moment", a.FullName)
}

const attachedRows = `
	SELECT f.key, f.id, d.name || '/' || f.name AS full_name, f.name, f.generation, f.lines, f.error
	FROM agent_folders a
	JOIN folders d ON d.key = a.folder_key
	JOIN files f ON f.folder_key = a.folder_key AND f.replaces IS NULL`

func (s *Store) attachedFile(ctx context.Context, org db.Org, agentID, fileID string) (attached, error) {
	f, err := db.One[attached](ctx, s.db, attachedRows+` WHERE a.org = $1 AND f.org = $1 AND a.agent_id = $2 AND f.id = $3`,
		org, agentID, fileID)
	if err != nil && ignoreNotFound(err) == nil {
		if err := s.mustHave(ctx, org, agentID); err != nil {
			return attached{}, err
		}
		return attached{}, db.NotFound("file %s is not attached to agent %s", fileID, agentID)
	}
	return f, err
}

// resolve finds attached files by the names that a model gives: folder/name, a name that only one attached file has, or an id. One
// that is not found, or fits several files, is ErrInvalid and says what is attached.
func (s *Store) resolve(ctx context.Context, org db.Org, agentID string, names []string) ([]attached, error) {
	var folders, leaves []string
	for _, name := range names {
		folders, leaves = append(folders, ""), append(leaves, name)
		for i, r := range name {
			if r == '/' {
				folders, leaves = append(folders, name[:i]), append(leaves, name[i+1:])
			}
		}
	}
	rows, err := db.All[attached](ctx, s.db, `
		SELECT DISTINCT t.* FROM (`+attachedRows+`
			JOIN unnest($3::text[], $4::text[]) AS n (folder, name) ON f.name = n.name AND (n.folder = '' OR n.folder = d.name)
			WHERE a.org = $1 AND f.org = $1 AND a.agent_id = $2
			UNION ALL `+attachedRows+`
			WHERE a.org = $1 AND f.org = $1 AND a.agent_id = $2 AND f.id = ANY ($5)) t
		ORDER BY full_name, key`, org, agentID, folders, leaves, names)
	if err != nil {
		return nil, err
	}
	found := make([]attached, len(names))
	for i, name := range names {
		fits := named(rows, name)
		switch len(fits) {
		case 1:
			found[i] = fits[0]
		case 0:
			return nil, s.notAttached(ctx, org, agentID, name)
		default:
			return nil, db.Invalid("%s fits several attached files (%s): name one of them", name, strings.Join(described(fits), ", "))
		}
	}
	return found, nil
}

// named picks the rows that a name means: by full name or id if any is so called, else by the file's own name.
func named(rows []attached, name string) []attached {
	var full, leaf []attached
	for _, r := range rows {
		switch name {
		case r.FullName, r.ID:
			full = append(full, r)
		case r.Name:
			leaf = append(leaf, r)
		}
	}
	if len(full) > 0 {
		return full
	}
	return leaf
}

func described(list []attached) []string {
	texts := make([]string, len(list))
	for i, a := range list {
		texts[i] = a.FullName + " [" + a.ID + "]"
	}
	return texts
}

// namesShown is how many attached files an error names.
const namesShown = 50

func (s *Store) notAttached(ctx context.Context, org db.Org, agentID, name string) error {
	list, err := s.List(ctx, org, agentID, "", "", 0, namesShown)
	if err != nil {
		return err
	}
	names := make([]string, len(list.Files))
	for i, f := range list.Files {
		names[i] = "'" + f.FileName + "'"
	}
	text := "[" + strings.Join(names, ", ") + "]"
	if more := list.Total - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more: call list_files to see them", more)
	}
	return db.Invalid("%s not attached - did you get the filename correct? Currently you have the following files attached: %s", name, text)
}
