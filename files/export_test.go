package files

import (
	"context"

	"github.com/loci-memory/loci/db"
)

// SetIndexRows sets the number of rows up to which a search reads all of them.
func (s *Store) SetIndexRows(n int) { s.search.IndexRows = n }

// SetIndexChars changes how much text of a folder is indexed together.
func (s *Store) SetIndexChars(chars int64) { s.grep.IndexChars = chars }

// PurgeOnce clears some of a deleted folder away.
func PurgeOnce(s *Store, ctx context.Context, job PurgeArgs) (done bool, err error) {
	return s.purge(ctx, job)
}

// BackfillOrg is Backfill for one organization.
func BackfillOrg(s *Store, ctx context.Context, org db.Org) (added int, err error) {
	return s.backfill(ctx, org, s.space())
}

// ByMeaning ranks the chunks of folders by their meaning, and returns the keys of the best.
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

// WaitsForMemory reports whether a document waits for the memory to parse it.
func (s *Store) WaitsForMemory() bool { return s.parsing.Waiting() > 0 }

// SetWordRows sets how many chunks of a folder are indexed by their words, and how many more make a new segment.
func (s *Store) SetWordRows(first, more int) {
	s.search.Words.FirstRows, s.search.Words.NewRows = first, more
}

// LiteralOf returns a text that the names which an include accepts have.
var LiteralOf = literalOf

// Gathering lets tests do things together.
type Gathering struct{ *gathering[string, int] }

// NewGathering returns a gathering of numbers.
func NewGathering(slots, most int, each func(ctx context.Context, key string, things []int) error) Gathering {
	return Gathering{newGathering(slots, most, each)}
}

// Do does a thing.
func (g Gathering) Do(ctx context.Context, key string, thing int) error { return g.do(ctx, key, thing) }

// Waiting returns how many things of a key wait.
func (g Gathering) Waiting(key string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.lines[key])
}
