package block

import (
	"context"
	"strconv"
	"time"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/loci-memory/loci/db"
)

// Version is a block as it was after one of its changes.
type Version struct {
	Version     int       `db:"version" json:"version"`
	Author      string    `db:"author" json:"author"` // author of the change: an agent's id, or OperatorAuthor
	Label       string    `db:"label" json:"label"`
	Description *string   `db:"description" json:"description"`
	Value       string    `db:"value" json:"value"`
	Limit       int       `db:"limit_chars" json:"limit"`
	ReadOnly    bool      `db:"read_only" json:"read_only"`
	At          time.Time `db:"at" json:"at"`

	Provenance *db.Provenance `db:"provenance" json:"provenance" doc:"Who made the version; null if unknown."`
}

const selectVersions = `
	SELECT version, author, label, description, value, limit_chars, read_only, at, provenance FROM block_versions
	WHERE org = $1 AND block_key = $2 AND `

// Versions lists at most limit versions of a block, newest first. If before is not 0, it lists versions below before.
func (s *Store) Versions(ctx context.Context, org db.Org, id string, before, limit int) ([]Version, error) {
	b, err := s.Block(ctx, org, id)
	if err != nil {
		return nil, err
	}
	return db.All[Version](ctx, s.DB, selectVersions+`($3 = 0 OR version < $3)
		ORDER BY version DESC
		LIMIT $4`, org, b.Key, before, limit)
}

// Version returns one version of a block.
func (s *Store) Version(ctx context.Context, org db.Org, id string, version int) (Version, error) {
	b, err := s.Block(ctx, org, id)
	if err != nil {
		return Version{}, err
	}
	v, err := db.One[Version](ctx, s.DB, selectVersions+`version = $3`, org, b.Key, version)
	return v, db.OrNotFound(err, "Block %s has no version %d; its versions are 1 to %d", id, version, b.Version)
}

// Diff returns how the value of a block changed between two versions, as a unified diff. It is empty if the values are
// equal.
func (s *Store) Diff(ctx context.Context, org db.Org, id string, from, to int) (string, error) {
	a, err := s.Version(ctx, org, id, from)
	if err != nil {
		return "", err
	}
	b, err := s.Version(ctx, org, id, to)
	if err != nil {
		return "", err
	}
	return difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: difflib.SplitLines(a.Value), B: difflib.SplitLines(b.Value),
		FromFile: a.name(), ToFile: b.name(), Context: 3})
}

// Restore gives a block the value and the description of one of its versions, as a new version. The limit becomes at
// least the version's limit. The label and read-only do not change.
func (s *Store) Restore(ctx context.Context, org db.Org, t Target, version int) (Block, error) {
	v, err := s.Version(ctx, org, t.ID, version)
	if err != nil {
		return Block{}, err
	}
	return s.change(ctx, org, t, func(b *Block) error {
		b.Value, b.Description, b.Limit = v.Value, v.Description, max(v.Limit, b.Limit)
		return nil
	})
}

func (v Version) name() string { return v.Label + "@" + strconv.Itoa(v.Version) }
