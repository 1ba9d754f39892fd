package archival

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"iter"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/pgvector/pgvector-go"

	"github.com/loci-memory/loci/chunker"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/embed/lexicon"
)

// PortableArchive is an archive in the file of an agent, with its attachment to that agent. In the file its passages
// follow it.
type PortableArchive struct {
	ID          string          `db:"id" json:"id"`
	Name        string          `db:"name" json:"name"`
	Description *string         `db:"description" json:"description"`
	Metadata    json.RawMessage `db:"metadata" json:"metadata"`
	Embedding   *string         `db:"embedding" json:"embedding"`
	CreatedAt   time.Time       `db:"created_at" json:"created_at"`
	UpdatedAt   time.Time       `db:"updated_at" json:"updated_at"`
	AgentID     string          `db:"agent_id" json:"agent_id"`
	IsDefault   bool            `db:"is_default" json:"is_default"`
	AttachedAt  time.Time       `db:"attached_at" json:"attached_at"`

	db.Makers
}

// ExportArchives lists the archives of an agent, oldest attachment first.
func (s *Store) ExportArchives(ctx context.Context, org db.Org, agentID string) ([]PortableArchive, error) {
	return db.All[PortableArchive](ctx, s.db, `
		SELECT c.id, c.name, c.description, c.metadata, c.embedding, c.created_at, c.updated_at, c.made_by, c.changed_by,
		       a.agent_id, a.is_default, a.attached_at
		FROM agent_archives a JOIN archives c ON c.org = a.org AND c.key = a.archive_key AND c.deleted_at IS NULL
		WHERE a.org = $1 AND a.agent_id = $2
		ORDER BY a.attached_at, c.key`, org, agentID)
}

// ExportPassages yields the passages of an archive in the order in which they were stored. It stops after the first
// error.
func (s *Store) ExportPassages(ctx context.Context, org db.Org, archiveID string) iter.Seq2[Passage, error] {
	return func(yield func(Passage, error) bool) {
		for after := int64(0); ; {
			page, err := db.All[Passage](ctx, s.db, `
				SELECT `+passageColumns+`
				FROM archives c JOIN passages p ON p.org = c.org AND p.archive_key = c.key
				WHERE c.org = $1 AND c.id = $2 AND p.key > $3
				ORDER BY p.key
				LIMIT $4`, org, archiveID, after, insertAtOnce)
			if err != nil {
				yield(Passage{}, err)
				return
			}
			for _, p := range page {
				if !yield(p, nil) {
					return
				}
				after = p.Key
			}
			if len(page) < insertAtOnce {
				return
			}
		}
	}
}

// RestoreArchive creates an archive under its stored id. If AgentID is not empty, it also attaches the archive.
// ErrInvalid if the name breaks a rule.
func (s *Store) RestoreArchive(ctx context.Context, org db.Org, c PortableArchive) error {
	if err := checkName(c.Name); err != nil {
		return err
	}
	var embedded *int16
	if space, ok := s.endpoint.Space(); ok {
		embedded = &space.ID
	}
	key, err := db.One[int64](ctx, s.db, `
		INSERT INTO archives (id, org, name, description, metadata, embedding, embedded_space, created_at, updated_at,
		                      made_by, changed_by)
		VALUES (@id, @org, @name, @description, @metadata, @embedding, @space, @created, @updated, @made_by, @changed_by)
		RETURNING key`,
		pgx.StrictNamedArgs{"id": c.ID, "org": org, "name": c.Name, "description": c.Description, "metadata": c.Metadata,
			"embedding": c.Embedding, "space": embedded, "created": c.CreatedAt, "updated": c.UpdatedAt,
			"made_by": c.MadeBy, "changed_by": c.ChangedBy})
	if err != nil || c.AgentID == "" {
		return err
	}
	return db.Exec(ctx, s.db, `
		INSERT INTO agent_archives (agent_id, archive_key, org, is_default, attached_at)
		VALUES ($1, $2, $3, $4, $5)`, c.AgentID, key, org, c.IsDefault, c.AttachedAt)
}

// RestoreAttachment attaches a restored archive to a restored agent, without an event. ErrNotFound if there is no such
// archive.
func (s *Store) RestoreAttachment(ctx context.Context, org db.Org, agentID, id string, isDefault bool) error {
	return db.Exec(ctx, s.db, `
		INSERT INTO agent_archives (agent_id, archive_key, org, is_default, attached_at)
		SELECT $2, key, org, $4, created_at FROM archives WHERE org = $1 AND id = $3 AND deleted_at IS NULL`,
		org, agentID, id, isDefault)
}

