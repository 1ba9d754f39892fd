package recall

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
)

// vectorTable is the table of the messages' vectors.
const vectorTable = "message_vectors"

var errNoEndpoint = db.Invalid("search_mode is %q, and there is no embeddings endpoint to rank by meaning: set LOCI_EMBEDDING_BASE_URL, "+
	"or search with %q or %q", ByMeaning, ByWords, ByBoth)

// byMeaning ranks by the inner product with the query's vector: exact over a small scope, through the space's index over a large one, and
// exact again if that finds too few. It tells out what it ranked by: without an answer of the endpoint nothing, and why.
func (s *Store) byMeaning(ctx context.Context, in scope, out *Results) ([]embed.Hit, error) {
	space, _ := s.o.Dense.Space()
	args := in.args()
	if args["q"], out.Note = s.question(ctx, in.q.Text, space); args["q"] == nil {
		return nil, nil
	}
	if out.Ranked = ByBoth; in.q.Mode == ByMeaning {
		out.Ranked = ByMeaning
	}
	args["limit"] = embed.ArmRows
	if in.rows > s.indexRows {
		hits, err := embed.Along(ctx, s.db, in.nearest(space, false), args)
		if err != nil || len(hits) >= in.q.Limit {
			return hits, err
		}
	}
	return db.All[embed.Hit](ctx, s.db, in.nearest(space, true), args)
}

// question is a query's vector as an argument, nil if it has none, with a sentence on why if it should.
func (s *Store) question(ctx context.Context, text string, space embed.Space) (q any, note string) {
	vector, err := s.o.Dense.Query(ctx, db.Clean(text))
	switch {
	case err != nil:
		return nil, fmt.Sprintf("%v, so this was ranked by words alone.", err)
	case vector == nil:
		return nil, ""
	case len(vector) != space.Dimension:
		return nil, "The embeddings endpoint answers with another model's vectors, so this was ranked by words alone."
	}
	return embed.Half(vector), ""
}

// nearest is the statement that ranks the scope by meaning.
func (c scope) nearest(space embed.Space, exact bool) string {
	return fmt.Sprintf(`
		SELECT id, -distance AS score FROM (
			SELECT v.message_key AS id, %s AS distance FROM message_vectors v
			WHERE v.space_id = %d AND%s
			ORDER BY distance
			LIMIT @limit
		) nearest`, space.Distance(exact), space.ID, c.within("v"))
}

// Index builds the index of the active space's vectors where that pays and it is not there; built says that it did.
func (s *Store) Index(ctx context.Context, pool *pgxpool.Pool, progress func(done, total int)) (built bool, err error) {
	space, ok := s.o.Dense.Space()
	if !ok {
		return false, nil
	}
	waiting := func(ctx context.Context) (int, error) {
		return db.One[int](ctx, pool, `
			SELECT coalesce(sum(messages - embedded), 0) FROM conversations
			WHERE unembedded AND deleted_at IS NULL AND coalesce(embedded_space, $1) = $1`, space.ID)
	}
	return embed.Index{Table: vectorTable, Space: space}.Keep(ctx, pool, s.indexRows, waiting, progress)
}

// ClearSpaces deletes the vectors of spaces that no server has used for a week, with their indexes, and says how many.
func (s *Store) ClearSpaces(ctx context.Context, pool *pgxpool.Pool) (rows int, err error) {
	unused, err := s.o.Dense.Unused(ctx, pool)
	if err != nil || len(unused) == 0 {
		return 0, err
	}
	if _, err := s.Backfill(ctx, IdleSpace); err != nil { // or what goes would count as embedded
		return 0, err
	}
	for _, space := range unused {
		n, err := embed.Index{Table: vectorTable, Space: space}.Clear(ctx, pool)
		rows += n
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}
