// Package files keeps uploaded documents, turns them into searchable chunks, and tracks which of them an agent has
// open. It owns folders, files, their originals, segments, chunks and vectors, and which agents have attached or opened
// them; it knows an agent only by its id.
//
// Each file uses only the files named before it:
//   - the store, and what it holds: mapped.go gathering.go jobargs.go pagenumbers.go escapes.go ingested.go
//     openlimits.go reach.go uses.go files.go
//   - jobs: jobs.go fairstart.go embedding.go embedbatch.go
//   - folders and their files: folder.go filename.go skills.go file.go cancel.go updatefile.go download.go
//   - what an agent has open: lineview.go openset.go promptviews.go agentfiles.go attachment.go autoopen.go attach.go
//   - how a document is stored and read: upload.go parsememory.go
//     pagelog.go ingest.go reparse.go purge.go progress.go
//   - lists, and files that are opened by name: directories.go globfilter.go fields.go listing.go resolve.go used.go
//     openclose.go
//   - search: grep.go query.go merge.go search.go passages.go
//   - work in the background: backfill.go backlog.go reembed.go work.go new.go
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
	MaxUploadBytes int64              // a larger upload is refused; 0 means 50 MiB
	TempDir        string             // holds uploads for a short time; empty: the system's temporary directory
	Endpoint       *endpoint.Endpoint // nil: searches rank by words alone
	Reranker       *rank.Reranker     // reorders the best hits of a search; nil: no reordering

	// PromptTokens counts the tokens of a text. If it is nil, they are estimated from the number of characters.
	PromptTokens func(text string) int

	// Failed, if not nil, is called if a file's text or chunks cannot be made, with the reason.
	Failed func(ctx context.Context, fileID, reason string)

	// Jobs queues the store's jobs. If it is nil, the store makes a client that only queues.
	Jobs *river.Client[pgx.Tx]

	// Read reads the text of documents. If it is nil, this process reads them, and a hostile document can crash it.
	Read func(ctx context.Context, in document.Input) (document.Text, error)

	// Accepts says which uploads Read reads besides those that document.Readers read.
	Accepts document.Accepted

	// Limits maps agent id → the agent's limits. It is called when a file is uploaded to a folder of these agents, to
	// open it for them. If it is nil, uploaded files are not opened.
	Limits func(ctx context.Context, d db.DB, org db.Org, agentIDs []string) (map[string]Limits, error)
}

// DefaultMaxUploadBytes is 50 MiB, as in Letta.
const DefaultMaxUploadBytes = 50 << 20

// Store keeps files in Postgres.
type Store struct {
	db     db.DB
	tx     pgx.Tx                // db, if the store works in a transaction
	jobs   *river.Client[pgx.Tx] // inserts only
	search *rank.Search
	grep   *grep.Searcher
	o      Options

	parsing parsingMemory // bytes of documents that are being parsed
	readers chan struct{} // one slot per text that is being read and split
	starts  *gathering[db.Org, *startedFile]
	commits *gathering[folderOf, *ingested]
	uses    *uses // uses of files by searches, which wait to be recorded
}

// With returns a store that works in tx.
func (s *Store) With(tx pgx.Tx) *Store {
	in := *s
	in.db, in.tx = tx, tx
	return &in
}

// inTx calls fn with a store that works in a transaction. It calls fn again if Postgres aborts the transaction, see
// db.Tx.
func (s *Store) inTx(ctx context.Context, fn func(in *Store) error) error {
	return db.Tx(ctx, s.db, func(tx pgx.Tx) error { return fn(s.With(tx)) })
}

// exec runs a statement that may affect no row.
func (s *Store) exec(ctx context.Context, sql string, args ...any) error {
	_, err := s.db.Exec(ctx, sql, args...)
	return err
}

// deleteFiles is db.Delete for files.
func (s *Store) deleteFiles(ctx context.Context, org db.Org, condition string, args ...any) error {
	_, err := db.Delete(ctx, s.db, "files", condition, append([]any{org}, args...)...)
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

// space returns the id of the active embedding space, or 0.
func (s *Store) space() int16 {
	space, ok := s.o.Endpoint.Space()
	if !ok {
		return 0
	}
	return space.ID
}
