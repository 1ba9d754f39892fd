package file

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/embed/lexicon"
)

// The kinds of changes, as versions have them.
const (
	created  = "created"
	modified = "modified"
	moved    = "renamed"
	deleted  = "deleted"
	restored = "restored"
	redacted = "redacted"
	dated    = "validity"
)

// editor changes files of a tree under the tree's lock.
type editor struct {
	store  *Store // in the transaction
	at     At
	tree   Tree
	files  []Entry  // those of the tree, as they are now
	change string   // the kind of a change that has no kind of its own; empty is modified
	ids    []string // of the files that were changed
	notes  []string // for the author

	removed []string // the paths of files that were deleted
}

// change calls do with an editor of a tree, and appends an event to the log of each agent that has the tree for each
// file that it changed. It returns the editor's notes.
func (s *Store) change(ctx context.Context, at At, do func(*editor) error) (notes []string, err error) {
	err = db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		in := s.With(tx)
		t, err := in.lock(ctx, at.Org, at.Tree)
		if err != nil {
			return err
		}
		e := &editor{store: in, at: at, tree: t}
		if e.files, err = db.All[Entry](ctx, tx, selectEntries, at.Org, t.Key); err != nil {
			return err
		}
		if err := do(e); err != nil {
			return err
		}
		if err := cmp.Or(e.checkSize(), e.checkIndex(ctx), e.noteTouched(ctx)); err != nil {
			return err
		}
		notes = e.notes
		return in.appendToAgents(ctx, at.Org, t, event.MemoryFileChanged, e.ids...)
	})
	return notes, err
}

// find returns the file of a path; nil if it does not exist.
func (e *editor) find(path string) *Entry {
	i := slices.IndexFunc(e.files, func(f Entry) bool { return f.Path == path })
	if i < 0 {
		return nil
	}
	return &e.files[i]
}

// below returns the file of a path, or those of a directory.
func (e *editor) below(path string) (all []Entry) {
	for _, f := range e.files {
		if within(f.Path, path) {
			all = append(all, f)
		}
	}
	return all
}

// mustBeFree returns an ErrConflict if a path is that of a file or a directory, in any case, or is below a file. What
// is in moving does not count.
func (e *editor) mustBeFree(path string, moving []Entry) error {
	folded := fold(path)
	for _, f := range e.files {
		if slices.ContainsFunc(moving, func(m Entry) bool { return m.Key == f.Key }) {
			continue
		}
		switch {
		case f.Folded == folded:
			return db.Conflict("%s exists already; nothing was changed", f.Path)
		case within(f.Folded, folded):
			return db.Conflict("%s is a directory, in which is %s; nothing was changed", path, f.Path)
		case within(folded, f.Folded):
			return db.Conflict("%s is a file, so that nothing can be in it; nothing was changed", f.Path)
		}
	}
	return nil
}

func (e *editor) checkSize() error {
	total := 0
	for _, f := range e.files {
		total += f.SizeBytes
	}
	if len(e.files) > MaxFiles || total > MaxTreeBytes {
		return db.Invalid("the tree would have %d files with %d bytes; it may have at most %d files with %d bytes: delete "+
			"or shorten some; nothing was changed", len(e.files), total, MaxFiles, MaxTreeBytes)
	}
	return nil
}

// expect returns a *MismatchError unless the file of a path has the hash.
func (e *editor) expect(ctx context.Context, path, expected string) error {
	f, err := e.store.file(ctx, e.at.Org, e.tree, path)
	if err == nil && !strings.EqualFold(f.SHA256, expected) {
		err = &MismatchError{Current: f}
	}
	return err
}

// put gives a file a text, and creates it if it is not there. A file that has the text is not changed.
func (e *editor) put(ctx context.Context, path, content, expected string) (File, error) {
	content, err := e.redacted(ctx, db.Clean(content))
	if err != nil {
		return File{}, err
	}
	content, err = e.obey(ctx, path, content)
	if err != nil {
		return File{}, err
	}
	if len(content) > MaxFileBytes {
		return File{}, db.Invalid("%s would have %d bytes; a file may have at most %d: put a part of it into another file; "+
			"nothing was changed", path, len(content), MaxFileBytes)
	}
	was := e.find(path)
	if was != nil && was.SHA256 == hashOf(content) {
		return e.store.file(ctx, e.at.Org, e.tree, path)
	}
	if expected != "" {
		if err := e.expect(ctx, path, expected); err != nil {
			return File{}, err
		}
	}
	if was != nil {
		if was.Ended {
			e.note("%s has ended: no search shows it, and no listing.", path)
		}
		return e.write(ctx, *was, path, content)
	}
	if err := e.mustBeFree(path, nil); err != nil {
		return File{}, err
	}
	return e.insert(ctx, path, content)
}

// redacted returns a text without secrets, and notes for its author that it had some.
func (e *editor) redacted(ctx context.Context, content string) (string, error) {
	if e.store.o.Redactor == nil {
		return content, nil
	}
	redacted, err := e.store.o.Redactor(ctx, e.store.db, e.at.Org)
	if err != nil {
		return "", err
	}
	clean := redacted(content)
	if clean != content {
		e.note("What looks like a secret is stored as [REDACTED:…].")
	}
	return clean, nil
}

