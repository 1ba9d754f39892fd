package files

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
)

// OpenContentChars is the usual total limit, in characters, of the contents that one Open returns, including line
// numbers and headers.
const OpenContentChars = 50_000

// OpenRequest asks for a view of a file: Length lines beginning at line Offset (from 0). If Length is nil, the view
// reaches to the end. The returned content begins at character Char (from 0) of the first line.
type OpenRequest struct {
	FileName string `json:"file_name"`
	Offset   *int   `json:"offset"`
	Length   *int   `json:"length"`
	Char     int    `json:"char"`
}

// OpenArgs are the arguments of Open.
type OpenArgs struct {
	Requests    []OpenRequest
	CloseOthers bool // close all other files
	Limits      Limits

	// ContentChars is the total limit, in characters, of the returned contents; 0 means OpenContentChars.
	ContentChars int

	// Admit gets the views before any file is opened, with the first AdmitChars characters of each. If it returns an
	// error, none is opened. Nil admits all.
	Admit      func([]Wanted) error
	AdmitChars int
}

// Wanted is a view that a caller asks for.
type Wanted struct {
	Name    string // folder/name
	First   int    // its first line, from 1
	Lines   int    // of the whole file
	Text    string // its numbered lines
	Cut     bool   // Text does not have all of it
	Request OpenRequest
}

// Opened is one file that Open opened. Content has line numbers, and is cut between lines if it is too long for Open.
type Opened struct {
	ID         string `json:"id"`
	Name       string `json:"name"` // folder/name
	FirstLine  int    `json:"first_line"`
	LastLine   int    `json:"last_line"`
	Content    string `json:"content"`
	NextOffset *int   `json:"next_offset"` // offset where the rest of the request begins; nil if Content has all of it

	LineCut   bool `json:"-"` // Content has only a part of the first line, and no other line
	Lines     int  `json:"-"` // of the whole file
	ShownNext *int `json:"-"` // the caller's: offset of the first requested line that the prompt does not show; nil: none

	Request  OpenRequest `json:"-"`
	WasOpen  bool        `json:"-"`
	Previous *LineRange  `json:"-"` // the range that was open before, if it differs
}

// Opening is the result of Open.
type Opening struct {
	Files         []Opened
	ClosedOthers  []string // names closed at the caller's request
	ClosedToLimit []string // names closed to keep the limit, least recently used first
}

// target is a request with the attached file that it names.
type target struct {
	attached
	request OpenRequest
	lines   LineRange
	was     *openFile // the file as it was open before; nil if it was closed
}

// Open opens views of attached files. It closes the least recently used other files if there are more than the limit.
// It carries out all requests or none. ErrInvalid if a file is not attached, has no text yet, or ends before the
// offset or the character. The returned contents have at most args.ContentChars together.
func (s *Store) Open(ctx context.Context, org db.Org, r Reach, args OpenArgs) (Opening, error) {
	if err := args.Limits.checkCount(len(args.Requests)); err != nil {
		return Opening{}, err
	}
	// These uses decide which files are closed.
	if err := s.recordUses(ctx, by(org, r)); err != nil {
		return Opening{}, err
	}
	var done Opening
	err := s.inTx(ctx, func(in *Store) error {
		set := in.openSet(org, r)
		targets, err := set.targets(ctx, args.Requests)
		if err != nil {
			return err
		}
		if err := set.admit(ctx, targets, args); err != nil {
			return err
		}
		if done, err = set.open(ctx, targets, args); err != nil {
			return err
		}
		done.Files, err = set.contents(ctx, targets, cmp.Or(args.ContentChars, OpenContentChars))
		return err
	})
	return done, err
}

// admit returns the error of views that may not be opened.
func (set openSet) admit(ctx context.Context, targets []target, args OpenArgs) error {
	if args.Admit == nil {
		return nil
	}
	wanted := make([]Wanted, len(targets))
	for i, t := range targets {
		v, err := set.content(ctx, t, args.AdmitChars)
		if err != nil {
			return err
		}
		wanted[i] = Wanted{Name: t.FullName, First: v.FirstLine, Lines: t.Lines, Text: v.Text, Cut: v.Truncated,
			Request: t.request}
	}
	return args.Admit(wanted)
}

// checkCount returns ErrInvalid if so many files may not be open.
func (l Limits) checkCount(files int) error {
	if files > l.MaxOpen {
		return db.Invalid("Cannot open %d files: exceeds configured maximum limit of %d files", files, l.MaxOpen)
	}
	return nil
}

