package files

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/endpoint"
)

// Folder is a set of files. Agents attach it as a whole.
type Folder struct {
	Key             int64           `db:"key" json:"-"`
	ID              string          `db:"id" json:"id"`
	Name            string          `db:"name" json:"name"`
	Description     *string         `db:"description" json:"description"`
	Instructions    *string         `db:"instructions" json:"instructions"`
	Metadata        json.RawMessage `db:"metadata" json:"metadata"`
	Skills          bool            `db:"skills" json:"skills" doc:"Its files SKILL.md are skills of its agents."`
	Owner           int64           `db:"owner" json:"-"` // key of the identity whose folder it is; 0: nobody's
	UserID          *string         `db:"user_id" json:"user_id" doc:"The identity whose folder it is; null: nobody's."`
	ChunkTokens     int             `db:"chunk_tokens" json:"-"`
	OverlapTokens   int             `db:"overlap_tokens" json:"-"`
	EmbeddingConfig EmbeddingConfig `db:"-" json:"embedding_config"`
	CreatedAt       time.Time       `db:"created_at" json:"created_at"`
	UpdatedAt       time.Time       `db:"updated_at" json:"updated_at"`
	CreatedByID     *string         `db:"-" json:"created_by_id"`
	LastUpdatedByID *string         `db:"-" json:"last_updated_by_id"`
	db.Makers
}

// EmbeddingConfig describes, in Letta's terms, the model that embeds a folder's chunks: the endpoint's model, or the
// built-in word weights.
type EmbeddingConfig struct {
	EndpointType string  `json:"embedding_endpoint_type"` // always "openai", the name of the protocol
	Endpoint     *string `json:"embedding_endpoint"`      // always null: only the operator knows where the model runs
	Model        string  `json:"embedding_model"`
	Dimension    int     `json:"embedding_dim"` // 0: texts are found by words, without vectors
	ChunkTokens  int     `json:"embedding_chunk_size"`
	BatchSize    int     `json:"batch_size"`
	Handle       string  `json:"handle"` // provider/model; clients choose the model by it
}

// NewFolder describes a folder to create. Sizes of 0 mean the defaults: chunks of 300 tokens that overlap by 50.
type NewFolder struct {
	Name          string
	Description   *string
	Instructions  *string
	Metadata      json.RawMessage
	Skills        bool  // see Folder
	Owner         int64 // see Folder
	ChunkTokens   int
	OverlapTokens int
}

// FolderUpdate changes the fields that are not nil.
type FolderUpdate struct {
	Name         *string
	Description  *string
	Instructions *string
	Metadata     json.RawMessage
	Skills       *bool // see Folder; files that are open stay open
}

// Total is the number of a folder's files and their total size.
type Total struct {
	FolderID   string `db:"folder_id" json:"source_id"`
	FolderName string `db:"folder_name" json:"source_name"`
	Files      int    `db:"file_count" json:"file_count"`
	SizeBytes  int64  `db:"total_size" json:"total_size"`
}

// The default sizes of chunks.
const (
	DefaultChunkTokens   = 300
	DefaultOverlapTokens = 50
)

// folderColumns are the columns of a Folder. The organization is the statement's argument $1.
const folderColumns = `d.key, d.id, d.name, d.description, d.instructions, d.metadata, d.skills, d.chunk_tokens,
	(SELECT i.id FROM identities i WHERE i.org = $1 AND i.key = d.user_key) AS user_id,
	coalesce(d.user_key, 0) AS owner, d.overlap_tokens, d.created_at, d.updated_at, d.made_by, d.changed_by`

// namedFolderColumns are folderColumns for a statement in which the organization is @org.
var namedFolderColumns = strings.ReplaceAll(folderColumns, "$1", "@org")

// CreateFolder creates a folder. ErrConflict if the organization has a folder with that name; ErrInvalid if a field is
// out of range.
func (s *Store) CreateFolder(ctx context.Context, org db.Org, n NewFolder) (Folder, error) {
	name, err := folderName(n.Name)
	if err != nil {
		return Folder{}, err
	}
	chunk := cmp.Or(n.ChunkTokens, DefaultChunkTokens)
	if chunk < 16 || chunk > 8000 {
		return Folder{}, db.Invalid("embedding_chunk_size is %d tokens; it must be from 16 to 8,000", chunk)
	}
	overlap := cmp.Or(n.OverlapTokens, min(DefaultOverlapTokens, chunk/6))
	id, err := db.One[string](ctx, s.db, `
		INSERT INTO folders (org, name, description, instructions, metadata, skills, chunk_tokens, overlap_tokens, made_by,
		                     user_key)
		VALUES (@org, @name, @description, @instructions, @metadata, @skills, @chunk, @overlap, @by,
		        nullif(@user::bigint, 0))
		RETURNING id`,
		pgx.StrictNamedArgs{"org": org, "name": name, "description": n.Description, "instructions": n.Instructions,
			"metadata": n.Metadata, "skills": n.Skills, "chunk": chunk, "overlap": overlap, "by": db.ProvenanceOf(ctx),
			"user": n.Owner})
	if err != nil {
		return Folder{}, folderError(err, name)
	}
	return s.Folder(ctx, org, id)
}

// folderName returns a folder's name as it is stored: on one line and trimmed. ErrInvalid if it has more than 255
// characters.
func folderName(raw string) (string, error) {
	name := strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(raw, "\uFFFD")))
	if name == "" {
		return "", db.Invalid("a folder needs a name")
	}
	if n := len([]rune(name)); n > 255 {
		return "", db.Invalid("the folder's name has %d characters; 255 are the most", n)
	}
	return name, db.CheckUTF8("the folder's name", name)
}

