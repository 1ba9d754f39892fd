package files

import (
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/embed/endpoint"
)

// Work registers the workers of the jobs of files.
func (s *Store) Work(workers *river.Workers) {
	river.AddWorker(workers, &parseWorker{worker[ParseArgs]{store: s}})
	river.AddWorker(workers, &endpoint.Worker[EmbedArgs]{Vectors: s.vectors(), DB: s.db, Next: s.nextBatch,
		OneBatch: true, Bulk: true})
	river.AddWorker(workers, &endpoint.Worker[EmbedFilesArgs]{Vectors: s.vectors(), DB: s.db, Next: s.nextFiles,
		Bulk: true})
	river.AddWorker(workers, &reparseWorker{worker[ReparseArgs]{store: s}})
	river.AddWorker(workers, &purgeWorker{worker[PurgeArgs]{store: s}})
}