// targets returns the files of the requests, locked, after checking the ranges. If several requests name the same file,
// it keeps the last one, because a file has only one view.
func (set openSet) targets(ctx context.Context, requests []OpenRequest) ([]target, error) {
	found, err := set.resolve(ctx, mapped(requests, func(r OpenRequest) string { return r.FileName }))
	if err != nil {
		return nil, err
	}
	var targets []target
	for i, r := range requests {
		t := target{attached: found[i], request: r, lines: LineRange{Length: r.Length}}
		if t.Generation == 0 {
			return nil, t.notReady()
		}
		if r.Offset != nil {
			t.lines.Offset = *r.Offset
		}
		if t.lines.Offset > 0 && t.lines.Offset >= t.Lines {
			return nil, db.Invalid("File %s has only %d lines: line %d, at offset %d, is past its end",
				t.FullName, t.Lines, t.lines.Offset+1, t.lines.Offset)
		}
		if !slices.ContainsFunc(found[i+1:], func(later attached) bool { return later.Key == t.Key }) {
			targets = append(targets, t)
		}
	}
	return targets, set.lockTargets(ctx, targets)
}

// lockTargets keeps files from being deleted, replaced or detached until the transaction ends. Files and attachments
// are always locked before agents.
func (set openSet) lockTargets(ctx context.Context, targets []target) error {
	keys := mapped(targets, func(t target) int64 { return t.Key })
	sees, args := set.sees(set.org, set.AgentID, keys)
	locked, err := db.All[int64](ctx, set.db, `
		SELECT f.key FROM files f JOIN agent_folders a ON a.folder_key = f.folder_key
		WHERE f.org = $1 AND a.org = $1 AND a.agent_id = $2 AND f.key = ANY ($3) AND `+sees+`
		ORDER BY f.key
		FOR KEY SHARE`, args...)
	if err != nil {
		return err
	}
	for _, t := range targets {
		if !slices.Contains(locked, t.Key) {
			return db.Invalid("%s was deleted, replaced or detached this moment: try again", t.FullName)
		}
	}
	return nil
}

// open opens the targets and closes other files. Its first event locks the agent.
func (set openSet) open(ctx context.Context, targets []target, args OpenArgs) (done Opening, err error) {
	ids, fresh := make([]string, len(targets)), map[string]bool{}
	for i, t := range targets {
		ids[i], fresh[t.ID] = t.ID, true
	}
	events, err := set.append(ctx, event.FileOpened, ids...)
	if err != nil {
		return Opening{}, err
	}
	limits := set.limits(ctx, args.Limits)
	if err := cmp.Or(limits.checkCount(len(targets)), set.own(ctx)); err != nil {
		return Opening{}, err
	}
	before, err := set.files(ctx)
	if err != nil {
		return Opening{}, err
	}
	for i := range targets {
		t := &targets[i]
		if at := slices.IndexFunc(before, func(f openFile) bool { return f.Key == t.Key }); at >= 0 {
			t.was = &before[at]
		}
		v := openedView{Org: set.org, Key: t.Key, Owner: set.owner(), Lines: t.lines}
		if err := set.setOpen(ctx, v, events[i]); err != nil {
			return Opening{}, err
		}
	}
	if args.CloseOthers {
		others := slices.DeleteFunc(slices.Clone(before), func(f openFile) bool { return fresh[f.ID] })
		if done.ClosedOthers, err = set.close(ctx, others); err != nil {
			return Opening{}, err
		}
	}
	done.ClosedToLimit, err = set.evict(ctx, limits.MaxOpen, fresh)
	return done, err
}

// contents reads the opened files. Each gets an equal part of so many characters.
func (set openSet) contents(ctx context.Context, targets []target, chars int) ([]Opened, error) {
	opened := make([]Opened, len(targets))
	for i, t := range targets {
		v, err := set.content(ctx, t, chars/len(targets))
		switch {
		case errors.Is(err, db.ErrInvalid) && t.request.Char > 0:
			return nil, db.Invalid("%s: %v", t.FullName, err)
		case err != nil && !errors.Is(err, db.ErrInvalid): // else a shorter text has just replaced the file's text
			return nil, err
		}
		o := Opened{ID: t.ID, Name: t.FullName, FirstLine: v.FirstLine, LastLine: v.LastLine, Content: v.Text,
			Request: t.request, Lines: t.Lines}
		if v.Truncated && v.NextOffset > 0 {
			o.NextOffset = &v.NextOffset
		}
		o.LineCut = v.LineCut
		if t.was != nil {
			o.WasOpen = true
			if !reflect.DeepEqual(t.was.LineRange, t.lines) {
				o.Previous = &t.was.LineRange
			}
		}
		opened[i] = o
	}
	return opened, nil
}

// content renders what a request asks for.
func (set openSet) content(ctx context.Context, t target, limitChars int) (View, error) {
	f := openFile{storedText: t.storedText}
	e := f.excerpt(t.lines, limitChars)
	e.Char = t.request.Char
	return set.render(ctx, set.org, f, e)
}

