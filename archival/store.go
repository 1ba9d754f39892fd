package archival

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
)

// Options are what a Store needs beside its database.
type Options struct {
	Dense *embed.Dense // the embeddings endpoint; nil ranks by words alone
}

// Store keeps archives in Postgres.
type Store struct {
	db    db.DB
	idf   *embed.IDFCache
	sizes *sizes
	dense *embed.Dense

	indexRows int           // scopes of more rows are read through the indexes
	settle    time.Duration // between an insert and the job that embeds it
}

// scopeLife is how long the word statistics of a scope are used before they are sampled again.
const scopeLife = time.Minute

// indexRows is the size of a scope up to which an exact scan is faster than an index, or as fast.
const indexRows = 50_000

// New returns a store on d.
func New(d db.DB, o Options) *Store {
	return &Store{db: d, idf: &embed.IDFCache{Live: scopeLife}, sizes: &sizes{}, dense: o.Dense, indexRows: indexRows, settle: embed.Settle}
}

// With returns the store working in tx.
func (s *Store) With(tx pgx.Tx) *Store {
	in := *s
	in.db = tx
	return &in
}

// uuidOf is the UUID of a passage's id; one that is no such id is of no passage.
func uuidOf(id string) uuid.UUID {
	parsed, err := uuid.Parse(strings.TrimPrefix(id, "passage-"))
	if err != nil {
		return uuid.Nil
	}
	return parsed
}

func isNotFound(err error) bool { return errors.Is(err, db.ErrNotFound) }

// knows returns ErrNotFound unless the organization has the agent.
func (s *Store) knows(ctx context.Context, org db.Org, agentID string) error {
	_, err := db.One[string](ctx, s.db, `SELECT id FROM agents WHERE org = $1 AND id = $2`, org, agentID)
	if isNotFound(err) {
		return db.NotFound("Agent with ID %s not found", agentID)
	}
	return err
}
