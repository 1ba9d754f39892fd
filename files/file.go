package files

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/files/document"
)

// Status is the stage of a file's processing. It is derived from the work that is left.
type Status string

// The stages of a file. Completed and Failed are final, unless the file is parsed again.
const (
	Pending   Status = "pending"
	Parsing   Status = "parsing"
	Embedding Status = "embedding"
	Completed Status = "completed"
	Failed    Status = "error"
)

// Omission is what a document holds of one kind and its text does not.
type Omission = document.Omission

// File is one uploaded document.
type File struct {
	Key              int64     `db:"key" json:"-"`
	ID               string    `db:"id" json:"id"`
	FolderID         string    `db:"folder_id" json:"source_id"`
	Name             string    `db:"name" json:"file_name"`
	OriginalName     string    `db:"original_name" json:"original_file_name"`
	Path             *string   `db:"-" json:"file_path"`
	MediaType        string    `db:"media_type" json:"file_type"`
	SizeBytes        int64     `db:"size_bytes" json:"file_size"`
	CreationDate     *string   `db:"-" json:"file_creation_date"`
	LastModifiedDate *string   `db:"-" json:"file_last_modified_date"`
	Status           Status    `db:"status" json:"processing_status" enum:"pending,parsing,embedding,completed,error"`
	ErrorMessage     *string   `db:"error_message" json:"error_message"`
	TotalChunks      int       `db:"total_chunks" json:"total_chunks"`
	ChunksEmbedded   int       `db:"chunks_embedded" json:"chunks_embedded"`
	Lines            int       `db:"lines" json:"total_lines"`
	TotalPages       *int      `db:"total_pages" json:"total_pages"` // pages, slides or sheets; nil if the format has none
	Content          *string   `db:"content" json:"content"`
	CreatedAt        time.Time `db:"created_at" json:"created_at"`
	UpdatedAt        time.Time `db:"updated_at" json:"updated_at"`

	Omitted []Omission        `db:"omitted" json:"omitted,omitzero"` // nil while that is not known
	ReadBy  []document.ReadBy `db:"read_by" json:"read_by,omitzero" doc:"What programs of the operator read; or absent."`

	// PagesRead is nil unless a document is parsed that takes long.
	PagesRead *int `db:"pages_read" json:"pages_read" doc:"Of total_pages, while a document is parsed that takes long."`

	Encoding   *string  `db:"encoding" json:"encoding"`                // of a plain text; null for other formats
	Confidence *float64 `db:"charset_sure" json:"encoding_confidence"` // probability that Encoding is right

	Language      *string `db:"language" json:"language" doc:"In ISO 639-1, by which words are found; null: unknown."`
	LanguageGiven bool    `db:"language_given" json:"language_given" doc:"Its uploader chose the language."`

	SHA256   string          `db:"sha256" json:"sha256"`     // of the original, in hexadecimal digits
	Metadata json.RawMessage `db:"metadata" json:"metadata"` // an object that callers keep; null: none

	Provenance *db.Provenance `db:"provenance" json:"provenance" doc:"Who uploaded it; null if unknown."`
}

