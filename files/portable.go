package files

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// PortableFolder is a folder in the file of an agent, with its attachment to that agent.
type PortableFolder struct {
	ID            string          `db:"id" json:"id"`
	Name          string          `db:"name" json:"name"`
	Description   *string         `db:"description" json:"description"`
	Instructions  *string         `db:"instructions" json:"instructions"`
	Metadata      json.RawMessage `db:"metadata" json:"metadata"`
	ChunkTokens   int             `db:"chunk_tokens" json:"chunk_tokens"`
	OverlapTokens int             `db:"overlap_tokens" json:"overlap_tokens"`
	Skills        bool            `db:"skills" json:"skills,omitempty"`
	CreatedAt     time.Time       `db:"created_at" json:"created_at"`
	UpdatedAt     time.Time       `db:"updated_at" json:"updated_at"`
	AgentID       string          `db:"agent_id" json:"agent_id"`
	AttachedAt    time.Time       `db:"attached_at" json:"attached_at"`
	Opens         *bool           `db:"opens" json:"opens"`

	db.Makers
}

// PortableFile is a file of a folder in the file of an agent. Its original follows in pieces.
type PortableFile struct {
	ID           string    `db:"id" json:"id"`
	FolderID     string    `db:"folder_id" json:"folder_id"`
	Name         string    `db:"name" json:"name"`
	OriginalName string    `db:"original_name" json:"original_name"`
	MediaType    string    `db:"media_type" json:"media_type"`
	Encoding     *string   `db:"encoding" json:"encoding,omitempty"` // that its uploader chose; nil: none
	Language     *string   `db:"language" json:"language,omitempty"` // likewise
	SizeBytes    int64     `db:"size_bytes" json:"size_bytes"`
	CreatedAt    time.Time `db:"created_at" json:"created_at"`

	Metadata   json.RawMessage `db:"metadata" json:"metadata,omitempty"` // an object; nil: none
	Provenance *db.Provenance  `db:"provenance" json:"provenance,omitempty"`
}

// PortableView is an entry of an agent's list of open files: the lines that are open, or when the file was last used.
type PortableView struct {
	AgentID   string    `db:"agent_id" json:"agent_id"`
	FileID    string    `db:"file_id" json:"file_id"`
	IsOpen    bool      `db:"is_open" json:"is_open"`
	Pinned    bool      `db:"pinned" json:"pinned"`
	FirstLine int       `db:"first_line" json:"first_line"` // from 0
	LineCount *int      `db:"line_count" json:"line_count"` // nil: to the end
	UsedSeq   int64     `db:"last_used_seq" json:"last_used_seq"`
	UsedAt    time.Time `db:"last_used_at" json:"last_used_at"`
	Automatic bool      `db:"automatic" json:"automatic"`
}

// ExportFolders lists the folders of an agent that are within a reach, oldest attachment first.
func (s *Store) ExportFolders(ctx context.Context, org db.Org, r Reach) ([]PortableFolder, error) {
	sees, args := r.sees(org, r.AgentID)
	return db.All[PortableFolder](ctx, s.db, `
		SELECT d.id, d.name, d.description, d.instructions, d.metadata, d.chunk_tokens, d.overlap_tokens, d.skills,
		       d.created_at, d.updated_at, d.made_by, d.changed_by, a.agent_id, a.attached_at, a.opens
		FROM agent_folders a JOIN folders d ON d.org = a.org AND d.key = a.folder_key AND d.deleted_at IS NULL
		WHERE a.org = $1 AND a.agent_id = $2 AND `+sees+`
		ORDER BY a.attached_at, d.key`, args...)
}

// ExportFiles lists the files of a folder, oldest first, without those that wait to replace another file.
func (s *Store) ExportFiles(ctx context.Context, org db.Org, folderID string) ([]PortableFile, error) {
	return db.All[PortableFile](ctx, s.db, `
		SELECT f.id, d.id AS folder_id, f.name, f.original_name, f.media_type, f.encoding,
		       CASE WHEN f.language_given THEN f.language END AS language, f.size_bytes, f.created_at,
		       f.metadata, f.provenance
		FROM folders d JOIN files f ON f.org = d.org AND f.folder_key = d.key AND f.replaces IS NULL
		WHERE d.org = $1 AND d.id = $2
		ORDER BY f.created_at, f.key`, org, folderID)
}

// ExportViews lists the entries of an agent's list of the files that are open for nobody, least recently used first.
// The lists of users are left out: each begins again with that one.
func (s *Store) ExportViews(ctx context.Context, org db.Org, r Reach) ([]PortableView, error) {
	sees, args := r.sees(org, r.AgentID)
	return db.All[PortableView](ctx, s.db, `
		SELECT o.agent_id, f.id AS file_id, o.is_open, o.pinned, o.first_line, o.line_count, o.last_used_seq,
		       o.last_used_at, o.automatic
		FROM agent_files o JOIN files f ON f.org = o.org AND f.key = o.file_key AND f.replaces IS NULL
		JOIN agent_folders a ON a.org = f.org AND a.folder_key = f.folder_key AND a.agent_id = o.agent_id
		WHERE o.org = $1 AND a.org = $1 AND o.agent_id = $2 AND o.user_key = 0 AND `+sees+`
		ORDER BY o.last_used_seq, f.key`, args...)
}

// PieceBytes is the size of the pieces in which originals are stored and exported.
const PieceBytes = pieceBytes

