package file

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// redactedMark replaces a redacted text.
const redactedMark = "[REDACTED]"

// Redaction says what a redaction changed.
type Redaction struct {
	Files    []string `json:"files" doc:"The paths of the files whose present text was changed."`
	Versions int      `json:"versions" doc:"How many versions were changed."`
}

// Redact replaces a text by [REDACTED] in all files of a tree and all their versions, including those of deleted files.
// ErrInvalid if the text is too short, or occurs in a path.
func (s *Store) Redact(ctx context.Context, at At, text string) (r Redaction, err error) {
	if text = db.Clean(text); len(strings.TrimSpace(text)) < 4 || strings.Contains(redactedMark, text) {
		return r, db.Invalid("the text to redact must have at least 4 characters, and not be part of %s", redactedMark)
	}
	r.Files = []string{}
	_, err = s.change(ctx, at, func(e *editor) error {
		d := e.store.db
		named, err := db.All[string](ctx, d, `
			SELECT f.path FROM memory_files f WHERE f.org = $1 AND f.tree_key = $2 AND (strpos(f.path, $3) > 0 OR EXISTS (
				SELECT FROM memory_file_versions v WHERE v.org = $1 AND v.file_key = f.key AND strpos(v.path, $3) > 0))
			ORDER BY f.path, f.key`, at.Org, e.tree.Key, text)
		if err != nil {
			return err
		}
		if len(named) > 0 {
			return db.Invalid("the text is part of paths, which a redaction does not change; nothing was changed. Delete the "+
				"tree, or redact another part: %s", strings.Join(named, ", "))
		}
		for _, f := range e.below(Root) {
			if err := e.redact(ctx, f, text, &r); err != nil {
				return err
			}
		}
		if err := db.Resize(ctx, d.(pgx.Tx), db.Rows{Table: "memory_file_versions", Where: `r.file_key IN (
			SELECT key FROM memory_files WHERE org = $1 AND tree_key = $2)`, Args: []any{at.Org, e.tree.Key}}, func() error {
			r.Versions, err = e.store.redactVersions(ctx, at.Org, e.tree.Key, text)
			return err
		}); err != nil {
			return err
		}
		return e.store.redactDeleted(ctx, at.Org, e.tree.Key, text)
	})
	return r, err
}

// redact redacts the current text of a file, as a new version.
func (e *editor) redact(ctx context.Context, entry Entry, text string, r *Redaction) error {
	f, err := e.store.file(ctx, e.at.Org, e.tree, entry.Path)
	if err != nil || !strings.Contains(f.Content, text) {
		return err
	}
	e.change = redacted
	r.Files = append(r.Files, f.Path)
	_, err = e.write(ctx, entry, f.Path, strings.ReplaceAll(f.Content, text, redactedMark))
	return err
}

// redactVersions replaces a text in the versions of a tree's files, one after the other, and returns how many have it.
func (s *Store) redactVersions(ctx context.Context, org db.Org, tree int64, text string) (int, error) {
	type version struct {
		File    int64 `db:"file_key"`
		Version int   `db:"version"`
	}
	versions, err := db.All[version](ctx, s.db, `
		SELECT v.file_key, v.version FROM memory_file_versions v JOIN memory_files f ON f.org = v.org AND f.key = v.file_key
		WHERE v.org = $1 AND f.tree_key = $2 AND strpos(v.content, $3) > 0`, org, tree, text)
	for _, v := range versions {
		content, err := db.One[string](ctx, s.db, `
			SELECT content FROM memory_file_versions WHERE org = $1 AND file_key = $2 AND version = $3`,
			org, v.File, v.Version)
		if err != nil {
			return 0, err
		}
		content = strings.ReplaceAll(content, text, redactedMark)
		if err := db.Exec(ctx, s.db, `
			UPDATE memory_file_versions SET content = $4, sha256 = $5, redacted = true
			WHERE org = $1 AND file_key = $2 AND version = $3`,
			org, v.File, v.Version, content, hashOf(content)); err != nil {
			return 0, err
		}
	}
	return len(versions), err
}

// redactDeleted replaces a text in the last texts of a tree's deleted files.
func (s *Store) redactDeleted(ctx context.Context, org db.Org, tree int64, text string) error {
	type deleted struct {
		Key     int64  `db:"key"`
		Content string `db:"content"`
	}
	files, err := db.All[deleted](ctx, s.db, `
		SELECT key, content FROM memory_files
		WHERE org = $1 AND tree_key = $2 AND deleted_at IS NOT NULL AND strpos(content, $3) > 0`, org, tree, text)
	for _, f := range files {
		if err == nil {
			content := strings.ReplaceAll(f.Content, text, redactedMark)
			err = db.Exec(ctx, s.db, `UPDATE memory_files SET content = $3, sha256 = $4 WHERE org = $1 AND key = $2`,
				org, f.Key, content, hashOf(content))
		}
	}
	return err
}
