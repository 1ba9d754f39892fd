package file

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

const (
	entryColumns = `f.key, f.id, f.path, f.sha256, octet_length(f.content) AS size_bytes, f.version, f.created_at,
		f.updated_at, f.folded, f.valid_from, f.valid_until, f.superseded_by AS successor,
		coalesce(f.valid_until <= now(), false) AS ended,
		(SELECT n.path FROM memory_files n WHERE n.org = $1 AND n.key = f.superseded_by) AS superseded_by`
	selectEntries = `
		SELECT ` + entryColumns + ` FROM memory_files f
		WHERE f.org = $1 AND f.tree_key = $2 AND f.deleted_at IS NULL
		ORDER BY f.path COLLATE "C"`
	selectFiles = `
		SELECT ` + entryColumns + `, f.content, NULL::jsonb AS provenance FROM memory_files f
		WHERE f.org = $1 AND f.tree_key = $2 AND f.deleted_at IS NULL
		ORDER BY f.path COLLATE "C"`
	selectFile = `
		SELECT ` + entryColumns + `, f.content,
		       (SELECT v.author FROM memory_file_versions v
		        WHERE v.org = $1 AND v.file_key = f.key AND v.version = f.version) AS provenance
		FROM memory_files f
		WHERE f.org = $1 AND f.tree_key = $2 AND f.deleted_at IS NULL AND f.path = $3`
)

// List lists the files in a directory and below it, sorted by path. If dir is a file, that file is listed whether or
// not it holds. ErrNotFound if there is no such directory; the root always exists.
func (s *Store) List(ctx context.Context, org db.Org, tree, dir string, held db.Held) ([]Entry, error) {
	t, err := s.Tree(ctx, org, tree)
	if err != nil {
		return nil, err
	}
	if dir, err = ParsePath(dir); err != nil {
		return nil, err
	}
	args := pgx.StrictNamedArgs{"org": org, "tree": t.Key, "path": dir}
	where := held.Where("f", args)
	all, err := db.All[Entry](ctx, s.db, `
		SELECT `+db.Named(entryColumns)+` FROM memory_files f
		WHERE f.org = @org AND f.tree_key = @tree AND f.deleted_at IS NULL AND (f.path = @path OR true`+where+`)
		ORDER BY f.path COLLATE "C"`, args)
	all = slices.DeleteFunc(all, func(e Entry) bool { return !within(e.Path, dir) })
	if err == nil && len(all) == 0 && dir != Root {
		err = noPath(dir)
	}
	return all, err
}

func noPath(path string) error { return db.NotFound("the path %s does not exist", path) }

// File returns a file by its path.
func (s *Store) File(ctx context.Context, org db.Org, tree, path string) (File, error) {
	t, err := s.Tree(ctx, org, tree)
	if err != nil {
		return File{}, err
	}
	if path, err = ParseFile(path); err != nil {
		return File{}, err
	}
	return s.file(ctx, org, t, path)
}

func (s *Store) file(ctx context.Context, org db.Org, t Tree, path string) (File, error) {
	f, err := db.One[File](ctx, s.db, selectFile, org, t.Key, path)
	return f, db.OrNotFound(err, "the file %s does not exist", path)
}

// Changed is the result of a change, with notes for its author.
type Changed struct {
	File  File
	Notes []string // sentences
}

// Create creates a file that holds in a given time. ErrConflict if there is a file at its path.
func (s *Store) Create(ctx context.Context, at At, path, content string, d Dates) (Changed, error) {
	return s.changeFile(ctx, at, path, func(e *editor, path string) (File, error) {
		if e.find(path) != nil {
			return File{}, db.Conflict("%s exists already; nothing was changed. Change its text, or delete it first", path)
		}
		f, err := e.put(ctx, path, content, "")
		if err != nil {
			return f, err
		}
		return e.date(ctx, f, d)
	})
}

// Write creates a file or replaces its text. If the file has the text already, nothing changes. expected, if not empty,
// is the required SHA-256 of the current text: *MismatchError if the file has another text; ErrNotFound if there is no
// file.
func (s *Store) Write(ctx context.Context, at At, path, content, expected string) (Changed, error) {
	return s.changeFile(ctx, at, path, func(e *editor, path string) (File, error) {
		return e.put(ctx, path, content, expected)
	})
}

// Edit replaces the text of a file by the result of edit, which gets the current text.
func (s *Store) Edit(ctx context.Context, at At, path string, edit func(string) (string, error)) (Changed, error) {
	return s.changeFile(ctx, at, path, func(e *editor, path string) (File, error) {
		f, err := e.store.file(ctx, at.Org, e.tree, path)
		if err != nil {
			return f, err
		}
		content, err := edit(f.Content)
		if err != nil {
			return f, err
		}
		return e.put(ctx, path, content, "")
	})
}

// changeFile changes the file at a path.
func (s *Store) changeFile(ctx context.Context, at At, path string,
	do func(*editor, string) (File, error)) (c Changed, err error) {
	c.Notes, err = s.change(ctx, at, func(e *editor) error {
		if path, err = ParseFile(path); err != nil {
			return err
		}
		c.File, err = do(e, path)
		return err
	})
	return c, err
}

// Delete deletes a file, or a directory with everything in it. It returns the paths of the deleted files.
// *MismatchError if expected is not empty and the file's text has another SHA-256.
func (s *Store) Delete(ctx context.Context, at At, path, expected string) (deleted, notes []string, err error) {
	notes, err = s.change(ctx, at, func(e *editor) error {
		if path, err = ParsePath(path); err != nil {
			return err
		}
		if path == Root {
			return db.Invalid("%s itself cannot be deleted; name a file or a directory in it", Root)
		}
		if expected != "" {
			if err := e.expect(ctx, path, expected); err != nil {
				return err
			}
		}
		below := e.below(path)
		if len(below) == 0 {
			return noPath(path)
		}
		for _, f := range below {
			deleted = append(deleted, f.Path)
			if err := e.remove(ctx, f); err != nil {
				return err
			}
		}
		return nil
	})
	return deleted, notes, err
}

// Rename gives a file, or all files of a directory, another path. The index's pointers to them are changed, too. It
// returns the new paths. ErrConflict if something is at the new path.
func (s *Store) Rename(ctx context.Context, at At, from, to string) (renamed, notes []string, err error) {
	newPath := to
	if from, err = ParsePath(from); err != nil {
		return nil, nil, err
	}
	if to, err = ParsePath(to); err != nil {
		return nil, nil, err
	}
	if from == Root || to == Root || within(to, from) && to != from {
		return nil, nil, db.Invalid("%s cannot be renamed to %s: %s stays, and nothing moves into itself", from, to, Root)
	}
	if from == to {
		return nil, nil, db.Invalid("%s is the old path and the new path: nothing was renamed", from)
	}
	notes, err = s.change(ctx, at, func(e *editor) error {
		moving := e.below(from)
		if len(moving) == 0 {
			return noPath(from)
		}
		if e.find(from) != nil {
			if _, err := ParseFile(newPath); err != nil {
				return err
			}
		}
		if err := e.mustBeFree(to, moving); err != nil {
			return err
		}
		for _, f := range moving {
			path, err := ParseFile(to + strings.TrimPrefix(f.Path, from))
			if err != nil {
				return err
			}
			if err := e.move(ctx, f, path); err != nil {
				return err
			}
			renamed = append(renamed, path)
		}
		return e.repoint(ctx, from, to)
	})
	return renamed, notes, err
}