// fileRows selects files with their status. A file has work left if its wanted generation has no text yet, or if chunks
// wait for vectors in the active space. fileArgs gives the arguments.
const fileRows = `
	SELECT f.key, f.id, d.id AS folder_id, f.name, f.original_name, f.media_type, f.size_bytes,
	       CASE WHEN f.error IS NOT NULL THEN 'error'
	            WHEN f.generation < f.wanted_generation AND f.parse_started_at IS NULL THEN 'pending'
	            WHEN f.generation < f.wanted_generation THEN 'parsing'
	            WHEN w.waiting > 0 OR @unknown AND f.chunks > 0 THEN 'embedding'
	            ELSE 'completed' END AS status,
	       coalesce(f.error || CASE WHEN f.replaces IS NOT NULL THEN ' (the file it was to replace is still in place)'
	                                WHEN f.generation > 0 AND f.generation < f.wanted_generation
	                                THEN ' (the earlier text is still in place)'
	                                ELSE '' END, w.error,
	                CASE WHEN @unknown AND f.chunks > 0 THEN 'waiting for the first answer of the embedding model' END,
	                r.chunks || ' of ' || f.chunks || ' passages get no vector (' || r.reason ||
	                '); they are found by their words') AS error_message,
	       f.chunks AS total_chunks,
	       CASE WHEN @unknown THEN 0
	            ELSE f.chunks - coalesce(w.waiting, 0)::integer - coalesce(r.chunks, 0) END AS chunks_embedded,
	       f.lines, coalesce(f.pages_found, cardinality(f.pages)) AS total_pages, f.pages_read, f.omitted, f.read_by,
	       encode(f.sha256, 'hex') AS sha256, f.metadata,
	       f.charset AS encoding, f.charset_sure::numeric::float8 AS charset_sure, f.language, f.language_given,
	       CASE WHEN @content THEN (
	           SELECT coalesce(string_agg(g.text, '' ORDER BY g.ordinal), '') FROM file_segments g
	           WHERE g.file_key = f.key AND g.generation = f.generation AND g.org = @org) END AS content,
	       f.created_at, f.updated_at, f.provenance
	FROM files f
	JOIN folders d ON d.org = f.org AND d.key = f.folder_key AND d.deleted_at IS NULL
	LEFT JOIN LATERAL (
	    SELECT sum(b.end_ordinal - b.first_ordinal) AS waiting, min(b.error) AS error FROM embed_batches b
	    WHERE b.file_key = f.key AND b.space_id = @space AND b.generation = f.generation AND b.org = @org
	) w ON true
	LEFT JOIN embed_refusals r ON r.file_key = f.key AND r.space_id = @space AND r.org = @org
	WHERE f.org = @org`

var errNoFile = db.NotFound("there is no such file in this folder")

func (s *Store) fileArgs(org db.Org, content bool) pgx.StrictNamedArgs {
	space, known := s.o.Endpoint.Space()
	return pgx.StrictNamedArgs{"org": org, "space": space.ID, "unknown": s.o.Endpoint != nil && !known, "content": content}
}

// contentBytes limits the text that is read with a file, and all text in one list of files. A list ends early at the
// limit, and the next page continues.
const contentBytes = 16 << 20

// textBytes maps file key → bytes of the file's text.
func (s *Store) textBytes(ctx context.Context, org db.Org, files []File) (map[int64]int64, error) {
	type size struct {
		Key   int64 `db:"key"`
		Bytes int64 `db:"bytes"`
	}
	sizes, err := db.All[size](ctx, s.db, `
		SELECT f.key, sum(octet_length(g.text)) AS bytes
		FROM files f JOIN file_segments g ON g.org = f.org AND g.file_key = f.key AND g.generation = f.generation
		WHERE f.org = $1 AND f.key = ANY ($2)
		GROUP BY f.key`, org, mapped(files, func(f File) int64 { return f.Key }))
	bytes := map[int64]int64{}
	for _, f := range sizes {
		bytes[f.Key] = f.Bytes
	}
	return bytes, err
}

// Filter selects files. The zero value selects every file of the organization.
type Filter struct {
	FolderID string // only this folder; empty: all
	Status   Status // only this stage; empty: all
}

// Files lists files, oldest or newest upload first. If content is set, it includes their texts. A list with texts ends
// before the file that would exceed contentBytes, even if more files follow. ErrNotFound if there is no such folder;
// ErrInvalid if the text of the first file alone is longer.
func (s *Store) Files(ctx context.Context, org db.Org, filter Filter, content bool, p db.Page) ([]File, error) {
	list, err := s.listFiles(ctx, org, filter, false, p)
	if err != nil || !content || len(list) == 0 {
		return list, err
	}
	sizes, err := s.textBytes(ctx, org, list)
	if err != nil {
		return nil, err
	}
	p.Limit = 0
	var size int64
	for _, f := range list {
		if size += sizes[f.Key]; size > contentBytes {
			break
		}
		p.Limit++
	}
	if p.Limit == 0 {
		return nil, list[0].tooLong(size)
	}
	return s.listFiles(ctx, org, filter, true, p)
}

