package file

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Dates change the time in which a file holds. Nil and empty fields change nothing.
type Dates struct {
	From, Until  *db.Bound
	SupersededBy *string // path of the file that supersedes this one, which ends then; empty: none
	Supersedes   string  // path of a file that ends where this one begins; without From, that is now
}

// SupersededError says that another file has superseded the file already. errors.Is finds ErrConflict in it. Current is
// the file as it was read.
type SupersededError struct{ Current Entry }

func (e *SupersededError) Error() string {
	return fmt.Sprintf("%s superseded %s already; nothing was changed", *e.Current.SupersededBy, e.Current.Path)
}

// Unwrap returns ErrConflict.
func (e *SupersededError) Unwrap() error { return db.ErrConflict }

// WriteDated is Write, and also changes the time in which the file holds.
func (s *Store) WriteDated(ctx context.Context, at At, f NewFile, d Dates) (Changed, error) {
	return s.changeFile(ctx, at, f.Path, func(e *editor, _ string) (File, error) {
		written, err := e.putExpected(ctx, f)
		if err != nil {
			return written, err
		}
		return e.date(ctx, written, d)
	})
}

// Date changes the time in which a file holds. ErrInvalid if it would end before it begins, or its chain of successors
// would be a loop; *SupersededError if another file superseded it.
func (s *Store) Date(ctx context.Context, at At, path string, d Dates) (Changed, error) {
	return s.changeFile(ctx, at, path, func(e *editor, path string) (File, error) {
		f, err := e.store.file(ctx, at.Org, e.tree, path)
		if err != nil {
			return f, err
		}
		return e.date(ctx, f, d)
	})
}

// date stores the time in which a file holds as a new version, and ends the file that it supersedes.
func (e *editor) date(ctx context.Context, f File, d Dates) (File, error) {
	now, err := db.One[time.Time](ctx, e.store.db, `SELECT now()`)
	if err != nil {
		return f, err
	}
	after := f.Entry
	if d.From != nil {
		after.ValidFrom = d.From.At
	}
	if d.Until != nil {
		after.ValidUntil = d.Until.At
	}
	if d.Supersedes != "" && after.ValidFrom == nil {
		after.ValidFrom = &now
	}
	if d.SupersededBy != nil {
		if err := e.endWith(&after, *d.SupersededBy, "superseded_by", now); err != nil {
			return f, err
		}
		if d.Until != nil {
			after.ValidUntil = d.Until.At
		}
	}
	if f, err = e.setValidity(ctx, f.Entry, after); err != nil || d.Supersedes == "" {
		return f, err
	}
	path, err := ParseFile(d.Supersedes)
	if err != nil {
		return f, &db.FieldError{Field: "supersedes", Rule: err.Error()}
	}
	old := e.find(path)
	if old == nil {
		return f, &db.FieldError{Field: "supersedes", Rule: "the tree has no file " + path}
	}
	ended := *old
	if err := e.endWith(&ended, f.Path, "supersedes", now); err != nil {
		return f, err
	}
	_, err = e.setValidity(ctx, *old, ended)
	return f, err
}

// undoEnd removes the successor of f and the end that the successor set. An end before the successor's beginning is f's
// own and stays.
func (e *editor) undoEnd(f *Entry) {
	if f.Successor == nil {
		return
	}
	i := slices.IndexFunc(e.files, func(n Entry) bool { return n.Key == *f.Successor })
	if f.Successor = nil; i < 0 {
		return
	}
	begins := e.files[i].CreatedAt
	if from := e.files[i].ValidFrom; from != nil {
		begins = *from
	}
	if f.ValidUntil != nil && !f.ValidUntil.Before(begins) {
		f.ValidUntil = nil
	}
}

// endWith makes the file at path the successor of f, and ends f where the successor begins. An empty path removes the
// successor. field is the name of the request's field for errors.
func (e *editor) endWith(f *Entry, path, field string, now time.Time) error {
	if path == "" {
		e.undoEnd(f)
		return nil
	}
	path, err := ParseFile(path)
	if err != nil {
		return &db.FieldError{Field: field, Rule: err.Error()}
	}
	next := e.find(path)
	switch {
	case next == nil:
		return &db.FieldError{Field: field, Rule: "the tree has no file " + path}
	case f.Successor != nil && *f.Successor == next.Key:
		return nil
	case f.Successor != nil:
		return &SupersededError{Current: *f}
	case e.follows(f.Key, *next):
		return &db.FieldError{Field: field, Rule: path + " is the file, or the file supersedes it, if through others; a " +
			"chain cannot be a loop"}
	}
	begins := now
	if next.ValidFrom != nil {
		begins = *next.ValidFrom
	}
	if f.Successor = &next.Key; f.ValidUntil == nil || f.ValidUntil.After(begins) {
		f.ValidUntil = &begins
	}
	return nil
}

