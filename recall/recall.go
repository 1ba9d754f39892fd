// Package recall keeps the log of agents' conversations, which is never rewritten, and searches it. It owns
// conversations, messages, tool calls, the tool results too long for the log, and the messages' vectors. It knows an
// agent only by its id.
package recall

import (
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/wordindex"
)

// Options configure a Store.
type Options struct {
	Entropy  bool            // redact texts of high entropy too, which includes hashes and ids
	Endpoint *embed.Endpoint // the embeddings endpoint; nil ranks by words alone
	Reranker *embed.Reranker // orders the best hits of a search; nil leaves their order
}

// Store keeps conversations in Postgres.
type Store struct {
	db        db.DB
	search    *embed.Search
	redactors *sync.Map // *redact.Redactor by organization
	o         Options
	settle    time.Duration // between an append and the job that embeds it
}

// New returns a store on d.
func New(d db.DB, o Options) *Store {
	search := embed.NewSearch(o.Endpoint, "searched_messages", "message_vectors", "message_key")
	search.Reranker = o.Reranker
	search.Words = wordindex.New("messages", "searched_messages", "agent_key", "seq")
	return &Store{db: d, search: search, redactors: &sync.Map{}, o: o, settle: embed.Settle}
}

// With returns the store working in tx.
func (s *Store) With(tx pgx.Tx) *Store {
	in := *s
	in.db = tx
	return &in
}

func isNotFound(err error) bool { return errors.Is(err, db.ErrNotFound) }
