package archival

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/loci-memory/loci/chunker"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/spool"
	"github.com/loci-memory/loci/embed/lexicon"
)

// Limits of an insert.
const (
	MaxPassages   = 10_000   // drafts per call
	MaxTextBytes  = 16 << 20 // per draft
	PassageTokens = 2_000    // per passage: a longer text becomes several passages
	MaxTags       = 100      // per passage
)

// Insert adds passages to an archive, all or none, and returns them in the drafts' order. A text longer than
// PassageTokens becomes several consecutive passages. A text that the archive already has is not stored again, nor one
// that says the same: that differs in spaces, in a full stop at its end or, without code and identifiers, in case.
// ErrNotFound if the archive does not exist; ErrInvalid if a draft breaks a rule; *SupersededError if a draft
// supersedes a passage that has a successor already.
func (s *Store) Insert(ctx context.Context, org db.Org, archiveID string, drafts []Draft) ([]Inserted, error) {
	return collect(s.InsertMany(ctx, org, archiveID, all(drafts)))
}

// InsertFor inserts into an agent's archive of the user of a reach, or into its default archive if the reach has no
// user. It creates the archive if the agent has none. If a draft supersedes a passage, it inserts into that passage's
// archive instead, which must be within the reach. ErrNotFound if the agent does not exist; otherwise as Insert.
func (s *Store) InsertFor(ctx context.Context, org db.Org, r Reach, drafts []Draft) ([]Inserted, error) {
	return collect(s.insertInto(ctx, org, all(drafts), func() (string, error) {
		if i := slices.IndexFunc(drafts, func(d Draft) bool { return d.Supersedes != "" }); i >= 0 {
			return s.supersededArchive(ctx, org, r, drafts[i].Supersedes)
		}
		archive, err := s.defaultArchive(ctx, org, r)
		return archive.ID, err
	}))
}

// InsertMany is Insert for drafts that arrive one by one. It reads all drafts before it writes to the database. If
// drafts yield an error, it inserts nothing and returns the first one.
func (s *Store) InsertMany(ctx context.Context, org db.Org, archiveID string, drafts iter.Seq2[Draft, error]) (
	*Batch, error) {
	return s.insertInto(ctx, org, drafts, func() (string, error) { return archiveID, nil })
}

// insertInto checks the drafts before it asks archive for the id.
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

// collect reads all passages of a batch and closes it.
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
	if err := checkLanguage(d.Language); err != nil {
		return err
	}
	return checkTags(d.Tags)
}

// checkLanguage returns ErrInvalid if a code is not empty and of no language.
func checkLanguage(code string) error {
	if code == "" || slices.Contains(lexicon.Codes(), code) {
		return nil
	}
	return &db.FieldError{Field: "language", Rule: lexicon.NotACode}
}

func checkTags(tags []string) error {
	if len(tags) > MaxTags {
		return db.Invalid("a passage has %d tags; it may have at most %d", len(tags), MaxTags)
	}
	return db.CheckTags(tags)
}

// split cuts a text that is too long for one passage. Joined, the parts are the text.
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
