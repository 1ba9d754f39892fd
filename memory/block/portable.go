package block

import (
	"cmp"
	"context"
	"iter"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Portable is a block in the file of an agent, with its attachment to that agent. In the file its versions follow it.
type Portable struct {
	Block
	Marks      Template  `db:"-" json:"template"` // Block.Template
	AgentID    string    `db:"agent_id" json:"agent_id"`
	AttachedAt time.Time `db:"attached_at" json:"attached_at"`
	OnlyRead   bool      `db:"read_only_for_agent" json:"read_only_for_agent"` // for this agent
}

// PortableVersion is a version of a block in the file of an agent.
type PortableVersion struct {
	BlockID string `json:"block_id"`
	Version
}

// Export lists the blocks of an agent, first attached first, and then the copies of its users, which are attached to no
// agent.
func (s *Store) Export(ctx context.Context, org db.Org, agentID string) ([]Portable, error) {
	list, err := db.All[Portable](ctx, s.DB, `
		SELECT `+strings.Replace(columns, withoutAttacher, "a.attached_by", 1)+`, a.agent_id, a.attached_at,
		       a.read_only AS read_only_for_agent
		FROM agent_blocks a JOIN blocks b ON b.org = a.org AND b.key = a.block_key
		WHERE a.org = $1 AND a.agent_id = $2
		ORDER BY a.attached_at, b.key`, org, agentID)
	if err != nil {
		return nil, err
	}
	copies, err := db.All[Portable](ctx, s.DB, `
		SELECT `+columns+`, '' AS agent_id, b.created_at AS attached_at, false AS read_only_for_agent
		FROM agent_blocks a JOIN blocks b ON b.org = a.org AND b.template_key = a.block_key
		WHERE a.org = $1 AND b.org = $1 AND a.agent_id = $2
		ORDER BY b.key`, org, agentID)
	list = append(list, copies...)
	for i := range list {
		list[i].Marks = list[i].Template
	}
	return list, err
}

// ExportVersions yields the versions of a block, oldest first. It stops after the first error.
func (s *Store) ExportVersions(ctx context.Context, org db.Org, b Block) iter.Seq2[PortableVersion, error] {
	return func(yield func(PortableVersion, error) bool) {
		for n := range b.Version {
			v, err := s.Version(ctx, org, b.ID, n+1)
			if !yield(PortableVersion{b.ID, v}, err) || err != nil {
				return
			}
		}
	}
}

// RestoreBlock creates a block under its stored id, without its versions. If AgentID is not empty, it also attaches the
// block. ErrInvalid if the block breaks a rule; ErrConflict if the agent has another block with its label.
func (s *Store) RestoreBlock(ctx context.Context, org db.Org, b Portable) error {
	if err := cmp.Or(checkLabel(b.Label), db.CheckTags(b.Tags),
		checkSize(b.Label, b.Value, b.Limit, OperatorAuthor)); err != nil {
		return err
	}
	if b.Version < 1 {
		return db.Invalid("the version is %d; it must be at least 1", b.Version)
	}
	key, err := db.One[int64](ctx, s.DB, `
		INSERT INTO blocks (id, org, label, description, value, limit_chars, read_only, hidden, tags, metadata, template,
		                    version, created_at, updated_at)
		VALUES (@id, @org, @label, @description, @value, @limit, @read_only, @hidden, @tags, coalesce(@metadata::jsonb, '{}'),
		        @template, @version, @created, @updated)
		RETURNING key`,
		pgx.StrictNamedArgs{"id": b.ID, "org": org, "label": b.Label, "description": b.Description, "value": b.Value,
			"limit": b.Limit, "read_only": b.ReadOnly, "hidden": b.Hidden, "tags": db.Tags(b.Tags), "metadata": b.Metadata,
			"template": b.Marks, "version": b.Version, "created": b.CreatedAt, "updated": b.UpdatedAt})
	if err != nil || b.AgentID == "" {
		return err
	}
	_, err = s.DB.Exec(ctx, `
		INSERT INTO agent_blocks (agent_id, block_key, org, label, attached_at, read_only, attached_by)
		VALUES ($1, $2, $3, $4, $5, $6, $7)`, b.AgentID, key, org, b.Label, b.AttachedAt, b.OnlyRead, b.AttachedBy)
	return labelError(err, b.Label)
}

// RestoreAttachment attaches a restored block to a restored agent, without an event. ErrNotFound if there is no such
// block; ErrConflict if the agent has a block with its label.
func (s *Store) RestoreAttachment(ctx context.Context, org db.Org, agentID, id string, at time.Time) error {
	b, err := s.Block(ctx, org, id)
	if err != nil {
		return err
	}
	_, err = s.DB.Exec(ctx, `
		INSERT INTO agent_blocks (agent_id, block_key, org, label, attached_at) VALUES ($1, $2, $3, $4, $5)`,
		agentID, b.Key, org, b.Label, at)
	return labelError(err, b.Label)
}

// RestoreVersion stores a version of a restored block. ErrInvalid if it breaks a rule.
func (s *Store) RestoreVersion(ctx context.Context, org db.Org, v PortableVersion) error {
	if err := cmp.Or(checkLabel(v.Label), checkSize(v.Label, v.Value, v.Limit, OperatorAuthor)); err != nil {
		return err
	}
	b, err := s.Block(ctx, org, v.BlockID)
	if err != nil {
		return err
	}
	if v.Version.Version < 1 || v.Version.Version > b.Version {
		return db.Invalid("the version is %d; it must be from 1 to that of the block, %d", v.Version.Version, b.Version)
	}
	return db.Insert(ctx, s.DB, "block_versions", `
		INSERT INTO block_versions (block_key, version, org, author, label, description, value, limit_chars, read_only, at,
		                            provenance)
		VALUES (@key, @version, @org, @author, @label, @description, @value, @limit, @read_only, @at, @provenance)`,
		pgx.StrictNamedArgs{"key": b.Key, "version": v.Version.Version, "org": org, "author": v.Author, "label": v.Label,
			"description": v.Description, "value": v.Value, "limit": v.Limit, "read_only": v.ReadOnly, "at": v.At,
			"provenance": v.Provenance})
}

// CheckVersions returns ErrInvalid unless a restored block has all its versions.
func (s *Store) CheckVersions(ctx context.Context, org db.Org, id string) error {
	missing, err := db.One[int](ctx, s.DB, `
		SELECT b.version - (SELECT count(*) FROM block_versions v WHERE v.org = $1 AND v.block_key = b.key)
		FROM blocks b WHERE b.org = $1 AND b.id = $2`, org, id)
	if err == nil && missing != 0 {
		err = db.Invalid("block %s lacks %d of its versions", id, missing)
	}
	return err
}
