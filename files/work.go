package files

import (
	"context"

	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/db/queue"
	"github.com/loci-memory/loci/embed/endpoint"
)

// Work registers the workers for the jobs of files.
func (s *Store) Work(workers *river.Workers) {
	river.AddWorker(workers, &queue.Worker[ParseArgs]{Do: s.parseFile, Pause: pause, Limit: parseLimit})
	work(workers, s.reparsePage)
	work(workers, s.purgeFolder)
	(&endpoint.Worker[EmbedArgs]{Vectors: s.vectors(), DB: s.db, Next: s.nextBatch, OneBatch: true,
		Bulk: true}).Register(workers)
	(&endpoint.Worker[EmbedFilesArgs]{Vectors: s.vectors(), DB: s.db, Next: s.nextFiles, Bulk: true}).Register(workers)
}

func work[A river.JobArgs](workers *river.Workers, do func(context.Context, *river.Job[A]) error) {
	river.AddWorker(workers, &queue.Worker[A]{Do: do, Pause: pause})
}
