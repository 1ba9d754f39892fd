package archival

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loci-memory/loci/chunker"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
)

// Bounds of what is inserted.
const (
	MaxPassages   = 10_000   // of a call
	MaxTextBytes  = 16 << 20 // of a draft
	PassageTokens = 2_000    // of a passage: a longer text becomes several
	MaxTags       = 100      // of a passage
	maxTagChars   = 200
)

// Insert adds passages to an archive, all or none. A text that is longer than PassageTokens becomes several passages, one after the other;
// one that the archive has already is not stored again. The result has what became of the drafts, in their order. ErrNotFound if the archive
// is not there; ErrInvalid if a draft breaks a rule.
func (s *Store) Insert(ctx context.Context, org db.Org, archiveID string, drafts []Draft) ([]Inserted, error) {
	ready, err := prepare(drafts)
	if err != nil {
		return nil, err
	}
	return s.insert(ctx, org, archiveID, ready)
}

// InsertFor is Insert into the default archive of an agent, which is made where it has none. ErrNotFound if the agent is not there.
func (s *Store) InsertFor(ctx context.Context, org db.Org, agentID string, drafts []Draft) ([]Inserted, error) {
	ready, err := prepare(drafts)
	if err != nil {
		return nil, err
	}
	c, err := s.defaultArchive(ctx, org, agentID)
	if err != nil {
		return nil, err
	}
	return s.insert(ctx, org, c.ID, ready)
}

// prepared is a passage ready to be stored.
type prepared struct {
	Draft
	id     uuid.UUID
	sha256 [sha256.Size]byte
	lex    embed.Lex
}

func prepare(drafts []Draft) ([]prepared, error) {
	if len(drafts) == 0 || len(drafts) > MaxPassages {
		return nil, db.Invalid("%d passages are to be inserted; it must be from 1 to %d", len(drafts), MaxPassages)
	}
	now := time.Now()
	var all []prepared
	for i, d := range drafts {
		if err := d.check(); err != nil {
			return nil, fmt.Errorf("passages[%d]: %w", i, err)
		}
		d.Text, d.Tags = db.Clean(d.Text), db.Tags(d.Tags)
		happened := now.Add(time.Duration(i) * time.Microsecond) // which keeps the order
		if d.HappenedAt != nil {
			happened = *d.HappenedAt
		}
		if d.Metadata == nil {
			d.Metadata = json.RawMessage(`{}`)
		}
		for n, text := range split(d.Text) {
			at := happened.Add(time.Duration(n) * time.Microsecond)
			d.HappenedAt = &at
			p := prepared{Draft: d, id: uuid.New(), sha256: sha256.Sum256([]byte(text)), lex: embed.Document(text)}
			p.Text = text
			all = append(all, p)
		}
	}
	return all, nil
}

func (d Draft) check() error {
	if strings.TrimSpace(db.Clean(d.Text)) == "" {
		return db.Invalid("a passage has no text")
	}
	if len(d.Text) > MaxTextBytes {
		return db.Invalid("a text has %d bytes; it may have at most %d", len(d.Text), MaxTextBytes)
	}
	return checkTags(d.Tags)
}

func checkTags(tags []string) error {
	if len(tags) > MaxTags {
		return db.Invalid("a passage has %d tags; it may have at most %d", len(tags), MaxTags)
	}
	for _, t := range tags {
		if n := utf8.RuneCountInString(t); n > maxTagChars {
			return db.Invalid("a tag has %d characters; it may have at most %d", n, maxTagChars)
		}
	}
	return nil
}

// split cuts a text that is too long for a passage: the pieces, joined, are the text.
func split(text string) []string {
	if chunker.Estimate(text) <= PassageTokens {
		return []string{text}
	}
	var pieces []string
	for _, c := range chunker.Split(text, chunker.Options{SizeTokens: PassageTokens, OverlapTokens: -1}) {
		pieces = append(pieces, c.Text)
	}
	return pieces
}

func (s *Store) insert(ctx context.Context, org db.Org, archiveID string, ready []prepared) (out []Inserted, err error) {
	err = db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		in := s.With(tx)
		key, err := in.hold(ctx, org, archiveID)
		if err != nil {
			return err
		}
		fresh, err := in.store(ctx, org, key, ready)
		if err != nil {
			return err
		}
		if out, err = in.inserted(ctx, org, key, ready, fresh); err != nil || len(fresh) == 0 {
			return err
		}
		if len(fresh) > 1 {
			return in.tell(ctx, org, key, db.PassagesInserted, archiveID)
		}
		one := slices.IndexFunc(out, func(p Inserted) bool { return !p.Duplicate })
		return in.tell(ctx, org, key, db.PassageInserted, out[one].ID)
	})
	return out, err
}

// store writes passages that the archive does not have, and returns their ids. They go in in the order of their hashes: of two requests
// that have texts in common one waits for the other, and never both.
func (s *Store) store(ctx context.Context, org db.Org, archive int64, ready []prepared) (map[uuid.UUID]bool, error) {
	ordered := slices.Clone(ready)
	slices.SortStableFunc(ordered, func(a, b prepared) int { return bytes.Compare(a.sha256[:], b.sha256[:]) })
	fresh := map[uuid.UUID]bool{}
	var batch pgx.Batch
	for _, p := range ordered {
		batch.Queue(`
			INSERT INTO passages (id, org, archive_key, text, sha256, tags, metadata, happened_at, lex, terms)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
			ON CONFLICT ON CONSTRAINT passages_text_key DO NOTHING`,
			p.id, org, archive, p.Text, p.sha256[:], p.Tags, p.Metadata, p.HappenedAt, p.lex.Vector, embed.Owned(archive, p.lex.Terms)).
			Exec(func(tag pgconn.CommandTag) error {
				if tag.RowsAffected() > 0 {
					fresh[p.id] = true
				}
				return nil
			})
	}
	if err := s.db.SendBatch(ctx, &batch).Close(); err != nil || len(fresh) == 0 {
		return fresh, db.Error(err)
	}
	return fresh, s.wait(ctx, org, archive, slices.Collect(maps.Keys(fresh)))
}

// inserted reads what became of the drafts.
func (s *Store) inserted(ctx context.Context, org db.Org, archive int64, ready []prepared, fresh map[uuid.UUID]bool) ([]Inserted, error) {
	sums := make([][]byte, len(ready))
	for i := range ready {
		sums[i] = ready[i].sha256[:]
	}
	type row struct {
		Passage
		Sum []byte `db:"sha256"`
	}
	rows, err := db.All[row](ctx, s.db, `
		SELECT `+passageColumns+`, p.sha256 FROM passages p JOIN archives c ON c.key = p.archive_key
		WHERE p.org = $1 AND p.archive_key = $2 AND p.sha256 = ANY ($3)`, org, archive, sums)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rows, func(a, b row) int { return bytes.Compare(a.Sum, b.Sum) })
	out := make([]Inserted, len(ready))
	for i := range ready {
		at, ok := slices.BinarySearchFunc(rows, ready[i].sha256[:], func(r row, sum []byte) int { return bytes.Compare(r.Sum, sum) })
		if !ok {
			return nil, db.Conflict("A passage with the text of passages[%d] was deleted by another request; send this one again", i)
		}
		out[i] = Inserted{Passage: rows[at].Passage, Duplicate: !fresh[ready[i].id]}
	}
	return out, nil
}
