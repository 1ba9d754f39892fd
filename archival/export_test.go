package archival

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
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
