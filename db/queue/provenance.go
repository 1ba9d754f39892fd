package queue

import (
	"context"
	"encoding/json"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/loci-memory/loci/db"
)

// Provenance gives jobs the provenance of what queues them, and what they store the provenance of the job. It stands in
// their metadata, so that jobs with the same arguments are the same job whoever queued them.
type Provenance struct{ river.MiddlewareDefaults }

// metadataKey is the field of a job's metadata.
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
