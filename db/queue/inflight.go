package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/loci-memory/loci/db"
)

// InFlight is a worker middleware that keeps the jobs on which a server works.
type InFlight struct {
	river.MiddlewareDefaults

	mu   sync.Mutex
	jobs map[int64]int
}

// Work implements rivertype.WorkerMiddleware.
func (f *InFlight) Work(ctx context.Context, job *rivertype.JobRow, inner func(context.Context) error) error {
	f.add(job.ID, 1)
	defer f.add(job.ID, -1)
	return inner(ctx)
}

// ForOrg is a worker middleware that runs a job for the organization in its arguments. db.OrgOf returns that
// organization.
type ForOrg struct{ river.MiddlewareDefaults }

// Work implements rivertype.WorkerMiddleware.
func (*ForOrg) Work(ctx context.Context, job *rivertype.JobRow, inner func(context.Context) error) error {
	var fields struct {
		Org db.Org `json:"org"`
	}
	if err := json.Unmarshal(job.EncodedArgs, &fields); err != nil {
		return fmt.Errorf("read the organization of a job: %w", err)
	}
	return inner(db.WithOrg(ctx, fields.Org))
}

func (f *InFlight) add(job int64, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.jobs == nil {
		f.jobs = map[int64]int{}
	}
	if f.jobs[job] += n; f.jobs[job] == 0 {
		delete(f.jobs, job)
	}
}

// Empty reports whether the server works on no job.
func (f *InFlight) Empty() bool { return len(f.ids()) == 0 }

// ids returns the ids of the jobs in flight, never nil.
func (f *InFlight) ids() []int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.AppendSeq([]int64{}, maps.Keys(f.jobs))
}
