package recall

import (
	"context"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
)

var errNoEndpoint = db.Invalid("search_mode is %q, and there is no embeddings endpoint to rank by meaning: set LOCI_EMBEDDING_BASE_URL, "+
	"or search with %q or %q", ByMeaning, ByWords, ByBoth)

// byMeaning ranks by the inner product with the query's vector. It tells out what it ranked by: without an answer of
// the endpoint nothing, and why.
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
