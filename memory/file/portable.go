package file

import (
	"cmp"
	"context"
	"iter"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/lexicon"
)

// PortableTree is the tree of an agent in the file of the agent. Its files follow it.
type PortableTree struct {
	Tree
	AgentID    string    `db:"agent_id" json:"agent_id"`
	ReadOnly   bool      `db:"read_only" json:"read_only"`
	AttachedAt time.Time `db:"attached_at" json:"attached_at"`
}

// PortableFile is a file of a tree, possibly deleted, in the file of an agent. Its versions follow it.
type PortableFile struct {
	TreeID    string     `db:"tree_id" json:"tree_id"`
	ID        string     `db:"id" json:"id"`
	Path      string     `db:"path" json:"path"`
	Content   string     `db:"content" json:"content"`
	Version   int        `db:"version" json:"version"`
	CreatedAt time.Time  `db:"created_at" json:"created_at"`
	UpdatedAt time.Time  `db:"updated_at" json:"updated_at"`
	DeletedAt *time.Time `db:"deleted_at" json:"deleted_at"`

	db.Validity
	SupersededBy *string `db:"superseded_by" json:"superseded_by"` // id of a file of the same tree
}

// PortableVersion is a version of a file in the file of an agent.
type PortableVersion struct {
	FileID string `json:"file_id"`
	Version
}

// ExportTrees lists the tree of an agent, if it has one, and then those that it keeps for users, which name no agent.
func (s *Store) ExportTrees(ctx context.Context, org db.Org, agentID string) ([]PortableTree, error) {
	trees, err := db.All[PortableTree](ctx, s.db, `
		SELECT `+treeColumns+`, a.agent_id, a.read_only, a.attached_at
		FROM agent_memory_trees a JOIN memory_trees t ON t.org = a.org AND t.key = a.tree_key
		WHERE a.org = $1 AND t.org = $1 AND a.agent_id = $2
		UNION ALL
		SELECT `+treeColumns+`, '' AS agent_id, false AS read_only, x.attached_at
		FROM user_memory_trees x JOIN memory_trees t ON t.org = x.org AND t.key = x.tree_key
		WHERE x.org = $1 AND t.org = $1 AND x.agent_id = $2`, org, agentID)
	for i := range trees {
		trees[i].Vectors = nil // they are computed again
	}
	return trees, err
}

// ExportFiles lists the files of a tree, including deleted ones, oldest first.
func (s *Store) ExportFiles(ctx context.Context, org db.Org, t PortableTree) ([]PortableFile, error) {
	return db.All[PortableFile](ctx, s.db, `
		SELECT $3::text AS tree_id, f.id, f.path, f.content, f.version, f.created_at, f.updated_at, f.deleted_at,
		       f.valid_from, f.valid_until,
		       (SELECT n.id FROM memory_files n WHERE n.org = $1 AND n.key = f.superseded_by) AS superseded_by
		FROM memory_files f
		WHERE f.org = $1 AND f.tree_key = $2
		ORDER BY f.key`, org, t.Key, t.ID)
}

// exportPage is how many versions ExportVersions reads at a time.
const exportPage = 50

// ExportVersions yields the versions of a file, oldest first. It stops after the first error.
func (s *Store) ExportVersions(ctx context.Context, org db.Org, f PortableFile) iter.Seq2[PortableVersion, error] {
	return func(yield func(PortableVersion, error) bool) {
		e, err := s.entry(ctx, At{Org: org, Tree: f.TreeID}, Of{ID: f.ID})
		for from := 1; err == nil && from <= f.Version; from += exportPage {
			var page []Version
			page, err = db.All[Version](ctx, s.db, selectVersions+`version >= $3
				ORDER BY version
				LIMIT $4`, org, e.Key, from, exportPage)
			for _, v := range page {
				if !yield(PortableVersion{f.ID, v}, nil) {
					return
				}
			}
		}
		if err != nil {
			yield(PortableVersion{}, err)
		}
	}
}

// RestoreTree creates a tree under its stored id, without files, and attaches it to its agent if AgentID is not empty.
// ErrInvalid if it breaks a rule.
func (s *Store) RestoreTree(ctx context.Context, org db.Org, t PortableTree) error {
	if err := (TreeUpdate{Name: &t.Name, Description: t.Description, Rules: &t.Rules}).check(); err != nil {
		return err
	}
	key, err := db.One[int64](ctx, s.db, `
		INSERT INTO memory_trees (org, id, name, description, rules, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING key`,
		org, t.ID, t.Name, t.Description, t.Rules, t.CreatedAt, t.UpdatedAt)
	if err != nil || t.AgentID == "" {
		return err
	}
	return db.Exec(ctx, s.db, `
		INSERT INTO agent_memory_trees (org, agent_id, tree_key, read_only, attached_at) VALUES ($1, $2, $3, $4, $5)`,
		org, t.AgentID, key, t.ReadOnly, t.AttachedAt)
}