// OpenWhole opens a file by its id, from the first line to the last. It returns the names of the files that it closed
// to keep the limit. ErrNotFound if the file is not attached to the agent.
func (s *Store) OpenWhole(ctx context.Context, org db.Org, agentID, fileID string, l Limits) (
	closed []string, err error) {
	f, err := s.openSet(org, Of(agentID)).attachedFile(ctx, fileID)
	if err != nil {
		return nil, err
	}
	if f.Generation == 0 {
		return nil, f.notReady()
	}
	err = s.inTx(ctx, func(in *Store) error {
		set, targets := in.openSet(org, Of(agentID)), []target{{attached: f}}
		if err := set.lockTargets(ctx, targets); err != nil {
			return err
		}
		done, err := set.open(ctx, targets, OpenArgs{Limits: l})
		closed = done.ClosedToLimit
		return err
	})
	return closed, err
}

// CloseAll closes all files that an agent has open. It returns their names.
func (s *Store) CloseAll(ctx context.Context, org db.Org, r Reach) ([]string, error) {
	return s.closeWhere(ctx, org, r, func(openFile) bool { return true })
}

// CloseFile closes a file by its id. A closed file stays closed. ErrNotFound if it is not attached to the agent.
func (s *Store) CloseFile(ctx context.Context, org db.Org, agentID, fileID string) error {
	if _, err := s.openSet(org, Of(agentID)).attachedFile(ctx, fileID); err != nil {
		return err
	}
	_, err := s.closeWhere(ctx, org, Of(agentID), func(f openFile) bool { return f.ID == fileID })
	return err
}

// Pin pins or unpins an open file. A pinned file is not closed by the limit, only when it is closed by its name or id;
// that also unpins it. ErrNotFound if the file is not attached to the agent; ErrConflict if it is not open.
func (s *Store) Pin(ctx context.Context, org db.Org, agentID, fileID string, pinned bool) error {
	f, err := s.openSet(org, Of(agentID)).attachedFile(ctx, fileID)
	if err != nil {
		return err
	}
	return s.withLockedSet(ctx, org, Of(agentID), func(set openSet) error {
		err := db.Exec(ctx, set.db, `
			UPDATE agent_files SET pinned = $4
			WHERE org = $1 AND agent_id = $2 AND user_key = 0 AND file_key = $3 AND is_open`,
			org, agentID, f.Key, pinned)
		if errors.Is(err, db.ErrNotFound) {
			return db.Conflict("The file %s is not open, and only an open file is pinned. Open it first.", f.Name)
		}
		return err
	})
}

// Close closes files by the names that the tools use. It returns the full names of those that were open.
func (s *Store) Close(ctx context.Context, org db.Org, r Reach, names []string) ([]string, error) {
	found, err := s.openSet(org, r).resolve(ctx, names)
	if err != nil {
		return nil, err
	}
	return s.closeWhere(ctx, org, r, func(f openFile) bool {
		return slices.ContainsFunc(found, func(a attached) bool { return a.Key == f.Key })
	})
}

// closeWhere closes the open files for which should is true. It returns their names.
func (s *Store) closeWhere(ctx context.Context, org db.Org, r Reach, should func(openFile) bool) (
	names []string, err error) {
	err = s.withLockedSet(ctx, org, r, func(set openSet) error {
		if err := set.own(ctx); err != nil {
			return err
		}
		open, err := set.files(ctx)
		if err != nil {
			return err
		}
		names, err = set.close(ctx, slices.DeleteFunc(open, func(f openFile) bool { return !should(f) }))
		return err
	})
	return names, err
}

// Trim closes the files that an agent has open beyond its limit, for nobody and for each user, least recently used
// first. It returns their names.
func (s *Store) Trim(ctx context.Context, org db.Org, agentID string, l Limits) (closed []string, err error) {
	err = s.withLockedSet(ctx, org, Of(agentID), func(set openSet) error {
		owners, err := db.All[int64](ctx, set.db, `
			SELECT DISTINCT user_key FROM agent_files WHERE org = $1 AND agent_id = $2 ORDER BY user_key`, org, agentID)
		for i := 0; err == nil && i < len(owners); i++ {
			var names []string
			names, err = set.openSet(org, user{org, agentID, owners[i]}.reach()).evict(ctx, l.MaxOpen, nil)
			closed = append(closed, names...)
		}
		return err
	})
	return closed, err
}

// withLockedSet calls fn in a transaction that holds the agent's lock.
func (s *Store) withLockedSet(ctx context.Context, org db.Org, r Reach, fn func(openSet) error) error {
	return s.inTx(ctx, func(in *Store) error {
		set := in.openSet(org, r)
		return inOrder(func() error { return set.lock(ctx) }, func() error { return fn(set) })
	})
}
