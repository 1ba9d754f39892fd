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

// AgentFile is a file as an agent has it: attached through a folder, open or closed.
type AgentFile struct {
	ID             string     `db:"id" json:"id"` // file_agent- and the file's own UUID
	FileID         string     `db:"file_id" json:"file_id"`
	FileName       string     `db:"file_name" json:"file_name"` // folder/name, as the tools know it
	FolderID       string     `db:"folder_id" json:"folder_id"`
	FolderName     string     `db:"folder_name" json:"folder_name"`
	IsOpen         bool       `db:"is_open" json:"is_open"`
	LastAccessedAt *time.Time `db:"last_accessed_at" json:"last_accessed_at"`
	VisibleContent *string    `db:"-" json:"visible_content"` // nil unless open
	StartLine      *int       `db:"-" json:"start_line"`      // 1-based, of what is visible
	EndLine        *int       `db:"-" json:"end_line"`
}

// agentFileID is what the ids of an agent's files begin with, where those of files begin with fileID.
const (
	agentFileID = "file_agent-"
	fileID      = "file-"
)

// The files of an agent's folders as they are listed, o what the agent had open of them.
const agentFileColumns = `replace(f.id, 'file-', 'file_agent-') AS id, f.id AS file_id, d.name || '/' || f.name AS file_name,
	d.id AS folder_id, d.name AS folder_name`

// openRows are those that are open, in no order.
const openRows = `
	SELECT f.created_at, f.key, ` + agentFileColumns + `, true AS is_open, o.last_used_at AS last_accessed_at
	FROM agent_files o JOIN files f ON f.key = o.file_key JOIN folders d ON d.key = f.folder_key
	WHERE o.org = @org AND o.agent_id = @agent AND o.is_open AND f.replaces IS NULL`

// pageRows reads a page of each folder, of all files or of those that are not open: the page of all is among them.
func pageRows(page db.Stretch) string {
	return `
	SELECT f.created_at, f.key, ` + agentFileColumns + `, f.is_open, f.last_accessed_at
	FROM agent_folders a
	JOIN folders d ON d.key = a.folder_key
	CROSS JOIN LATERAL (
		SELECT l.id, l.name, l.created_at, l.key, coalesce(o.is_open, false) AS is_open, o.last_used_at AS last_accessed_at
		FROM files l LEFT JOIN agent_files o ON o.org = @org AND o.agent_id = @agent AND o.file_key = l.key
		WHERE l.org = @org AND l.folder_key = a.folder_key AND l.replaces IS NULL AND (@all OR o.is_open IS NOT TRUE)
		  AND ` + page.Where + page.Order + `
	) f
	WHERE a.org = @org AND a.agent_id = @agent`
}

// AgentFiles lists the files of an agent's folders, those that are open or closed if open is not nil. The open ones carry what the
// prompt shows of them. more says whether the list goes on. A cursor may be a file's own id, and one of a file that was detached, or
// deleted within the last day.
func (s *Store) AgentFiles(ctx context.Context, org db.Org, agentID string, l Limits, open *bool, p db.Page) (list []AgentFile, more bool, err error) {
	p.Limit = cmp.Or(p.Limit, 100)
	asked := db.Page{Before: plainFileID(p.Before), After: plainFileID(p.After), Limit: p.Limit + 1, Ascending: p.Ascending}
	args := pgx.StrictNamedArgs{"org": org, "agent": agentID}
	type row struct {
		AgentFile
		CreatedAt any   `db:"created_at"`
		Key       int64 `db:"key"`
	}
	rows, err := db.All[row](ctx, s.db, agentFilesSQL(asked, open, args), args)
	if err != nil {
		return nil, false, err
	}
	if more = len(rows) > p.Limit; more {
		rows = rows[:p.Limit]
	}
	if p.Before != "" && p.After == "" {
		slices.Reverse(rows)
	}
	list = make([]AgentFile, len(rows))
	for i, r := range rows {
		list[i] = r.AgentFile
	}
	return list, more, s.show(ctx, org, agentID, l, list)
}

// agentFilesSQL lists a page in the order in which it is read.
func agentFilesSQL(p db.Page, open *bool, args pgx.StrictNamedArgs) string {
	page := p.Stretch(db.ByCreation, db.Place(`SELECT created_at, key FROM files WHERE org = @org AND id = @place`), args)
	query := openRows
	if open == nil || !*open {
		query, args["all"] = pageRows(page), open == nil
	}
	return `SELECT * FROM (` + query + `) r WHERE ` + page.Where + page.Order
}

func plainFileID(id string) string {
	if rest, ok := strings.CutPrefix(id, agentFileID); ok {
		return fileID + rest
	}
	return id
}

// show fills in what is visible of the open files among a list.
func (s *Store) show(ctx context.Context, org db.Org, agentID string, l Limits, list []AgentFile) error {
	if !slices.ContainsFunc(list, func(f AgentFile) bool { return f.IsOpen }) {
		return nil
	}
	views, err := s.Views(ctx, org, agentID, l)
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
