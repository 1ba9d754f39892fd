package recall

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
)

// vectorTable is the table of the messages' vectors.
const vectorTable = "message_vectors"

var errNoEndpoint = db.Invalid("search_mode is %q, and there is no embeddings endpoint to rank by meaning: set LOCI_EMBEDDING_BASE_URL, "+
	"or search with %q or %q", ByMeaning, ByWords, ByBoth)

// byMeaning ranks by the inner product with the query's vector. It tells out what it ranked by: without an answer of the endpoint nothing,
// and why.
func (s *Store) byMeaning(ctx context.Context, in scope, out *Results) ([]embed.Hit, error) {
	q, note := s.o.Dense.Question(ctx, db.Clean(in.q.Text))
	if out.Note = note; q == nil {
		return nil, nil
	}
	if out.Ranked = ByBoth; in.q.Mode == ByMeaning {
		out.Ranked = ByMeaning
	}
	return s.nearest(in, q).Read(ctx, s.db, in.rows > s.indexRows, in.q.Limit)
}

// nearest ranks the scope by meaning.
func (s *Store) nearest(in scope, q any) embed.Nearest {
	space, _ := s.o.Dense.Space()
	args := in.args()
	args["q"] = q
	return embed.Nearest{Table: vectorTable, Key: "message_key", Space: space, Where: in.within("v"), Args: args}
}

// Index builds the index of the active space's vectors where that pays and it is not there; built says that it did.
func (s *Store) Index(ctx context.Context, pool *pgxpool.Pool, progress func(done, total int)) (built bool, err error) {
	return s.o.Dense.Index(ctx, pool, vectorTable, s.indexRows, func(ctx context.Context, space embed.Space) (int, error) {
		return db.One[int](ctx, pool, `
			SELECT coalesce(sum(messages - embedded), 0) FROM conversations
			WHERE unembedded AND deleted_at IS NULL AND coalesce(embedded_space, $1) = $1`, space.ID)
	}, progress)
}

// ClearSpaces deletes the vectors of spaces that no server has used for a week, with their indexes, and says how many.
func (s *Store) ClearSpaces(ctx context.Context, pool *pgxpool.Pool) (rows int, err error) {
	return s.o.Dense.ClearUnused(ctx, pool, vectorTable, func(ctx context.Context, _ []embed.Space) error {
		_, err := s.Backfill(ctx, embed.IdleSpace) // or what goes would count as embedded
		return err
	})
}
