package files

import (
	"context"
	"fmt"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/spool"
	"github.com/loci-memory/loci/embed/rank"
	"github.com/loci-memory/loci/embed/wordindex"
	"github.com/loci-memory/loci/files/document"
	"github.com/loci-memory/loci/files/grep"
)

// New returns a store on d. It removes what a killed server left in TempDir.
func New(d db.DB, o Options) (*Store, error) {
	spool.Sweep(o.TempDir)
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
	search := rank.NewSearch(o.Endpoint, "chunks", "chunk_vectors", "chunk_key")
	search.Reranker = o.Reranker
	search.Words, search.PlainTerms = wordindex.New("chunks", "chunks", "folder_key", "key"), true
	s := &Store{db: d, jobs: o.Jobs, search: search, grep: grep.New(), o: o, parsing: newParsing(), uses: &uses{},
		readers: make(chan struct{}, parsers)}
	s.starts = newGathering(1, maxTogether, s.startParsing)
	s.commits = newGathering(parsers, maxTogether, func(ctx context.Context, folder folderOf, all []*ingested) error {
		return s.commit(ctx, folder.org, all)
	})
	return s, nil
}

// tellEvery is how soon workers hear of another job in a queue. Otherwise they look for jobs every second.
const tellEvery = 5 * time.Millisecond

// maxTogether is how many files are started or committed together.
const maxTogether = 16
