package files

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
)

// SetIndexRows changes the size of a scope above which it is read through the indexes.
func (s *Store) SetIndexRows(n int) { s.indexRows = n }

// NearestSQL is the statement that ranks a scope by meaning.
func NearestSQL(space embed.Space, exact bool) string { return nearestSQL(space, exact) }

// The statements that rank a scope by words.
const (
	WordsExact   = wordsExact
	WordsIndexed = wordsIndexed
)

// SetIndexChars changes how much text of a folder is indexed together.
func (s *Store) SetIndexChars(chars int64) { s.grep.IndexChars = chars }

// PurgeOnce clears some of a deleted folder away.
func PurgeOnce(s *Store, ctx context.Context, job PurgeArgs) (done bool, err error) {
	return s.purge(ctx, job)
}

// ByMeaning ranks the chunks of folders, a scope of so many rows, by their vectors.
func ByMeaning(s *Store, ctx context.Context, org db.Org, folders []int64, rows int, vector []float32, limit int) ([]embed.Hit, error) {
	return s.byMeaning(ctx, scope{org: org, folders: folders}, rows, vector, limit)
}

// AgentFilesSQL is the statement that lists a page of an agent's files, and adds to its arguments.
func AgentFilesSQL(p db.Page, args pgx.StrictNamedArgs) string { return agentFilesSQL(p, nil, args) }
