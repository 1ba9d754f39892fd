package queue

import (
	"context"
	"encoding/json"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/loci-memory/loci/db"
)

// Provenance gives a job the provenance of the work that queues it. What the job stores has the same provenance. It is
// in the job's metadata, so that jobs with equal arguments count as the same job whoever queued them.
type Provenance struct{ river.MiddlewareDefaults }

// metadataKey is the metadata field with the provenance.
const metadataKey = "provenance"

// InsertMany implements rivertype.JobInsertMiddleware.
func (*Provenance) InsertMany(ctx context.Context, jobs []*rivertype.JobInsertParams,
	insert func(context.Context) ([]*rivertype.JobInsertResult, error)) ([]*rivertype.JobInsertResult, error) {
	if p := db.ProvenanceOf(ctx); p != nil {
		for _, job := range jobs {
			metadata := map[string]any{}
			if len(job.Metadata) > 0 {
				if err := json.Unmarshal(job.Metadata, &metadata); err != nil {
					return nil, err
				}
			}
			metadata[metadataKey] = p
			var err error
			if job.Metadata, err = json.Marshal(metadata); err != nil {
				return nil, err
			}
		}
	}
	return insert(ctx)
}

// Work implements rivertype.WorkerMiddleware.
func (*Provenance) Work(ctx context.Context, job *rivertype.JobRow, work func(context.Context) error) error {
	var metadata struct {
		Provenance db.Provenance `json:"provenance"`
	}
	if len(job.Metadata) > 0 {
		if err := json.Unmarshal(job.Metadata, &metadata); err != nil {
			return err
		}
	}
	return work(db.WithProvenance(ctx, metadata.Provenance))
}
