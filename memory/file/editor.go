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

// The kinds of changes that versions record.
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
	store  *Store // works in the transaction
	at     At
	tree   Tree
	files  []Entry  // the tree's files, as they are now
	change string   // kind of a change without a kind of its own; empty: modified
	ids    []string // ids of the changed files
	notes  []string // for the author of the change

	removed []string // paths of the deleted files
}

// change calls do with an editor of a tree. For each file that do changes, it appends an event to the log of every
// agent that has the tree. It returns the editor's notes.
func (s *Store) change(ctx context.Context, at At, do func(*editor) error) (notes []string, err error) {
	err = db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		txStore := s.With(tx)
		t, err := txStore.lock(ctx, at.Org, at.Tree)
		if err != nil {
			return err
		}
		e := &editor{store: txStore, at: at, tree: t}
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
		return txStore.appendToAgents(ctx, at.Org, t, event.MemoryFileChanged, e.ids...)
	})
	return notes, err
}

// find returns the file at a path, or nil.
func (e *editor) find(path string) *Entry {
	i := slices.IndexFunc(e.files, func(f Entry) bool { return f.Path == path })
	if i < 0 {
		return nil
	}
	return &e.files[i]
}

// below returns the file at a path, or the files in the directory at that path.
func (e *editor) below(path string) (all []Entry) {
	for _, f := range e.files {
		if within(f.Path, path) {
			all = append(all, f)
		}
	}
	return all
}

// mustBeFree returns ErrConflict if a file or a directory has the path, in any case, or if the path is below a file.
// The files in moving are ignored.
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

// expect returns *MismatchError unless the file's text has the given hash.
func (e *editor) expect(ctx context.Context, path, expected string) error {
	f, err := e.store.file(ctx, e.at.Org, e.tree, path)
	if err == nil && !strings.EqualFold(f.SHA256, expected) {
		err = &MismatchError{Current: f}
	}
	return err
}

// put gives a file a text, and creates the file if needed. If the file has the text already, nothing changes.
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
	existing := e.find(path)
	if existing != nil && existing.SHA256 == hashOf(content) {
		return e.store.file(ctx, e.at.Org, e.tree, path)
	}
	if expected != "" {
		if err := e.expect(ctx, path, expected); err != nil {
			return File{}, err
		}
	}
	if existing != nil {
		if existing.Ended {
			e.note("%s has ended: no search shows it, and no listing.", path)
		}
		return e.write(ctx, *existing, path, content)
	}
	if err := e.mustBeFree(path, nil); err != nil {
		return File{}, err
	}
	return e.insert(ctx, path, content)
}

// redacted returns a text without secrets. If the text had some, it adds a note for the author.
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
	key, err := db.One[int64](ctx, e.store.db, `
		INSERT INTO memory_files (org, tree_key, path, folded, content, sha256, lex, terms)
		VALUES (@org, @tree, @path, @folded, @content, @sha256, @lex, @terms)
		RETURNING key`,
		pgx.StrictNamedArgs{"org": e.at.Org, "tree": e.tree.Key, "path": path, "folded": fold(path), "content": content,
			"sha256": hashOf(content), "lex": lex.Vector, "terms": lexicon.Owned(0, lex.Terms)})
	if err != nil {
		return File{}, err
	}
	f, err := e.stored(ctx, key)
	if err != nil {
		return f, err
	}
	e.files = append(e.files, f.Entry)
	return f, e.record(ctx, f, created)
}

// stored returns a file that was just written, with this edit's author.
func (e *editor) stored(ctx context.Context, key int64) (File, error) {
	return db.One[File](ctx, e.store.db, `
		SELECT `+entryColumns+`, f.content, $3::jsonb AS provenance FROM memory_files f WHERE f.org = $1 AND f.key = $2`,
		e.at.Org, key, e.at.Author)
}

// write stores a file's new path and text as its next version, with the kind e.change.
func (e *editor) write(ctx context.Context, previous Entry, path, content string) (File, error) {
	lex := lexicon.Document(path + "\n" + content)
	err := db.Exec(ctx, e.store.db, `
		UPDATE memory_files
		SET path = @path, folded = @folded, content = @content, sha256 = @sha256, lex = @lex, terms = @terms,
		    version = version + 1, updated_at = now(), deleted_at = NULL, unembedded = true, refused_chunks = '{}'
		WHERE org = @org AND key = @key`,
		pgx.StrictNamedArgs{"org": e.at.Org, "key": previous.Key, "path": path, "folded": fold(path), "content": content,
			"sha256": hashOf(content), "lex": lex.Vector, "terms": lexicon.Owned(0, lex.Terms)})
	if err != nil {
		return File{}, err
	}
	f, err := e.stored(ctx, previous.Key)
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

// record stores the current state of a file as a version.
func (e *editor) record(ctx context.Context, f File, change string) error {
	e.ids = append(e.ids, f.ID)
	insert := db.Insert
	if change == redacted {
		insert = db.InsertBeyond
	}
	return insert(ctx, e.store.db, "memory_file_versions", `
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
	previous, err := e.store.file(ctx, e.at.Org, e.tree, f.Path)
	if err != nil || previous.Path == path {
		return err
	}
	m, stored, err := e.store.manifest(ctx, e.at.Org, e.tree)
	if err == nil {
		err = e.mustBeNoDirectory(path, m)
	}
	if err == nil && stored {
		err = cmp.Or(m.keeps(f.Path), m.allows(path, previous.Content, previous.Content))
	}
	if err != nil {
		return err
	}
	e.change = moved
	_, err = e.write(ctx, f, path, previous.Content)
	e.change = ""
	return err
}

// remove deletes a file. Its versions stay.
func (e *editor) remove(ctx context.Context, f Entry) error {
	if fold(f.Path) == fold(ManifestPath) && e.at.Author.AgentID != "" {
		return db.Invalid("%s is the operator's; nothing was changed", ManifestPath)
	}
	m, stored, err := e.store.manifest(ctx, e.at.Org, e.tree)
	if err == nil && stored {
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
	return db.Insert(ctx, e.store.db, "memory_file_versions", `
		INSERT INTO memory_file_versions (org, file_key, version, change, path, author) VALUES ($1, $2, $3, $4, $5, $6)`,
		e.at.Org, f.Key, version, deleted, f.Path, e.at.Author)
}
