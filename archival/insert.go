package archival

import (
	"context"
	"iter"
	"strings"

	"github.com/loci-memory/loci/chunker"
	"github.com/loci-memory/loci/db"
)

// Limits of what is inserted.
const (
	MaxPassages   = 10_000   // drafts of a call
	MaxTextBytes  = 16 << 20 // of a draft
	PassageTokens = 2_000    // of a passage: a longer text becomes several
	MaxTags       = 100      // of a passage
)

// Insert adds passages to an archive, all or none, and returns them in the drafts' order. A text longer than
// PassageTokens becomes several passages, one after the other. A text that the archive already has is not stored again.
// ErrNotFound if the archive does not exist; ErrInvalid if a draft breaks a rule.
func (s *Store) Insert(ctx context.Context, org db.Org, archiveID string, drafts []Draft) ([]Inserted, error) {
	return s.insertDrafts(ctx, org, drafts, func() (string, error) { return archiveID, nil })
}

// InsertFor is Insert into the default archive of an agent, which it creates if the agent has none. ErrNotFound if the
// agent does not exist.
func (s *Store) InsertFor(ctx context.Context, org db.Org, agentID string, drafts []Draft) ([]Inserted, error) {
	return s.insertDrafts(ctx, org, drafts, func() (string, error) {
		archive, err := s.defaultArchive(ctx, org, agentID)
		return archive.ID, err
	})
}

// insertDrafts asks for the archive's id only once the drafts are checked.
func (s *Store) insertDrafts(ctx context.Context, org db.Org, drafts []Draft, archive func() (string, error)) (
	[]Inserted, error) {
	batch, err := readBatch(func(yield func(Draft, error) bool) {
		for _, d := range drafts {
			if !yield(d, nil) {
				return
			}
		}
	})
	if err != nil {
		return nil, err
	}
	defer batch.Close()
	id, err := archive()
	if err != nil {
		return nil, err
	}
	if err := s.insert(ctx, org, id, batch); err != nil {
		return nil, err
	}
	var all []Inserted
	for p, err := range batch.Inserted() {
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// InsertMany is Insert of drafts that arrive one by one. It reads all of them before it asks the database; an error
// among them ends it, and nothing is inserted.
func (s *Store) InsertMany(ctx context.Context, org db.Org, archiveID string, drafts iter.Seq2[Draft, error]) (
	*Batch, error) {
	batch, err := readBatch(drafts)
	if err != nil {
		return nil, err
	}
	if err := s.insert(ctx, org, archiveID, batch); err != nil {
		batch.Close()
		return nil, err
	}
	return batch, nil
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
	return db.CheckTags(tags)
}

// split cuts a text that is too long for a passage. The parts, joined, are the text.
func split(text string) []string {
	if chunker.Estimate(text) <= PassageTokens {
		return []string{text}
	}
	var parts []string
	for _, c := range chunker.Split(text, chunker.Options{SizeTokens: PassageTokens, OverlapTokens: -1}) {
		parts = append(parts, c.Text)
	}
	return parts
}