func (s *Store) listFiles(ctx context.Context, org db.Org, filter Filter, content bool, p db.Page) ([]File, error) {
	args, query := s.fileArgs(org, content), fileRows
	if filter.FolderID != "" {
		folder, err := s.Folder(ctx, org, filter.FolderID)
		if err != nil {
			return nil, err
		}
		args["folder"] = folder.Key
		query += ` AND f.folder_key = @folder`
	}
	if filter.Status == Failed { // few files have failed
		query += ` AND f.error IS NOT NULL`
	} else if filter.Status != "" {
		args["status"] = filter.Status
		query = `SELECT * FROM (` + query + `) r WHERE r.status = @status`
	}
	return db.List[File](ctx, s.db, p, query, args)
}

// File returns a file in a folder. If content is set, it includes the text. ErrNotFound if the folder has no such file;
// ErrInvalid if the text is longer than contentBytes.
func (s *Store) File(ctx context.Context, org db.Org, folderID, fileID string, content bool) (File, error) {
	f, err := s.file(ctx, org, folderID, fileID, false)
	if err != nil || !content {
		return f, err
	}
	sizes, err := s.textBytes(ctx, org, []File{f})
	if err != nil {
		return File{}, err
	}
	if size := sizes[f.Key]; size > contentBytes {
		return File{}, f.tooLong(size)
	}
	return s.file(ctx, org, folderID, fileID, true)
}

func (s *Store) file(ctx context.Context, org db.Org, folderID, fileID string, content bool) (File, error) {
	args := s.fileArgs(org, content)
	args["folder"], args["file"] = folderID, fileID
	f, err := db.One[File](ctx, s.db, fileRows+` AND d.id = @folder AND f.id = @file`, args)
	return f, ifNotFound(err, errNoFile)
}

// tooLong returns the error for a file if its text is too long to be read with it.
func (f File) tooLong(bytes int64) error {
	return db.Invalid("The text of %s has %d bytes, and include_content shows at most %d. Leave include_content out, and "+
		"search in the file, open some of its lines, or download it.", f.OriginalName, bytes, int64(contentBytes))
}

// DeleteFile deletes a file with its text and chunks, and closes it for every agent.
func (s *Store) DeleteFile(ctx context.Context, org db.Org, folderID, fileID string) error {
	return s.inTx(ctx, func(in *Store) error {
		f, err := in.File(ctx, org, folderID, fileID, false)
		if err != nil {
			return err
		}
		return inOrder(
			func() error {
				return in.exec(ctx, `SELECT FROM files WHERE org = $1 AND key = $2 FOR UPDATE`, org, f.Key)
			},
			func() error { return in.appendWhereOpen(ctx, org, f.Key, event.FileClosed, f.ID) },
			func() error { return in.cancelJobs(ctx, f.Key) },
			func() error { return db.DeleteOne(ctx, in.db, "files", `r.key = $2`, org, f.Key) })
	})
}

// appendWhereOpen appends an event for each agent that has a file open. The caller holds the file's lock, so that no
// agent opens it meanwhile.
func (s *Store) appendWhereOpen(ctx context.Context, org db.Org, fileKey int64, t event.Type, refID string) error {
	agents, err := db.All[string](ctx, s.db, `
		SELECT DISTINCT agent_id FROM agent_files
		WHERE org = $1 AND file_key = $2 AND is_open ORDER BY agent_id`, org, fileKey)
	if err != nil {
		return err
	}
	_, err = event.Append(ctx, s.tx, org, mapped(agents, func(agent string) event.Event {
		return event.Event{AgentID: agent, Type: t, RefID: refID}
	})...)
	return err
}

// fileRef identifies a file.
type fileRef struct {
	Key int64  `db:"key"`
	ID  string `db:"id"`

	limited bool // of a new file: its organization has a quota of stored bytes
}

// The id of an agent's file and the id of the file itself differ only in these prefixes.
const (
	agentFilePrefix = "file_agent-"
	filePrefix      = "file-"
)
