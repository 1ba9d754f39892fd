package files

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// AgentFile is a file in a folder that is attached to an agent.
type AgentFile struct {
	ID             string     `db:"id" json:"id"` // file_agent- and the UUID of the file's own id
	FileID         string     `db:"file_id" json:"file_id"`
	FileName       string     `db:"file_name" json:"file_name"` // folder/name, as the tools name it
	FolderID       string     `db:"folder_id" json:"folder_id"`
	FolderName     string     `db:"folder_name" json:"folder_name"`
	IsOpen         bool       `db:"is_open" json:"is_open"`
	IsPinned       bool       `db:"is_pinned" json:"is_pinned"` // it stays open until it is closed
	LastAccessedAt *time.Time `db:"last_accessed_at" json:"last_accessed_at"`
	VisibleContent *string    `db:"-" json:"visible_content"` // nil if the file is closed
	StartLine      *int       `db:"-" json:"start_line"`      // first visible line, from 1
	EndLine        *int       `db:"-" json:"end_line"`
}

// agentFileColumns are the columns of an AgentFile for a file f in a folder d.
const agentFileColumns = `replace(f.id, 'file-', 'file_agent-') AS id, f.id AS file_id,
	d.name || '/' || f.name AS file_name,
	d.id AS folder_id, d.name AS folder_name`

// openRows selects the files that the agent has open for nobody, unordered.
const openRows = `
	SELECT f.created_at, f.key, ` + agentFileColumns + `, true AS is_open, o.pinned AS is_pinned,
	       o.last_used_at AS last_accessed_at
	FROM agent_files o JOIN files f ON f.org = o.org AND f.key = o.file_key
	JOIN folders d ON d.org = f.org AND d.key = f.folder_key
	WHERE o.org = @org AND f.org = @org AND o.agent_id = @agent AND o.user_key = 0 AND o.is_open AND f.replaces IS NULL`

// pageRows selects a page of each folder, with all files or only the closed ones. Together these rows contain the page
// over all folders.
func pageRows(page db.Clauses) string {
	return `
	SELECT f.created_at, f.key, ` + agentFileColumns + `, f.is_open, f.is_pinned, f.last_accessed_at
	FROM agent_folders a
	JOIN folders d ON d.org = a.org AND d.key = a.folder_key
	CROSS JOIN LATERAL (
		SELECT l.id, l.name, l.created_at, l.key, coalesce(o.is_open, false) AS is_open,
		       coalesce(o.pinned, false) AS is_pinned, o.last_used_at AS last_accessed_at
		FROM files l
		LEFT JOIN agent_files o ON o.org = @org AND o.agent_id = @agent AND o.user_key = 0 AND o.file_key = l.key
		WHERE l.org = @org AND l.folder_key = a.folder_key AND l.replaces IS NULL AND (@all OR o.is_open IS NOT TRUE)
		  AND ` + page.Where + page.Order + `
	) f
	WHERE a.org = @org AND a.agent_id = @agent`
}

// AgentFilesQuery asks for a page of the files in an agent's folders. A cursor may be the id of an AgentFile or of a
// File. The file may have been detached since, or deleted within the last day.
type AgentFilesQuery struct {
	Limits Limits
	Open   *bool // true: only open files; false: only closed ones; nil: all
	Page   db.Page
}

// AgentFiles lists the files in an agent's folders, for its operator. A file that is open for nobody has the content
// that the prompt shows. more reports whether there are further pages.
func (s *Store) AgentFiles(ctx context.Context, org db.Org, agentID string, q AgentFilesQuery) (
	list []AgentFile, more bool, err error) {
	p := q.Page
	if p.Limit = cmp.Or(p.Limit, 100); p.Limit == db.NoItems {
		return []AgentFile{}, false, nil
	}
	page := db.Page{Before: plainFileID(p.Before), After: plainFileID(p.After), Limit: p.Limit + 1,
		Ascending: p.Ascending}
	args := pgx.StrictNamedArgs{"org": org, "agent": agentID}
	type row struct {
		AgentFile
		CreatedAt any   `db:"created_at"`
		Key       int64 `db:"key"`
	}
	rows, err := db.All[row](ctx, s.db, agentFilesSQL(page, q.Open, args), args)
	if err != nil {
		return nil, false, err
	}
	if more = len(rows) > p.Limit; more {
		rows = rows[:p.Limit]
	}
	if p.Before != "" && p.After == "" {
		slices.Reverse(rows)
	}
	list = mapped(rows, func(r row) AgentFile { return r.AgentFile })
	return list, more, s.setVisible(ctx, org, agentID, q.Limits, list)
}

// agentFilesSQL returns the statement that reads a page, and adds its arguments to args.
func agentFilesSQL(p db.Page, open *bool, args pgx.StrictNamedArgs) string {
	page := p.Clauses(db.ByCreation, db.Place(`SELECT created_at, key FROM files WHERE org = @org AND id = @place`), args)
	query := openRows
	if open == nil || !*open {
		query, args["all"] = pageRows(page), open == nil
	}
	return `SELECT * FROM (` + query + `) r WHERE ` + page.Where + page.Order
}

func plainFileID(id string) string {
	if rest, ok := strings.CutPrefix(id, agentFilePrefix); ok {
		return filePrefix + rest
	}
	return id
}

// setVisible sets the content that the prompt shows of the open files in a list.
func (s *Store) setVisible(ctx context.Context, org db.Org, agentID string, l Limits, list []AgentFile) error {
	if !slices.ContainsFunc(list, func(f AgentFile) bool { return f.IsOpen }) {
		return nil
	}
	views, err := s.Views(ctx, org, Of(agentID), l)
	if err != nil {
		return err
	}
	for _, v := range views {
		for i := range list {
			if list[i].FileID == v.FileID {
				list[i].VisibleContent, list[i].StartLine, list[i].EndLine = &v.Text, &v.FirstLine, &v.LastLine
			}
		}
	}
	return nil
}

// ListState returns a text that changes whenever a file is added to, removed from or changed in the agent's attached
// folders that are within a reach. The text has no other meaning.
func (s *Store) ListState(ctx context.Context, org db.Org, r Reach) (string, error) {
	sees, args := r.sees(org, r.AgentID)
	return db.One[string](ctx, s.db, `
		SELECT concat_ws(' ', count(*), max(f.key), max(f.updated_at))
		FROM agent_folders a JOIN files f ON f.org = a.org AND f.folder_key = a.folder_key
		WHERE a.org = $1 AND f.org = $1 AND a.agent_id = $2 AND f.replaces IS NULL AND `+sees, args...)
}
