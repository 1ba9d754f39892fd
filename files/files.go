// Package files keeps uploaded documents, turns them into searchable chunks, and tracks which of them an agent has
// open. It owns folders, files, their originals, segments, chunks and vectors, and what is attached to and open in
// which agent; it knows an agent only by its id.
//
// Each file uses those that are named before it:
//   - the store, and what it holds: mapped.go gathering.go jobargs.go pagenumbers.go ingested.go tiers.go uses.go
//     files.go
//   - jobs: jobs.go fairstart.go embedding.go embedbatch.go
//   - folders and their files: folder.go filename.go file.go cancel.go download.go
//   - what an agent has open: lineview.go openset.go promptviews.go agentfiles.go attachment.go autoopen.go attach.go
//   - how a document is stored and read: upload.go parsememory.go ingest.go reparse.go purge.go progress.go
//   - lists, and files that are opened by name: directories.go globfilter.go listing.go resolve.go used.go openclose.go
//   - search: grep.go query.go merge.go search.go passages.go
//   - work in the background: backfill.go backlog.go remade.go work.go new.go
//   - erasures, files that an agent has already, and files in the file of an agent: erasepacked.go erase.go hashes.go
//     portable.go
package files

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/embed/rank"
	"github.com/loci-memory/loci/files/document"
	"github.com/loci-memory/loci/files/grep"
)

// Options configure a Store.
type Options struct {
	MaxUploadBytes int64              // a larger upload is refused; 0 is 50 MiB
	TempDir        string             // where uploads are spooled; empty is the system's
	Endpoint       *endpoint.Endpoint // the embeddings endpoint; nil ranks by words alone
	Reranker       *rank.Reranker     // orders the best hits of a search; nil leaves their order

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
	search *rank.Search
	grep   *grep.Searcher
	o      Options

	parsing *db.Shares    // bytes of documents that are being parsed
	readers chan struct{} // one for each text that is being read and split
	starts  *gathering[db.Org, *startedFile]
	commits *gathering[folderOf, *ingested]
	uses    *uses // of files by searches, that wait to be recorded
}

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

// space returns the id of the active embedding space, 0 if there is none.
func (s *Store) space() int16 {
	space, ok := s.o.Endpoint.Space()
	if !ok {
		return 0
	}
	return space.ID
}
