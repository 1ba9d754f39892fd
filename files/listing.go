package files

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files/document"
)

// Listed is a file in an agent's listing.
type Listed struct {
	FileName  string     `db:"file_name"`
	Status    Status     `db:"status"`
	MediaType string     `db:"media_type"`
	SizeBytes int64      `db:"size_bytes"`
	Lines     int        `db:"lines"`
	IsOpen    bool       `db:"is_open"`
	Omitted   []Omission `db:"omitted"`
	Encoding  *string    `db:"encoding"`
	Failure   *string    `db:"error_message"` // why it has no text
	Sure      *float64   `db:"charset_sure"`

	ReadBy []document.ReadBy `db:"read_by"`
}

// ReadByPrograms says in one line what programs of the operator read of the file; "" if that is nothing.
func (f Listed) ReadByPrograms() string { return document.ListReadBy(f.ReadBy) }

// GuessedEncoding says in one line that the file's encoding may be wrong; "" if it is sure.
func (f Listed) GuessedEncoding() string { return document.GuessedEncoding(f.Encoding, f.Sure) }

// LeftOut says in one line what the file holds and its text does not; "" if that is nothing.
func (f Listed) LeftOut() string { return document.ListOmissions(f.Omitted) }

// Listing is a page of an agent's attached files, ordered by name.
type Listing struct {
	Files []Listed
	Total int // number of files that Include accepts, on all pages
}

// ListQuery asks for a page of an agent's attached files.
type ListQuery struct {
	Include       string // filter for folder/name, see CompileInclude; empty: all files
	Folder        string // name of a folder, in any of Unicode's canonical forms; empty: all folders
	Offset, Limit int
	Narrowing
}

// List lists an agent's attached files within a reach, by name. ErrInvalid if Include is not valid.
func (s *Store) List(ctx context.Context, org db.Org, r Reach, q ListQuery) (Listing, error) {
	var keys []int64
	var total int
	var err error
	if q.Include == "" && len(q.Filter) == 0 {
		keys, total, err = s.pageByName(ctx, org, r, q)
	} else {
		var found []namedFile
		found, err = s.includedFiles(ctx, org, r, q)
		total = len(found)
		for _, f := range found[min(q.Offset, total):min(q.Offset+q.Limit, total)] {
			keys = append(keys, f.Key)
		}
	}
	if err != nil {
		return Listing{}, err
	}
	list, err := s.listed(ctx, org, r, keys)
	return Listing{Files: list, Total: total}, err
}

// pageByName returns the keys of a page's files, and the number of all files.
func (s *Store) pageByName(ctx context.Context, org db.Org, r Reach, q ListQuery) (
	keys []int64, total int, err error) {
	args := pgx.StrictNamedArgs{"org": org, "agent": r.AgentID, "folder": q.Folder}
	where := ` WHERE a.org = @org AND d.org = @org AND a.agent_id = @agent
		AND (@folder = '' OR normalize(d.name) = normalize(@folder)) AND ` + r.Users.Where("a.user_key", args)
	total, err = db.One[int](ctx, s.db, `
		SELECT coalesce(sum((
			SELECT count(*) FROM files f WHERE f.org = @org AND f.folder_key = d.key AND f.replaces IS NULL)), 0)::bigint
		FROM agent_folders a JOIN folders d ON d.org = a.org AND d.key = a.folder_key`+where, args)
	if err != nil || q.Offset >= total {
		return nil, total, err
	}
	args["limit"], args["offset"], args["end"] = q.Limit, q.Offset, q.Offset+q.Limit
	keys, err = db.All[int64](ctx, s.db, `
		SELECT f.key
		FROM agent_folders a JOIN folders d ON d.org = a.org AND d.key = a.folder_key
		CROSS JOIN LATERAL (
			SELECT key, name FROM files
			WHERE org = @org AND folder_key = a.folder_key AND replaces IS NULL
			ORDER BY name COLLATE "C", key
			LIMIT @end
		) f`+where+`
		ORDER BY (d.name || '/' || f.name) COLLATE "C", f.key
		LIMIT @limit OFFSET @offset`, args)
	return keys, total, err
}

