package archival

import (
	"context"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/chunker"
	"github.com/loci-memory/loci/db"
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
	ready, err := prepare(each(drafts))
	if err != nil {
		return nil, err
	}
	return s.insertAll(ctx, org, archiveID, ready)
}

// InsertFor is Insert into the default archive of an agent, which is made where it has none. ErrNotFound if the agent is not there.
func (s *Store) InsertFor(ctx context.Context, org db.Org, agentID string, drafts []Draft) ([]Inserted, error) {
	ready, err := prepare(each(drafts))
	if err != nil {
		return nil, err
	}
	c, err := s.defaultArchive(ctx, org, agentID)
	if err != nil {
		ready.close()
		return nil, err
	}
	return s.insertAll(ctx, org, c.ID, ready)
}

func each(drafts []Draft) iter.Seq2[Draft, error] {
	return func(yield func(Draft, error) bool) {
		for _, d := range drafts {
			if !yield(d, nil) {
				return
			}
		}
	}
}

func (s *Store) insertAll(ctx context.Context, org db.Org, archiveID string, ready *pieces) ([]Inserted, error) {
	defer ready.close()
	batch, err := s.insert(ctx, org, archiveID, ready)
	if err != nil {
		return nil, err
	}
	defer batch.Close()
	var all []Inserted
	for p, err := range batch.Inserted() {
		if err != nil {
			return nil, err
		}
		all = append(all, p)
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
