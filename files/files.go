// Package files keeps uploaded documents, turns them into searchable chunks, and tracks which of them an agent has
// open. It owns folders, files, their originals, segments, chunks and vectors, and what is attached to and open in
// which agent; it knows an agent only by its id.
package files

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/wordindex"
	"github.com/loci-memory/loci/files/document"
	"github.com/loci-memory/loci/files/grep"
)

// Options configure a Store.
type Options struct {
	MaxUploadBytes int64           // a larger upload is refused; 0 is 50 MiB
	TempDir        string          // where uploads are spooled; empty is the system's
	Endpoint       *embed.Endpoint // the embeddings endpoint; nil ranks by words alone
	Reranker       *embed.Reranker // orders the best hits of a search; nil leaves their order

	// PromptTokens counts the tokens of a text; nil estimates them from the characters.
	PromptTokens func(text string) int

	// Failed, if not nil, is called with a file whose text or passages cannot be made, and with the reason.
	Failed func(ctx context.Context, fileID, reason string)

	// Jobs queues the store's jobs; nil is a client that only queues.
	Jobs *river.Client[pgx.Tx]

	// Read reads the text of documents; nil reads them in this process, which a hostile one can take down.
	Read func(ctx context.Context, in document.Input) (document.Text, error)

	// Limits returns the limits of agents, by id. It is called when a file was uploaded to a folder of theirs, to open it
	// for them. Nil opens no uploaded file.
	Limits func(ctx context.Context, d db.DB, org db.Org, agentIDs []string) (map[string]Limits, error)
}

// DefaultMaxUploadBytes is Letta's: 50 MiB.
const DefaultMaxUploadBytes = 50 << 20

// Store keeps files in Postgres.
type Store struct {
	db     db.DB
	tx     pgx.Tx                // db, if the store works in a transaction
	jobs   *river.Client[pgx.Tx] // inserts only
	search *embed.Search
	grep   *grep.Searcher
	o      Options

	parsing *db.Shares    // bytes of documents that are being parsed
	readers chan struct{} // one for each text that is being read and split
	starts  *gathering[db.Org, *startedFile]
	commits *gathering[folderOf, *ingested]
	uses    *uses // of files by searches, that wait to be recorded
}

// New returns a store on d. It removes what a server that was killed left in TempDir.
func New(d db.DB, o Options) (*Store, error) {
	document.SweepSpools(o.TempDir)
	if o.MaxUploadBytes == 0 {
		o.MaxUploadBytes = DefaultMaxUploadBytes
	}
	if o.Read == nil {
		o.Read = document.Readers{}.Read
	}
	if o.Jobs == nil {
		jobs, err := river.NewClient(riverpgxv5.New(nil), &river.Config{FetchCooldown: tellEvery})
		if err != nil {
			return nil, fmt.Errorf("open the job queue: %w", err)
		}
		o.Jobs = jobs
	}
	search := embed.NewSearch(o.Endpoint, "chunks", "chunk_vectors", "chunk_key")
	search.Reranker = o.Reranker
	search.Words, search.PlainTerms = wordindex.New("chunks", "chunks", "folder_key", "key"), true
	s := &Store{db: d, jobs: o.Jobs, search: search, grep: grep.New(), o: o, parsing: newParsing(), uses: &uses{},
		readers: make(chan struct{}, parsers)}
	s.starts = newGathering(1, maxTogether, s.startParsing)
	s.commits = newGathering(parsers, maxTogether, func(ctx context.Context, in folderOf, all []*ingested) error {
		return s.commit(ctx, in.org, all)
	})
	return s, nil
}

// tellEvery is how soon workers are told of another job of a queue. Otherwise they look for jobs every second.
const tellEvery = 5 * time.Millisecond

// maxTogether is how many files are started or committed together.
const maxTogether = 16

// With returns a store that works in tx.
func (s *Store) With(tx pgx.Tx) *Store {
	in := *s
	in.db, in.tx = tx, tx
	return &in
}

// inTx calls fn with a store that works in a transaction, again if Postgres aborts it, see db.Tx.
func (s *Store) inTx(ctx context.Context, fn func(in *Store) error) error {
	return db.Tx(ctx, s.db, func(tx pgx.Tx) error { return fn(s.With(tx)) })
}

// exec runs a statement that may touch no row.
func (s *Store) exec(ctx context.Context, sql string, args ...any) error {
	_, err := s.db.Exec(ctx, sql, args...)
	return err
}

// inOrder runs steps until one fails.
func inOrder(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// ifNotFound returns other in place of an ErrNotFound.
func ifNotFound(err, other error) error {
	if errors.Is(err, db.ErrNotFound) {
		return other
	}
	return err
}

// mapped returns what fn makes of each item of a list.
func mapped[T, U any](list []T, fn func(T) U) []U {
	all := make([]U, len(list))
	for i, item := range list {
		all[i] = fn(item)
	}
	return all
}

// space returns the id of the active embedding space, 0 if there is none.
func (s *Store) space() int16 {
	space, ok := s.o.Endpoint.Space()
	if !ok {
		return 0
	}
	return space.ID
}