// folderError says in words that the folder does not exist, or that another folder has its name.
func folderError(err error, name string) error {
	if errors.Is(err, db.ErrConflict) {
		return db.Conflict("a folder named '%s' already exists; folder names are unique", name)
	}
	return ifNotFound(err, errNoFolder)
}

var errNoFolder = db.NotFound("there is no such folder")

// Embedding describes the model that embeds chunks of the given size.
func (s *Store) Embedding(chunkTokens int) EmbeddingConfig {
	c := EmbeddingConfig{EndpointType: "openai", Model: "words", ChunkTokens: chunkTokens,
		BatchSize: endpoint.MostTexts, Handle: "loci/words"}
	if space, ok := s.o.Endpoint.Named(); ok {
		c.Model, c.Dimension, c.Handle = space.Model, space.Dimension, "openai/"+space.Model
	}
	return c
}

// EmbeddingProblem returns a sentence that says why texts get no vectors now. It is empty if they do, or if no endpoint
// is configured.
func (s *Store) EmbeddingProblem() string { return s.o.Endpoint.Problem() }

// described returns a folder with its EmbeddingConfig.
func (s *Store) described(f Folder) Folder {
	f.EmbeddingConfig = s.Embedding(f.ChunkTokens)
	return f
}

// Folder returns a folder by its id.
func (s *Store) Folder(ctx context.Context, org db.Org, id string) (Folder, error) {
	f, err := db.One[Folder](ctx, s.db, `
		SELECT `+folderColumns+` FROM folders d WHERE d.org = $1 AND d.id = $2 AND d.deleted_at IS NULL`, org, id)
	return s.described(f), folderError(err, "")
}

// FolderNamed returns a folder by its name.
func (s *Store) FolderNamed(ctx context.Context, org db.Org, name string) (Folder, error) {
	f, err := db.One[Folder](ctx, s.db, `
		SELECT `+folderColumns+` FROM folders d WHERE d.org = $1 AND d.name = $2 AND d.deleted_at IS NULL`, org, name)
	return s.described(f), folderError(err, "")
}

// Folders lists the folders with a text in their name, ignoring case. With an empty text it lists all folders.
func (s *Store) Folders(ctx context.Context, org db.Org, nameContains string, p db.Page) ([]Folder, error) {
	list, err := db.List[Folder](ctx, s.db, p, `
		SELECT `+namedFolderColumns+` FROM folders d
		WHERE d.org = @org AND d.deleted_at IS NULL AND strpos(lower(d.name), lower(@contains)) > 0 `,
		pgx.StrictNamedArgs{"org": org, "contains": nameContains})
	return mapped(list, s.described), err
}

// CountFolders returns how many folders the organization has.
func (s *Store) CountFolders(ctx context.Context, org db.Org) (int, error) {
	return db.One[int](ctx, s.db, `SELECT count(*) FROM folders WHERE org = $1 AND deleted_at IS NULL`, org)
}

// UpdateFolder changes a folder. A new name applies to its files at once.
func (s *Store) UpdateFolder(ctx context.Context, org db.Org, id string, u FolderUpdate) (Folder, error) {
	name := ""
	if u.Name != nil {
		var err error
		if name, err = folderName(*u.Name); err != nil {
			return Folder{}, err
		}
		u.Name = &name
	}
	err := db.Exec(ctx, s.db, `
		UPDATE folders d
		SET name = coalesce(@name, name), description = coalesce(@description, description),
		    instructions = coalesce(@instructions, instructions), metadata = coalesce(@metadata, metadata),
		    skills = coalesce(@skills, skills), updated_at = now(), changed_by = @by
		WHERE org = @org AND id = @id AND deleted_at IS NULL`,
		pgx.StrictNamedArgs{"org": org, "id": id, "name": u.Name, "description": u.Description,
			"instructions": u.Instructions, "metadata": u.Metadata, "skills": u.Skills, "by": db.ProvenanceOf(ctx)})
	if err != nil {
		return Folder{}, folderError(err, name)
	}
	return s.Folder(ctx, org, id)
}

// FolderAgents lists the ids of the agents that have a folder attached, in the order of the ids.
func (s *Store) FolderAgents(ctx context.Context, org db.Org, folderID string, p db.Page) ([]string, error) {
	folder, err := s.Folder(ctx, org, folderID)
	if err != nil {
		return nil, err
	}
	p.Order = "id"
	return db.List[string](ctx, s.db, p, `
		SELECT agent_id AS id FROM agent_folders WHERE org = @org AND folder_key = @folder`,
		pgx.StrictNamedArgs{"org": org, "folder": folder.Key})
}

// Totals returns the total of each folder of the organization, ordered by folder name.
func (s *Store) Totals(ctx context.Context, org db.Org) ([]Total, error) {
	return db.All[Total](ctx, s.db, `
		SELECT d.id AS folder_id, d.name AS folder_name, t.file_count, t.total_size
		FROM folders d CROSS JOIN LATERAL (
			SELECT count(*) AS file_count, coalesce(sum(size_bytes), 0)::bigint AS total_size FROM files
			WHERE org = $1 AND folder_key = d.key AND replaces IS NULL
		) t
		WHERE d.org = $1 AND d.deleted_at IS NULL
		ORDER BY d.name, d.key`, org)
}