// Stored returns those ids that are passages of the archive.
func (s *Store) Stored(ctx context.Context, org db.Org, archiveID string, ids []string) ([]string, error) {
	keys := make([]uuid.UUID, len(ids))
	for i, id := range ids {
		keys[i] = uuidOf(id)
	}
	return db.All[string](ctx, s.db, `
		SELECT 'passage-' || p.id FROM archives c JOIN passages p ON p.org = c.org AND p.archive_key = c.key
		WHERE c.org = $1 AND c.id = $2 AND p.id = ANY ($3)`, org, archiveID, keys)
}

// RestoreVectors stores the vectors of restored passages in a space; vectors maps passage id → vector. It normalizes
// them and skips vectors of length zero or of another dimension. The passages no longer wait for a vector of this
// space.
func (s *Store) RestoreVectors(ctx context.Context, org db.Org, space endpoint.Space,
	vectors map[string][]float32) error {
	var rows pgx.Batch
	for id, vector := range vectors {
		unit := embed.Normalize(vector)
		if unit == nil || len(unit) != space.Dimension {
			continue
		}
		rows.Queue(`
			INSERT INTO passage_vectors (space_id, passage_key, org, archive_key, tags, happened_at, embedding, valid_from,
			                             valid_until)
			SELECT $3, key, org, archive_key, tags, happened_at, $4, valid_from, valid_until
			FROM passages WHERE org = $1 AND id = $2`, org, uuidOf(id), space.ID, pgvector.NewHalfVector(unit))
		rows.Queue(`
			DELETE FROM unembedded_passages u USING passages p, archives c
			WHERE u.org = $1 AND p.org = $1 AND c.org = $1 AND p.id = $2 AND u.passage_key = p.key AND c.key = p.archive_key
			  AND c.embedded_space = $3`, org, uuidOf(id), space.ID)
	}
	return db.Error(s.db.SendBatch(ctx, &rows).Close())
}

// Split cuts a text that is too long for one passage. Joined, the parts are the text.
func Split(text string) []string { return split(text) }

// RestorePassages stores passages of a restored archive under their ids and queues them for vectors. It does not store
// their successors. ErrInvalid if a passage breaks a rule of Insert or is too long.
func (s *Store) RestorePassages(ctx context.Context, org db.Org, archiveID string, passages []Passage) error {
	archive, err := s.lock(ctx, org, archiveID, "KEY SHARE")
	if err != nil {
		return err
	}
	insert := insertDescribed(`
		INSERT INTO passages (id, org, archive_key, text, sha256, tags, metadata, happened_at, created_at, updated_at,
		                      lex, terms, valid_from, valid_until, provenance, language, language_given)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, nullif($16, ''),
			$17)`)
	var rows pgx.Batch
	var size int64
	ids := make([]uuid.UUID, len(passages))
	for i, p := range passages {
		if err := p.check(); err != nil {
			return err
		}
		ids[i] = uuidOf(p.ID)
		sum, lex := sha256.Sum256([]byte(p.Text)), lexicon.DocumentIn(p.Text, p.given())
		size += int64(len(p.Text))
		rows.Queue(insert,
			ids[i], org, archive, p.Text, sum[:], db.Tags(p.Tags), p.Metadata, p.HappenedAt, p.StoredAt, p.UpdatedAt,
			lex.Vector, lexicon.Owned(archive, lex.Terms), p.ValidFrom, p.ValidUntil, p.Provenance, lex.Language,
			p.given() != "")
	}
	if err := db.Error(s.db.SendBatch(ctx, &rows).Close()); err != nil {
		return err
	}
	if err := db.CheckQuota(ctx, s.db, org, db.QuotaStoredBytes, size); err != nil {
		return err
	}
	return s.wait(ctx, org, archive, ids)
}

// check returns ErrInvalid if Insert would refuse or cut the passage.
func (p Passage) check() error {
	if err := cmp.Or((Draft{Text: p.Text, Tags: p.Tags, Language: p.given()}).check(), p.Check()); err != nil {
		return err
	}
	if p.SupersededBy != nil && p.ValidUntil == nil {
		return &db.FieldError{Field: "valid_until", Rule: "a passage that is superseded has an end"}
	}
	if n := chunker.Estimate(p.Text); n > PassageTokens {
		return db.Invalid("the text has about %d tokens; a passage may have at most %d", n, PassageTokens)
	}
	return nil
}
