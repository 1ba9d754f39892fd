package file

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/loci-memory/loci/db"
)

// Version is a file as it was after one of its changes.
type Version struct {
	Version  int           `db:"version" json:"version"`
	Change   string        `db:"change" json:"change" enum:"created,modified,renamed,deleted,restored,redacted,validity"`
	Path     string        `db:"path" json:"path"`
	Content  *string       `db:"content" json:"content" doc:"null in a deletion."`
	SHA256   *string       `db:"sha256" json:"sha256"`
	Redacted bool          `db:"redacted" json:"redacted" doc:"A text was taken out of it."`
	Author   db.Provenance `db:"author" json:"author"`
	At       time.Time     `db:"at" json:"at"`
	db.Validity
}

// Of names a file: by its path if it is not deleted, or by its id.
type Of struct{ Path, ID string }

// find returns a file. A deleted file is found only by its id.
func (s *Store) find(ctx context.Context, org db.Org, t Tree, of Of) (Entry, error) {
	if of.ID != "" {
		e, err := db.One[Entry](ctx, s.db, `
			SELECT `+entryColumns+` FROM memory_files f WHERE f.org = $1 AND f.tree_key = $2 AND f.id = $3`, org, t.Key, of.ID)
		return e, db.OrNotFound(err, "the tree has no file %s", db.Short(of.ID))
	}
	path, err := ParseFile(of.Path)
	if err != nil {
		return Entry{}, err
	}
	f, err := s.file(ctx, org, t, path)
	return f.Entry, err
}

const selectVersions = `
	SELECT version, change, path, content, sha256, redacted, author, at, valid_from, valid_until
	FROM memory_file_versions
	WHERE org = $1 AND file_key = $2 AND `

// Versions lists at most limit versions of a file, newest first. If before is not 0, it lists versions below before.
func (s *Store) Versions(ctx context.Context, at At, of Of, before, limit int) ([]Version, error) {
	e, err := s.entry(ctx, at, of)
	if err != nil {
		return nil, err
	}
	return db.All[Version](ctx, s.db, selectVersions+`($3 = 0 OR version < $3)
		ORDER BY version DESC
		LIMIT $4`, at.Org, e.Key, before, limit)
}

func (s *Store) entry(ctx context.Context, at At, of Of) (Entry, error) {
	t, err := s.Tree(ctx, at.Org, at.Tree)
	if err != nil {
		return Entry{}, err
	}
	return s.find(ctx, at.Org, t, of)
}

// Version returns one version of a file.
func (s *Store) Version(ctx context.Context, at At, of Of, version int) (Version, error) {
	e, err := s.entry(ctx, at, of)
	if err != nil {
		return Version{}, err
	}
	return s.version(ctx, at.Org, e, version)
}

func (s *Store) version(ctx context.Context, org db.Org, e Entry, version int) (Version, error) {
	v, err := db.One[Version](ctx, s.db, selectVersions+`version = $3`, org, e.Key, version)
	return v, db.OrNotFound(err, "%s has no version %d; its versions are 1 to %d", e.Path, version, e.Version)
}

// Diff returns how the text of a file changed between two versions, as a unified diff. It is empty if the texts are
// equal.
func (s *Store) Diff(ctx context.Context, at At, of Of, from, to int) (string, error) {
	e, err := s.entry(ctx, at, of)
	if err != nil {
		return "", err
	}
	a, err := s.version(ctx, at.Org, e, from)
	if err != nil {
		return "", err
	}
	b, err := s.version(ctx, at.Org, e, to)
	if err != nil {
		return "", err
	}
	return difference(a.name(), b.name(), a.text(), b.text())
}

// difference returns a unified diff of two texts.
func difference(from, to, a, b string) (string, error) {
	return difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: lineEnds(a), B: lineEnds(b), FromFile: from, ToFile: to,
		Context: 3})
}

// lineEnds returns the lines of a text with their line ends, as a diff needs them.
func lineEnds(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	last := len(lines) - 1
	if lines[last] == "" {
		return lines[:last]
	}
	lines[last] += "\n\\ No newline at end of file\n"
	return lines
}

func (v Version) name() string { return fmt.Sprintf("%s@%d", v.Path, v.Version) }

func (v Version) text() string {
	if v.Content == nil {
		return ""
	}
	return *v.Content
}

// Restore gives a file the text of one of its versions, as a new version. A deleted file is named by its id, and comes
// back at its former path. *MismatchError if expected is not empty and the current text has another SHA-256.
func (s *Store) Restore(ctx context.Context, at At, of Of, version int, expected string) (c Changed, err error) {
	c.Notes, err = s.change(ctx, at, func(e *editor) error {
		entry, err := e.store.find(ctx, at.Org, e.tree, of)
		if err != nil {
			return err
		}
		v, err := e.store.version(ctx, at.Org, entry, version)
		if err != nil {
			return err
		}
		if v.Content == nil {
			return db.Invalid("version %d of %s is its deletion; restore another one", version, v.Path)
		}
		e.change = restored
		if e.find(entry.Path) != nil && e.find(entry.Path).Key == entry.Key {
			c.File, err = e.put(ctx, entry.Path, *v.Content, expected)
			return err
		}
		c.File, err = e.bringBack(ctx, entry, *v.Content, expected)
		return err
	})
	return c, err
}

// bringBack restores a deleted file.
func (e *editor) bringBack(ctx context.Context, entry Entry, content, expected string) (File, error) {
	if expected != "" {
		return File{}, db.Conflict("%s is deleted; nothing was changed. Restore it without expected_sha256", entry.Path)
	}
	if err := e.mustBeFree(entry.Path, nil); err != nil {
		return File{}, err
	}
	content, err := e.obey(ctx, entry.Path, content)
	if err != nil {
		return File{}, err
	}
	return e.write(ctx, entry, entry.Path, content)
}