// RestoreFolder creates a folder under its stored id. If AgentID is not empty, it also attaches the folder, without
// opening its files. If the organization has a folder with its name, it gets the first free name of "name (2)", "name
// (3)", …. It returns the name. ErrInvalid if a field is out of range.
func (s *Store) RestoreFolder(ctx context.Context, org db.Org, f PortableFolder) (name string, err error) {
	if name, err = s.freeFolderName(ctx, org, f.Name); err != nil {
		return "", err
	}
	key, err := db.One[int64](ctx, s.db, `
		INSERT INTO folders (id, org, name, description, instructions, metadata, chunk_tokens, overlap_tokens, skills,
		                     created_at, updated_at, made_by, changed_by)
		VALUES (@id, @org, @name, @description, @instructions, @metadata, @chunk, @overlap, @skills, @created, @updated,
		        @made_by, @changed_by)
		RETURNING key`,
		pgx.StrictNamedArgs{"id": f.ID, "org": org, "name": name, "description": f.Description,
			"instructions": f.Instructions, "metadata": f.Metadata, "chunk": cmp.Or(f.ChunkTokens, DefaultChunkTokens),
			"overlap": f.OverlapTokens, "skills": f.Skills, "created": f.CreatedAt, "updated": f.UpdatedAt,
			"made_by": f.MadeBy, "changed_by": f.ChangedBy})
	if err != nil || f.AgentID == "" {
		return name, err
	}
	return name, db.Exec(ctx, s.db, `
		INSERT INTO agent_folders (agent_id, folder_key, org, attached_at, opens)
		VALUES (@agent, @folder, @org, @at, @opens)`,
		pgx.StrictNamedArgs{"agent": f.AgentID, "folder": key, "org": org, "at": f.AttachedAt, "opens": f.Opens})
}

// RestoreAttachment attaches a restored folder to a restored agent, without an event and without opening its files.
// ErrNotFound if there is no such folder.
func (s *Store) RestoreAttachment(ctx context.Context, org db.Org, agentID, folderID string) error {
	return db.Exec(ctx, s.db, `
		INSERT INTO agent_folders (agent_id, folder_key, org, attached_at)
		SELECT $2, key, org, created_at FROM folders WHERE org = $1 AND id = $3 AND deleted_at IS NULL`,
		org, agentID, folderID)
}

// freeFolderName returns a folder name that the organization does not use yet.
func (s *Store) freeFolderName(ctx context.Context, org db.Org, wanted string) (string, error) {
	stem, err := folderName(wanted)
	if err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		name := stem
		if n > 1 {
			suffix := fmt.Sprintf(" (%d)", n)
			name = clip(stem, 255-len(suffix)) + suffix
		}
		_, err := s.FolderNamed(ctx, org, name)
		if errors.Is(err, db.ErrNotFound) {
			return name, nil
		}
		if err != nil || n == nameTries {
			return name, err
		}
	}
}

// RestoreFile stores a file of a restored folder under its stored id, and queues its parsing. The file does not open by
// itself for any agent. ErrInvalid if the original does not have the file's size; otherwise as Upload.
func (s *Store) RestoreFile(ctx context.Context, org db.Org, f PortableFile, original io.Reader) error {
	encoding, language := "", ""
	if f.Encoding != nil {
		encoding = *f.Encoding
	}
	if f.Language != nil {
		language = *f.Language
	}
	stored, _, err := s.Upload(ctx, org, f.FolderID, Upload{Name: f.Name, Override: f.Name, MediaType: f.MediaType,
		Encoding: encoding, Language: language,
		Duplicates: Reject, Body: original, ID: f.ID, KeepsClosed: true})
	if err != nil {
		return err
	}
	if stored.SizeBytes != f.SizeBytes {
		return db.Invalid("the original has %d bytes, and the file says %d", stored.SizeBytes, f.SizeBytes)
	}
	return db.Exec(ctx, s.db, `
		UPDATE files SET original_name = $3, created_at = $4, provenance = $5, metadata = $6 WHERE org = $1 AND id = $2`,
		org, f.ID, cmp.Or(f.OriginalName, f.Name), f.CreatedAt, f.Provenance, f.Metadata)
}

// RestoreView stores an entry of an agent's list of open files, for a restored file.
func (s *Store) RestoreView(ctx context.Context, org db.Org, v PortableView) error {
	if v.FirstLine < 0 || v.LineCount != nil && *v.LineCount < 0 {
		return db.Invalid("the range of an open file begins at line %d; it must begin at 0 or later", v.FirstLine)
	}
	return db.Exec(ctx, s.db, `
		INSERT INTO agent_files (agent_id, file_key, org, is_open, pinned, first_line, line_count, last_used_seq,
		                         last_used_at, automatic)
		SELECT @agent, f.key, f.org, @open, @pinned, @first, @count, @seq, @at, @automatic
		FROM files f JOIN agent_folders a ON a.org = f.org AND a.folder_key = f.folder_key AND a.agent_id = @agent
		WHERE f.org = @org AND f.id = @file`,
		pgx.StrictNamedArgs{"agent": v.AgentID, "org": org, "file": v.FileID, "open": v.IsOpen, "pinned": v.Pinned,
			"first": v.FirstLine, "count": v.LineCount, "seq": v.UsedSeq, "at": v.UsedAt, "automatic": v.Automatic})
}
