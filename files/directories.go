package files

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Directory is a folder as an agent's prompt shows it: its open files, and the first closed ones by name.
type Directory struct {
	Folder Folder
	Files  []DirectoryFile
	More   int // number of closed files that are not shown
}

// DirectoryFile is a file in a Directory. Text is its view, and Shown is the view as the prompt shows it. Both are
// empty if the file is closed.
type DirectoryFile struct {
	FileID     string     `db:"id"`
	FileName   string     `db:"name"` // folder/name
	FolderKey  int64      `db:"folder_key"`
	IsOpen     bool       `db:"is_open"`
	LastUsedAt *time.Time `db:"last_used_at"`
	Leaf       string     `db:"leaf"` // name without the folder
	Text       string     `db:"-"`
	Shown      string     `db:"-"`
	LimitChars int        `db:"-"` // limit of the view if it is cut; 0: it is whole
	Next       *int       `db:"-"` // offset of the first open line that the view does not show; nil if it shows all
}

// NextShown maps the id of each open file of directories that shows not all of its open lines → the offset of the first
// one that it does not show.
func NextShown(directories []Directory) map[string]int {
	next := map[string]int{}
	for _, d := range directories {
		for _, f := range d.Files {
			if f.Next != nil {
				next[f.FileID] = *f.Next
			}
		}
	}
	return next
}

// Directories returns an agent's folders, ordered by name, with the files that its prompt shows.
func (s *Store) Directories(ctx context.Context, org db.Org, r Reach, l Limits) ([]Directory, error) {
	type row struct {
		Folder
		FileCount int `db:"file_count"`
	}
	sees, args := r.sees(org, r.AgentID)
	folders, err := db.All[row](ctx, s.db, `
		SELECT `+folderColumns+`,
		       (SELECT count(*) FROM files f
		        WHERE f.org = $1 AND f.folder_key = d.key AND f.replaces IS NULL) AS file_count
		FROM agent_folders a JOIN folders d ON d.org = a.org AND d.key = a.folder_key
		WHERE a.org = $1 AND d.org = $1 AND a.agent_id = $2 AND `+sees+`
		ORDER BY d.name, d.key`, args...)
	if err != nil || len(folders) == 0 {
		return nil, err
	}
	shown, err := s.directoryFiles(ctx, org, r, l)
	if err != nil {
		return nil, err
	}
	directories := make([]Directory, len(folders))
	for i, f := range folders {
		directories[i] = Directory{Folder: f.Folder, Files: shown[f.Key], More: max(f.FileCount-len(shown[f.Key]), 0)}
	}
	return directories, nil
}

// directoryFiles maps folder key → the files that a prompt shows: all open files with their views, and the first closed
// files. If there are too many closed files, each folder gets the same share of the limit.
func (s *Store) directoryFiles(ctx context.Context, org db.Org, r Reach, l Limits) (
	map[int64][]DirectoryFile, error) {
	args := pgx.StrictNamedArgs{"org": org, "agent": r.AgentID}
	opened, sees := r.opened(args), r.Users.Where("a.user_key", args)
	// The limit is part of the statement's text. With a parameter, the generic plan would look more expensive than a
	// specific one, and Postgres would plan the statement again for each prompt.
	list, err := db.All[DirectoryFile](ctx, s.db, fmt.Sprintf(`
		SELECT f.id, d.name || '/' || f.name AS name, f.folder_key, true AS is_open, o.last_used_at, f.name AS leaf
		FROM agent_files o JOIN files f ON f.org = o.org AND f.key = o.file_key
		JOIN folders d ON d.org = f.org AND d.key = f.folder_key
		JOIN agent_folders a ON a.org = d.org AND a.folder_key = d.key AND a.agent_id = @agent
		WHERE o.org = @org AND a.org = @org AND o.agent_id = @agent AND o.is_open AND %[2]s AND %[3]s
		UNION ALL
		(SELECT c.id, d.name || '/' || c.name, d.key, false, c.last_used_at, c.name
		FROM agent_folders a JOIN folders d ON d.org = a.org AND d.key = a.folder_key
		CROSS JOIN LATERAL (
			SELECT f.id, f.name, f.key, o.last_used_at
			FROM files f
			LEFT JOIN agent_files o ON o.org = @org AND o.agent_id = @agent AND o.file_key = f.key AND %[2]s
			WHERE f.org = @org AND f.folder_key = d.key AND f.replaces IS NULL AND o.is_open IS NOT TRUE
			ORDER BY f.name COLLATE "C", f.key
			LIMIT %[1]d
		) c
		WHERE a.org = @org AND a.agent_id = @agent AND %[3]s
		ORDER BY row_number() OVER (PARTITION BY d.key ORDER BY c.name COLLATE "C", c.key), d.name, d.key
		LIMIT %[1]d)
		ORDER BY folder_key, leaf`, l.closedFiles(), opened, sees), args)
	if err != nil {
		return nil, err
	}
	views, err := s.Views(ctx, org, r, l)
	shown := map[int64][]DirectoryFile{}
	for _, f := range list {
		if i := slices.IndexFunc(views, func(v OpenView) bool { return v.FileID == f.FileID }); i >= 0 {
			f.Text, f.Shown = views[i].Text, views[i].Shown()
			v := views[i]
			if v.Truncated {
				f.LimitChars = v.LimitChars
			}
			if v.Truncated && v.NextOffset > 0 {
				f.Next = &v.NextOffset
			}
		}
		shown[f.FolderKey] = append(shown[f.FolderKey], f)
	}
	return shown, err
}
