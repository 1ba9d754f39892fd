package archival

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/loci-memory/loci/chunker"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/spool"
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
// ErrNotFound if the archive does not exist; ErrInvalid if a draft breaks a rule; *SupersededError if it supersedes a
// passage that another one superseded.
func (s *Store) Insert(ctx context.Context, org db.Org, archiveID string, drafts []Draft) ([]Inserted, error) {
	return collect(s.InsertMany(ctx, org, archiveID, all(drafts)))
}

// InsertFor is Insert into the default archive of an agent, which it creates if the agent has none; if a draft
// supersedes a passage, into that one's archive. ErrNotFound if the agent does not exist.
func (s *Store) InsertFor(ctx context.Context, org db.Org, agentID string, drafts []Draft) ([]Inserted, error) {
	return collect(s.insertInto(ctx, org, all(drafts), func() (string, error) {
		if i := slices.IndexFunc(drafts, func(d Draft) bool { return d.Supersedes != "" }); i >= 0 {
			return s.supersededArchive(ctx, org, agentID, drafts[i].Supersedes)
		}
		archive, err := s.defaultArchive(ctx, org, agentID)
		return archive.ID, err
	}))
}

// InsertMany is Insert of drafts that arrive one by one. It reads all of them before it writes to the database. It
// returns the first error that drafts yield, and then inserts nothing.
func (s *Store) InsertMany(ctx context.Context, org db.Org, archiveID string, drafts iter.Seq2[Draft, error]) (
	*Batch, error) {
	return s.insertInto(ctx, org, drafts, func() (string, error) { return archiveID, nil })
}

// insertInto asks for the archive's id after it has checked the drafts.
func (s *Store) insertInto(ctx context.Context, org db.Org, drafts iter.Seq2[Draft, error],
	archive func() (string, error)) (*Batch, error) {
	b, id := &Batch{records: records{spool.Spool{Memory: recordsBytes}}}, ""
	err := b.read(drafts)
	if err == nil {
		id, err = archive()
	}
	if err == nil {
		err = s.insert(ctx, org, id, b)
	}
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

func all(drafts []Draft) iter.Seq2[Draft, error] {
	return func(yield func(Draft, error) bool) {
		for _, d := range drafts {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// collect returns the passages of a batch, which it closes.
func collect(b *Batch, err error) (passages []Inserted, _ error) {
	if err != nil {
		return nil, err
	}
	defer b.Close()
	for p, err := range b.Inserted() {
		if err != nil {
			return nil, err
		}
		passages = append(passages, p)
	}
	return passages, nil
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
