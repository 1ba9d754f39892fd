package archival

import (
	"cmp"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/embed/rank"
	"github.com/loci-memory/loci/embed/wordindex"
)

// DefaultSimilar is the similarity from which on passages are named as similar, unless Options.Similar has another.
const DefaultSimilar = 0.8

// Options configure a Store.
type Options struct {
	Endpoint *endpoint.Endpoint // nil: searches rank by words alone
	Reranker *rank.Reranker     // reorders the best hits of a search; nil: no reordering
	Similar  float64            // from which similarity on passages are named; 0: DefaultSimilar; above 1: none
}

// Store keeps archives in Postgres.
type Store struct {
	db       db.DB
	search   *rank.Search
	sizes    *sizes
	wide     *wide
	endpoint *endpoint.Endpoint
	similar  float64       // as in Options
	settle   time.Duration // delay between an insert and the job that embeds it
}

// New returns a store on d.
func New(d db.DB, o Options) *Store {
	search := rank.NewSearch(o.Endpoint, "passages", "passage_vectors", "passage_key")
	search.Reranker = o.Reranker
	search.Words = wordindex.New("passages", "passages", "archive_key", "key")
	return &Store{db: d, search: search, sizes: &sizes{}, wide: &wide{}, endpoint: o.Endpoint,
		similar: cmp.Or(o.Similar, DefaultSimilar), settle: endpoint.Settle}
}

// With returns a copy of the store that works in tx.
func (s *Store) With(tx pgx.Tx) *Store {
	in := *s
	in.db = tx
	return &in
}

// uuidOf returns the UUID in a passage's id. For a malformed id it returns the nil UUID, which no passage has.
func uuidOf(id string) uuid.UUID { return db.UUID("passage-", id) }

// orNotFound gives an ErrNotFound its text, and returns any other error unchanged.
func orNotFound(err error, what, id string) error {
	return db.OrNotFound(err, "%s with ID %s not found", what, db.Short(id))
}
