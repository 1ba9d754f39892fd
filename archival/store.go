package archival

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
)

// Options configure a Store.
type Options struct {
	Endpoint *embed.Endpoint // the embeddings endpoint; nil ranks by words alone
}

// Store keeps archives in Postgres.
type Store struct {
	db       db.DB
	search   *embed.Search
	sizes    *sizes
	endpoint *embed.Endpoint
	settle   time.Duration // between an insert and the job that embeds it
}

// New returns a store on d.
func New(d db.DB, o Options) *Store {
	search := embed.NewSearch(o.Endpoint, "passages", "passage_vectors", "passage_key")
	return &Store{db: d, search: search, sizes: &sizes{}, endpoint: o.Endpoint, settle: embed.Settle}
}

// With returns a copy of the store that works in tx.
func (s *Store) With(tx pgx.Tx) *Store {
	in := *s
	in.db = tx
	return &in
}

// uuidOf returns the UUID of a passage's id, or the nil UUID, which no passage has, if id is malformed.
func uuidOf(id string) uuid.UUID { return db.UUID("passage-", id) }

func isNotFound(err error) bool { return errors.Is(err, db.ErrNotFound) }

// checkAgent returns ErrNotFound unless the organization has the agent.
func (s *Store) checkAgent(ctx context.Context, org db.Org, agentID string) error {
	_, err := db.One[string](ctx, s.db, `SELECT id FROM agents WHERE org = $1 AND id = $2`, org, agentID)
	return missing(err, "Agent", agentID)
}

// missing returns the sentence for an ErrNotFound, and any other error as it came.
func missing(err error, what, id string) error {
	if isNotFound(err) {
		return db.NotFound("%s with ID %s not found", what, id)
	}
	return err
}