func (e *editor) insert(ctx context.Context, path, content string) (File, error) {
	lex := lexicon.Document(path + "\n" + content)
	f, err := db.One[File](ctx, e.store.db, `
		INSERT INTO memory_files AS f (org, tree_key, path, folded, content, sha256, lex, terms)
		VALUES (@org, @tree, @path, @folded, @content, @sha256, @lex, @terms)
		RETURNING `+entryColumns+`, f.content, @author::jsonb AS provenance`,
		pgx.StrictNamedArgs{"org": e.at.Org, "tree": e.tree.Key, "path": path, "folded": fold(path), "content": content,
			"sha256": hashOf(content), "lex": lex.Vector, "terms": lexicon.Owned(0, lex.Terms), "author": e.at.Author})
	if err != nil {
		return f, err
	}
	e.files = append(e.files, f.Entry)
	return f, e.record(ctx, f, created)
}

// write stores a file's new path and text as its next version, whose kind is e.change.
func (e *editor) write(ctx context.Context, was Entry, path, content string) (File, error) {
	lex := lexicon.Document(path + "\n" + content)
	f, err := db.One[File](ctx, e.store.db, `
		UPDATE memory_files AS f
		SET path = @path, folded = @folded, content = @content, sha256 = @sha256, lex = @lex, terms = @terms,
		    version = f.version + 1, updated_at = now(), deleted_at = NULL, unembedded = true, refused_chunks = '{}'
		WHERE f.org = @org AND f.key = @key
		RETURNING `+entryColumns+`, f.content, @author::jsonb AS provenance`,
		pgx.StrictNamedArgs{"org": e.at.Org, "key": was.Key, "path": path, "folded": fold(path), "content": content,
			"sha256": hashOf(content), "lex": lex.Vector, "terms": lexicon.Owned(0, lex.Terms), "author": e.at.Author})
	if err != nil {
		return f, err
	}
	if err := e.store.dropOldVectors(ctx, e.at.Org, f.Key, path, content); err != nil {
		return f, err
	}
	if i := slices.IndexFunc(e.files, func(o Entry) bool { return o.Key == f.Key }); i >= 0 {
		e.files[i] = f.Entry
	} else {
		e.files = append(e.files, f.Entry)
	}
	return f, e.record(ctx, f, cmp.Or(e.change, modified))
}

// record stores the present version of a file.
func (e *editor) record(ctx context.Context, f File, change string) error {
	e.ids = append(e.ids, f.ID)
	return db.Exec(ctx, e.store.db, `
		INSERT INTO memory_file_versions (org, file_key, version, change, path, content, sha256, author, valid_from,
		                                  valid_until)
		VALUES (@org, @key, @version, @change, @path, @content, @sha256, @author, @from, @until)`,
		pgx.StrictNamedArgs{"org": e.at.Org, "key": f.Key, "version": f.Version, "change": change, "path": f.Path,
			"content": f.Content, "sha256": f.SHA256, "author": e.at.Author, "from": f.ValidFrom,
			"until": f.ValidUntil})
}

func (e *editor) move(ctx context.Context, f Entry, path string) error {
	if fold(f.Path) == fold(ManifestPath) || fold(path) == fold(ManifestPath) {
		return db.Invalid("%s has this path only, and no other file gets it; nothing was changed", ManifestPath)
	}
	was, err := e.store.file(ctx, e.at.Org, e.tree, f.Path)
	if err != nil || was.Path == path {
		return err
	}
	m, own, err := e.store.manifest(ctx, e.at.Org, e.tree)
	if err == nil {
		err = e.mustBeNoDirectory(path, m)
	}
	if err == nil && own {
		err = cmp.Or(m.keeps(f.Path), m.allows(path, was.Content, was.Content))
	}
	if err != nil {
		return err
	}
	e.change = moved
	_, err = e.write(ctx, f, path, was.Content)
	e.change = ""
	return err
}

// remove deletes a file; its versions stay.
func (e *editor) remove(ctx context.Context, f Entry) error {
	if fold(f.Path) == fold(ManifestPath) && e.at.Author.AgentID != "" {
		return db.Invalid("%s is the operator's; nothing was changed", ManifestPath)
	}
	m, own, err := e.store.manifest(ctx, e.at.Org, e.tree)
	if err == nil && own {
		err = m.keeps(f.Path)
	}
	if err != nil {
		return err
	}
	version, err := db.One[int](ctx, e.store.db, `
		UPDATE memory_files SET deleted_at = now(), updated_at = now(), version = version + 1
		WHERE org = $1 AND key = $2 RETURNING version`, e.at.Org, f.Key)
	if err != nil {
		return err
	}
	if err := e.store.dropOldVectors(ctx, e.at.Org, f.Key, f.Path, ""); err != nil {
		return err
	}
	e.ids, e.removed = append(e.ids, f.ID), append(e.removed, f.Path)
	e.files = slices.DeleteFunc(e.files, func(o Entry) bool { return o.Key == f.Key })
	return db.Exec(ctx, e.store.db, `
		INSERT INTO memory_file_versions (org, file_key, version, change, path, author) VALUES ($1, $2, $3, $4, $5, $6)`,
		e.at.Org, f.Key, version, deleted, f.Path, e.at.Author)
}
