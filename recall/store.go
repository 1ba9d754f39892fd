package recall

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/recall/redact"
)

// Options are what a Store needs beside its database.
type Options struct {
	Entropy bool         // redact by entropy too, which takes hashes and ids for secrets
	Dense   *embed.Dense // the embeddings endpoint; nil ranks by words alone
}

// Store keeps conversations in Postgres.
type Store struct {
	db        db.DB
	idf       *embed.IDFCache
	redactors *redactors
	o         Options

	indexRows int           // scopes of more rows are read through the indexes
	settle    time.Duration // between an append and the job that embeds it
}

// scopeLife is how long the word statistics of a scope are used before they are sampled again.
const scopeLife = time.Minute

// indexRows is the size of a scope up to which an exact scan is faster than an index, or as fast.
const indexRows = 50_000

// New returns a store on d.
func New(d db.DB, o Options) *Store {
	return &Store{db: d, idf: &embed.IDFCache{Live: scopeLife}, redactors: &redactors{}, o: o, indexRows: indexRows, settle: embed.Settle}
}

// With returns the store working in tx.
func (s *Store) With(tx pgx.Tx) *Store {
	in := *s
	in.db = tx
	return &in
}

// agentKey is the key of an agent, by which its rows go.
func (s *Store) agentKey(ctx context.Context, org db.Org, agentID string) (int64, error) {
	key, err := db.One[int64](ctx, s.db, `SELECT key FROM agents WHERE org = $1 AND id = $2`, org, agentID)
	if errors.Is(err, db.ErrNotFound) {
		return 0, db.NotFound("Agent with ID %s not found", agentID)
	}
	return key, err
}

// redactor returns the organization's.
func (s *Store) redactor(ctx context.Context, org db.Org) (*redact.Redactor, error) {
	return s.redactors.of(org, func() (*redact.Redactor, error) {
		key, err := db.One[[]byte](ctx, s.db, `SELECT redaction_key FROM organizations WHERE org = $1`, org)
		return redact.New(key, redact.Options{Entropy: s.o.Entropy}), err
	})
}

func isNotFound(err error) bool { return errors.Is(err, db.ErrNotFound) }
