package files

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
)

// OpenRequest asks for a view of a file: from line Offset (0-based) Length lines, to the end where Length is nil.
type OpenRequest struct {
	FileName string `json:"file_name"`
	Offset   *int   `json:"offset"`
	Length   *int   `json:"length"`
}

// LineRange is a stretch of lines: Offset is 0-based, Length nil means to the end.
type LineRange struct {
	Offset int
	Length *int
}

func (r LineRange) same(o LineRange) bool {
	if r.Offset != o.Offset || (r.Length == nil) != (o.Length == nil) {
		return false
	}
	return r.Length == nil || *r.Length == *o.Length
}

// Opened is one file that Open opened. Content is numbered as the file's lines are, cut at whole lines to what Open may return.
type Opened struct {
	ID         string `json:"id"`
	Name       string `json:"name"` // folder/name
	FirstLine  int    `json:"first_line"`
	LastLine   int    `json:"last_line"`
	Content    string `json:"content"`
	NextOffset *int   `json:"next_offset"` // where the rest begins, nil if nothing of the request is left

	ShownNext *int `json:"-"` // where what the prompt does not show begins, nil if it shows all of the request

	Request  OpenRequest `json:"-"`
	WasOpen  bool        `json:"-"`
	Previous *LineRange  `json:"-"` // what of it was open before, where that was another range
}

// Opening is what Open did.
type Opening struct {
	Files         []Opened
	ClosedOthers  []string // names closed because the caller asked for it
	ClosedToLimit []string // names closed to keep the limit, least recently used first
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

// contents reads what was opened, each file an equal part of OpenContentChars.
func (s *Store) contents(ctx context.Context, org db.Org, targets []target) ([]Opened, error) {
	opened := make([]Opened, len(targets))
	for i, t := range targets {
		v, err := s.render(ctx, org, t.Key, t.Generation, t.Lines, t.Paging, t.lines, OpenContentChars/len(targets))
		if err != nil && !errors.Is(err, db.ErrInvalid) { // invalid: the text was replaced this moment by a shorter one
			return nil, err
		}
		o := Opened{ID: t.ID, Name: t.FullName, FirstLine: v.FirstLine, LastLine: v.LastLine, Content: v.Text, Request: t.request}
		if v.Truncated && v.NextOffset > 0 {
			o.NextOffset = &v.NextOffset
		}
		if t.was != nil {
			o.WasOpen = true
			if before := t.was.lines(); !before.same(t.lines) {
				o.Previous = &before
			}
		}
		opened[i] = o
	}
	return opened, nil
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
