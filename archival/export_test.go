package archival

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
)

// SetIndexRows sets the size of a scope up to which a search reads all of it.
func (s *Store) SetIndexRows(rows int) { s.indexRows = rows }

// WordSQL is the statement that finds the candidates of a query by words.
func (s *Store) WordSQL(ctx context.Context, org db.Org, q Query) (string, pgx.StrictNamedArgs, error) {
	in, err := s.scope(ctx, org, q)
	if err != nil {
		return "", nil, err
	}
	idf, err := s.statistics(ctx, in)
	if err != nil {
		return "", nil, err
	}
	query := idf.Query(q.Text)
	sql, args := in.wordSQL(query, s.candidateTerms(in, idf, query))
	return sql, args, nil
}

// SetSettle sets how long a job waits for more to be inserted.
func (s *Store) SetSettle(d time.Duration) { s.settle = d }

// EmbedOnce does what a job does until nothing is left or the endpoint fails.
func EmbedOnce(s *Store, ctx context.Context, org db.Org, archiveID string) error {
	key, err := db.One[int64](ctx, s.db, `SELECT key FROM archives WHERE org = $1 AND id = $2`, org, archiveID)
	if err != nil {
		return err
	}
	q := s.Queue()
	space, _ := s.dense.Space()
	for more := true; more && err == nil; {
		more, err = q.Once(ctx, job{Org: org, Owner: key}, space)
	}
	return err
}

// Nearest is the statement that ranks what a query may see by meaning, and its arguments.
func Nearest(s *Store, ctx context.Context, org db.Org, q Query, vector []float32, exact bool) (string, pgx.StrictNamedArgs, error) {
	in, err := s.scope(ctx, org, q)
	n := s.nearest(in, embed.Half(vector))
	return n.SQL(exact), n.Args, err
}

// WordsAlone returns the store as it is without an embeddings endpoint.
func (s *Store) WordsAlone() *Store {
	in := *s
	in.dense = nil
	return &in
}
