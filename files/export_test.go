package files

import "github.com/loci-memory/loci/embed"

// SetIndexRows changes the size of a scope above which it is read through the indexes.
func (s *Store) SetIndexRows(n int) { s.indexRows = n }

// NearestSQL is the statement that ranks a scope by meaning.
func NearestSQL(space embed.Space, exact bool) string { return nearestSQL(space, exact) }

// The statements that rank a scope by words.
const (
	WordsExact   = wordsExact
	WordsIndexed = wordsIndexed
)