// follows reports whether the file with the key is at, or one of at's successors.
func (e *editor) follows(key int64, at Entry) bool {
	for range e.files {
		if at.Key == key {
			return true
		}
		i := slices.IndexFunc(e.files, func(f Entry) bool { return at.Successor != nil && f.Key == *at.Successor })
		if i < 0 {
			return false
		}
		at = e.files[i]
	}
	return true
}

// setValidity stores the time in which a file holds, if it changed.
func (e *editor) setValidity(ctx context.Context, before, after Entry) (File, error) {
	if after.Successor != nil && after.ValidUntil == nil {
		return File{}, &db.FieldError{Field: "valid_until", Rule: before.Path + " is superseded, so that it has an end; to " +
			"remove it, remove superseded_by too"}
	}
	if err := after.Check(); err != nil {
		return File{}, err
	}
	if same(before.ValidFrom, after.ValidFrom) && same(before.ValidUntil, after.ValidUntil) &&
		(before.Successor == nil) == (after.Successor == nil) {
		return e.store.file(ctx, e.at.Org, e.tree, before.Path)
	}
	if err := db.Exec(ctx, e.store.db, `
		UPDATE memory_files SET valid_from = @from, valid_until = @until, superseded_by = @successor,
		    version = version + 1, updated_at = now()
		WHERE org = @org AND key = @key`,
		pgx.StrictNamedArgs{"org": e.at.Org, "key": before.Key, "from": after.ValidFrom, "until": after.ValidUntil,
			"successor": after.Successor}); err != nil {
		return File{}, err
	}
	f, err := e.store.file(ctx, e.at.Org, e.tree, before.Path)
	if err != nil {
		return f, err
	}
	i := slices.IndexFunc(e.files, func(o Entry) bool { return o.Key == f.Key })
	e.files[i] = f.Entry
	return f, e.record(ctx, f, dated)
}

func same(a, b *time.Time) bool { return a == b || a != nil && b != nil && a.Equal(*b) }

// withoutEnded returns the text of an index. It drops lines that have only pointers to files outside their validity
// period.
func (s *Store) withoutEnded(ctx context.Context, org db.Org, t Tree, content string) (string, error) {
	args := pgx.StrictNamedArgs{"org": org, "tree": t.Key}
	held := db.Held{}.Where("f", args)
	hidden, err := db.All[string](ctx, s.db, `
		SELECT f.path FROM memory_files f
		WHERE f.org = @org AND f.tree_key = @tree AND f.deleted_at IS NULL AND (f.valid_from IS NOT NULL
		  OR f.valid_until IS NOT NULL) AND NOT (true`+held+`)
		ORDER BY f.path`, args)
	if err != nil || len(hidden) == 0 {
		return content, err
	}
	leads := func(p string) bool {
		return slices.ContainsFunc(candidates(p), func(path string) bool { return slices.Contains(hidden, path) })
	}
	var text strings.Builder
	for _, l := range readIndex(content) {
		if n := len(l.pointers); n == 0 || slices.ContainsFunc(l.pointers, func(p string) bool { return !leads(p) }) {
			text.WriteString(l.text + "\n")
		}
	}
	return text.String(), nil
}

// RestoreSuccessions stores which files of a restored tree superseded which, by their ids. ErrInvalid if the tree does
// not have a file, or a chain is a loop.
func (s *Store) RestoreSuccessions(ctx context.Context, org db.Org, tree string, list []db.Succession) error {
	if len(list) == 0 {
		return nil
	}
	if err := db.CheckChains(list); err != nil {
		return err
	}
	t, err := s.lock(ctx, org, tree)
	if err != nil {
		return err
	}
	ended, successors := make([]string, len(list)), make([]string, len(list))
	for i, l := range list {
		ended[i], successors[i] = l.Ended, l.By
	}
	tag, err := s.db.Exec(ctx, `
		UPDATE memory_files f SET superseded_by = n.key
		FROM unnest($3::text[], $4::text[]) AS l (ended, by) JOIN memory_files n ON n.org = $1 AND n.id = l.by
		WHERE f.org = $1 AND f.tree_key = $2 AND n.tree_key = $2 AND f.id = l.ended`, org, t.Key, ended, successors)
	if err == nil && tag.RowsAffected() != int64(len(list)) {
		return &db.FieldError{Field: "superseded_by", Rule: "the tree " + tree + " lacks a file that another one names"}
	}
	return db.Error(err)
}