// RestoreFile creates a file of a restored tree under its stored id, without its versions and its successor. ErrInvalid
// if it breaks a rule for all files.
func (s *Store) RestoreFile(ctx context.Context, org db.Org, f PortableFile) error {
	if err := cmp.Or(checkPath(f.Path), checkText(f.Path, f.Content), f.Check()); err != nil {
		return err
	}
	if f.Version < 1 {
		return db.Invalid("the version of %s is %d; it must be at least 1", f.Path, f.Version)
	}
	if f.SupersededBy != nil && f.ValidUntil == nil {
		return &db.FieldError{Field: "valid_until", Rule: f.Path + " is superseded, so that it has an end"}
	}
	t, err := s.Tree(ctx, org, f.TreeID)
	if err != nil {
		return err
	}
	if err := s.checkRoom(ctx, org, t, f); err != nil {
		return err
	}
	lex := lexicon.Document(f.Path + "\n" + f.Content)
	return db.Exec(ctx, s.db, `
		INSERT INTO memory_files (org, id, tree_key, path, folded, content, sha256, version, lex, terms, created_at,
		                          updated_at, deleted_at, valid_from, valid_until)
		VALUES (@org, @id, @tree, @path, @folded, @content, @sha256, @version, @lex, @terms, @created, @updated, @deleted,
		        @from, @until)`,
		pgx.StrictNamedArgs{"org": org, "id": f.ID, "tree": t.Key, "path": f.Path, "folded": fold(f.Path),
			"content": f.Content, "sha256": hashOf(f.Content), "version": f.Version, "lex": lex.Vector,
			"terms": lexicon.Owned(0, lex.Terms), "created": f.CreatedAt, "updated": f.UpdatedAt, "deleted": f.DeletedAt,
			"from": f.ValidFrom, "until": f.ValidUntil})
}

// checkRoom returns ErrInvalid or ErrConflict if the tree has no room for a file.
func (s *Store) checkRoom(ctx context.Context, org db.Org, t Tree, f PortableFile) (err error) {
	if f.DeletedAt != nil {
		return nil
	}
	e := &editor{store: s, at: At{Org: org, Tree: t.ID}, tree: t}
	if e.files, err = db.All[Entry](ctx, s.db, selectEntries, org, t.Key); err != nil {
		return err
	}
	if err := e.mustBeFree(f.Path, nil); err != nil {
		return err
	}
	e.files = append(e.files, Entry{SizeBytes: len(f.Content)})
	return e.checkSize()
}

// checkPath returns ErrInvalid unless path is a valid path of a file, in its only form.
func checkPath(path string) error {
	parsed, err := ParseFile(path)
	if err == nil && parsed != path {
		err = db.Invalid("the path %q must be written as %s", db.Short(path), parsed)
	}
	return err
}

// checkText returns ErrInvalid if a file may not have the text.
func checkText(path, content string) error {
	if !utf8.ValidString(content) || len(content) > MaxFileBytes {
		return db.Invalid("%s has %d bytes; a file has at most %d, in UTF-8", path, len(content), MaxFileBytes)
	}
	return nil
}

// RestoreVersion stores a version of a restored file. ErrInvalid if it breaks a rule.
func (s *Store) RestoreVersion(ctx context.Context, org db.Org, tree string, v PortableVersion) error {
	e, err := s.entry(ctx, At{Org: org, Tree: tree}, Of{ID: v.FileID})
	if err != nil {
		return err
	}
	if err := cmp.Or(checkPath(v.Path), checkText(v.Path, v.text())); err != nil {
		return err
	}
	if v.Version.Version < 1 || v.Version.Version > e.Version || (v.Content == nil) != (v.Change == deleted) {
		return db.Invalid("version %d of %s is not from 1 to that of the file, %d, or is a deletion with a text",
			v.Version.Version, v.Path, e.Version)
	}
	var sum *string
	if v.Content != nil {
		sum = new(hashOf(*v.Content))
	}
	return db.Insert(ctx, s.db, "memory_file_versions", `
		INSERT INTO memory_file_versions (org, file_key, version, change, path, content, sha256, redacted, author, at,
		                                  valid_from, valid_until)
		VALUES (@org, @key, @version, @change, @path, @content, @sha256, @redacted, @author, @at, @from, @until)`,
		pgx.StrictNamedArgs{"org": org, "key": e.Key, "version": v.Version.Version, "change": v.Change, "path": v.Path,
			"content": v.Content, "sha256": sum, "redacted": v.Redacted, "author": v.Author, "at": v.At,
			"from": v.ValidFrom, "until": v.ValidUntil})
}

// CheckVersions returns ErrInvalid unless a restored file has all its versions.
func (s *Store) CheckVersions(ctx context.Context, org db.Org, f PortableFile) error {
	missing, err := db.One[int](ctx, s.db, `
		SELECT f.version - (SELECT count(*) FROM memory_file_versions v WHERE v.org = $1 AND v.file_key = f.key)
		FROM memory_files f WHERE f.org = $1 AND f.id = $2`, org, f.ID)
	if err == nil && missing != 0 {
		err = db.Invalid("%s lacks %d of its versions", f.Path, missing)
	}
	return err
}