// namedFile is an attached file.
type namedFile struct {
	Key    int64  `db:"key"`
	Name   string `db:"name"` // folder/name
	Folder int64  `db:"folder_key"`
	Chunks int    `db:"chunks"` // 0 before its first text

	FirstChunk int64 `db:"first_chunk"` // range of its chunks' keys
	LastChunk  int64 `db:"last_chunk"`
}

// includedFiles returns, by name, the attached files that a query's Include and filter accept. If its Folder is not
// empty, they must be in the folder with that name. It reads only names that contain the longest literal text of
// Include. ErrInvalid if Include is neither valid nor the name of a file, or if the filter is not valid.
func (s *Store) includedFiles(ctx context.Context, org db.Org, r Reach, q ListQuery) ([]namedFile, error) {
	accepts, invalid := CompileInclude(q.Include)
	args := pgx.StrictNamedArgs{"org": org, "agent": r.AgentID, "folder": q.Folder, "literal": literalOf(q.Include)}
	sees := r.Users.Where("a.user_key", args)
	narrows, _, err := q.where(args)
	if err != nil {
		return nil, err
	}
	all, err := db.All[namedFile](ctx, s.db, `
		WITH attached AS MATERIALIZED (
			SELECT d.key, d.name, strpos(lower(d.name), @literal) > 0 AS has_literal
			FROM agent_folders a JOIN folders d ON d.org = a.org AND d.key = a.folder_key
			WHERE a.org = @org AND d.org = @org AND a.agent_id = @agent
			  AND (@folder = '' OR normalize(d.name) = normalize(@folder)) AND `+sees+`
		)
		SELECT f.key, d.name || '/' || f.name AS name, f.folder_key, f.chunks, coalesce(f.first_chunk, 0) AS first_chunk,
		       coalesce(f.last_chunk, 0) AS last_chunk
		FROM attached d JOIN files f ON f.folder_key = d.key AND f.replaces IS NULL
		WHERE f.org = @org AND (@literal = '' OR d.has_literal OR strpos(lower(f.name), @literal) > 0)
		  AND `+narrows, args)
	if err != nil {
		return nil, err
	}
	included := slices.DeleteFunc(all, func(f namedFile) bool { return !accepts(f.Name) })
	slices.SortFunc(included, func(a, b namedFile) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key))
	})
	if len(included) == 0 {
		return nil, invalid
	}
	return included, nil
}

// listed reads the files of a page.
func (s *Store) listed(ctx context.Context, org db.Org, r Reach, keys []int64) ([]Listed, error) {
	if len(keys) == 0 {
		return []Listed{}, nil
	}
	args := s.fileArgs(org, false)
	args["agent"], args["keys"] = r.AgentID, keys
	opened, sees := r.opened(args), r.Users.Where("a.user_key", args)
	return db.All[Listed](ctx, s.db, `
		WITH shown AS NOT MATERIALIZED (`+fileRows+` AND f.key = ANY (@keys))
		SELECT d.name || '/' || f.name AS file_name, f.status, f.media_type, f.size_bytes, f.lines, f.omitted, f.read_by,
		       f.encoding, f.charset_sure, f.error_message,
		       coalesce(o.is_open, false) AS is_open
		FROM shown f
		JOIN folders d ON d.org = @org AND d.id = f.folder_id AND d.deleted_at IS NULL
		JOIN agent_folders a ON a.org = @org AND a.folder_key = d.key AND a.agent_id = @agent AND `+sees+`
		LEFT JOIN agent_files o ON o.org = @org AND o.agent_id = @agent AND o.file_key = f.key AND `+opened+`
		ORDER BY (d.name || '/' || f.name) COLLATE "C", f.key`, args)
}
