package files

import (
	"context"

	"github.com/loci-memory/loci/db"
)

// SetIndexRows sets the number of rows up to which a search reads all rows.
func (s *Store) SetIndexRows(n int) { s.search.IndexRows = n }

// SetIndexChars sets how much text of a folder is indexed together.
func (s *Store) SetIndexChars(chars int64) { s.grep.IndexChars = chars }

// PurgeOnce clears away a part of a deleted folder.
func PurgeOnce(s *Store, ctx context.Context, job PurgeArgs) (done bool, err error) {
	return s.purge(ctx, job)
}

// BackfillOrg is Backfill for one organization.
func BackfillOrg(s *Store, ctx context.Context, org db.Org) (added int, err error) {
	return s.backfill(ctx, org, s.space())
}

// ByMeaning ranks the chunks of folders by meaning and returns the keys of the best.
func ByMeaning(s *Store, ctx context.Context, org db.Org, folders ...int64) ([]int64, error) {
	q := s.question(searchedFiles{org: org, folders: folders}, "anything", 10)
	q.MeaningOnly = true
	ranking, err := s.search.Rank(ctx, s.db, q)
	keys := make([]int64, len(ranking.Rows))
	for i, r := range ranking.Rows {
		keys[i] = r.ID
	}
	return keys, err
}

// WaitsForMemory reports whether a document waits for memory before it is parsed.
func (s *Store) WaitsForMemory() bool { return s.parsing.complex.Waiting() > 0 }

// SetWordRows sets how many chunks of a folder get a word index, and how many more make a new segment.
func (s *Store) SetWordRows(first, more int) {
	s.search.Words.FirstRows, s.search.Words.NewRows = first, more
}

// LiteralOf returns a text that is in every name that an include accepts.
var LiteralOf = literalOf

// Gathering exposes gathering to tests.
type Gathering struct{ *gathering[string, int] }

// NewGathering returns a gathering of numbers.
func NewGathering(slots, most int, each func(ctx context.Context, key string, things []int) error) Gathering {
	return Gathering{newGathering(slots, most, each)}
}

// Do hands over one number.
func (g Gathering) Do(ctx context.Context, key string, thing int) error { return g.do(ctx, key, thing) }

// Waiting returns how many numbers wait under a key.
func (g Gathering) Waiting(key string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.lines[key])
}
