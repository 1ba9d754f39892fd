package files

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

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

// List lists an agent's attached files by name, those that the pattern (a glob or a regular expression on folder/name) fits and that
// are in the named folder; both may be empty.
func (s *Store) List(ctx context.Context, org db.Org, agentID, pattern, folder string, offset, limit int) (Listing, error) {
	var keys []int64
	var total int
	var err error
	if pattern == "" {
		keys, total, err = s.pageByName(ctx, org, agentID, folder, offset, limit)
	} else {
		var found []namedFile
		found, err = s.includedFiles(ctx, org, agentID, folder, pattern)
		total = len(found)
		for _, f := range found[min(offset, total):min(offset+limit, total)] {
			keys = append(keys, f.Key)
		}
	}
	if err != nil {
		return Listing{}, err
	}
	list, err := s.listed(ctx, org, agentID, keys)
	return Listing{Files: list, Total: total}, err
}

// pageByName reads the keys of a page and the number of all files.
func (s *Store) pageByName(ctx context.Context, org db.Org, agentID, folder string, offset, limit int) (keys []int64, total int, err error) {
	total, err = db.One[int](ctx, s.db, `
		SELECT coalesce(sum((SELECT count(*) FROM files f WHERE f.folder_key = d.key AND f.replaces IS NULL)), 0)::bigint
		FROM agent_folders a JOIN folders d ON d.key = a.folder_key
		WHERE a.org = $1 AND d.org = $1 AND a.agent_id = $2 AND ($3 = '' OR d.name = $3)`, org, agentID, folder)
	if err != nil || offset >= total {
		return nil, total, err
	}
	keys, err = db.All[int64](ctx, s.db, `
		SELECT f.key
		FROM agent_folders a JOIN folders d ON d.key = a.folder_key
		CROSS JOIN LATERAL (
			SELECT key, name FROM files
			WHERE folder_key = a.folder_key AND replaces IS NULL
			ORDER BY name COLLATE "C", key
			LIMIT @end
		) f
		WHERE a.org = @org AND d.org = @org AND a.agent_id = @agent AND (@folder = '' OR d.name = @folder)
		ORDER BY (d.name || '/' || f.name) COLLATE "C", f.key
		LIMIT @limit OFFSET @offset`,
		pgx.StrictNamedArgs{"org": org, "agent": agentID, "folder": folder, "limit": limit, "offset": offset, "end": offset + limit})
	return keys, total, err
}

// namedFile is an attached file.
type namedFile struct {
	Key        int64
	Name       string // folder/name
	Generation int    // 0 where the file has no text yet
}

// includedFiles returns the attached files, by name, that include accepts and that are in the named folder, or in any if it is "". It
// reads the name of every attached file. ErrInvalid if include is not valid, unless it is the name of a file.
func (s *Store) includedFiles(ctx context.Context, org db.Org, agentID, folder, include string) ([]namedFile, error) {
	accepts, invalid := CompileInclude(include)
	rows, err := s.db.Query(ctx, `
		SELECT f.key, d.name || '/' || f.name AS name, f.generation
		FROM agent_folders a JOIN folders d ON d.key = a.folder_key JOIN files f ON f.folder_key = a.folder_key AND f.replaces IS NULL
		WHERE a.org = $1 AND d.org = $1 AND f.org = $1 AND a.agent_id = $2 AND ($3 = '' OR d.name = $3)`, org, agentID, folder)
	if err != nil {
		return nil, db.Error(err)
	}
	var included []namedFile
	var f namedFile
	_, err = pgx.ForEachRow(rows, []any{&f.Key, &f.Name, &f.Generation}, func() error {
		if accepts(f.Name) {
			included = append(included, f)
		}
		return nil
	})
	slices.SortFunc(included, func(a, b namedFile) int { return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key)) })
	if err == nil && len(included) == 0 {
		return nil, invalid
	}
	return included, db.Error(err)
}

// listed reads the files of a page as they are listed.
func (s *Store) listed(ctx context.Context, org db.Org, agentID string, keys []int64) ([]Listed, error) {
	if len(keys) == 0 {
		return []Listed{}, nil
	}
	args := s.fileArgs(org, false)
	args["agent"], args["keys"] = agentID, keys
	return db.All[Listed](ctx, s.db, `
		WITH shown AS NOT MATERIALIZED (`+fileRows+` AND f.key = ANY (@keys))
		SELECT d.name || '/' || f.name AS file_name, f.status, f.media_type, f.size_bytes, f.lines, coalesce(o.is_open, false) AS is_open
		FROM shown f
		JOIN folders d ON d.id = f.folder_id
		JOIN agent_folders a ON a.folder_key = d.key AND a.agent_id = @agent
		LEFT JOIN agent_files o ON o.org = @org AND o.agent_id = @agent AND o.file_key = f.key
		ORDER BY (d.name || '/' || f.name) COLLATE "C", f.key`, args)
}
