package files

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files/document"
)

// parsers is how many workers read texts at the same time, and how many commit at the same time.
const parsers = 2

const (
	maxOverruns = 3 // attempts that ran out of time or lost their child, not counting those that ended with their server
	maxPause    = time.Minute

	// parseLimit is the time limit of one attempt, on a machine that may be busy with other work. What a document may
	// take is limited in processor time and memory.
	parseLimit = 15 * time.Minute
)

// enqueue adds jobs in the store's transaction.
func (s *Store) enqueue(ctx context.Context, jobs ...river.JobArgs) error {
	if len(jobs) == 0 {
		return nil
	}
	params := mapped(jobs, func(job river.JobArgs) river.InsertManyParams { return river.InsertManyParams{Args: job} })
	if _, err := s.jobs.InsertManyTx(ctx, s.tx, params); err != nil {
		return fmt.Errorf("queue work: %w", err)
	}
	return nil
}

// cancelJobs cancels the jobs of a file in the store's transaction. Waiting jobs are cancelled at once. Running jobs
// get a signal; they may still run, but do not commit any more. Jobs that the file shares with others continue without
// it.
func (s *Store) cancelJobs(ctx context.Context, fileKey int64) error {
	running, err := db.All[int64](ctx, s.tx, `
		WITH mine AS (
			SELECT id, state FROM river_job
			WHERE args @> jsonb_build_object('file_key', $1::bigint) AND kind IN ('parse_file', 'embed_chunks')
			  AND state IN ('available', 'pending', 'running', 'retryable', 'scheduled')
			ORDER BY id
			FOR UPDATE
		), waiting AS (
			UPDATE river_job j SET state = 'cancelled', finalized_at = now()
			FROM mine WHERE j.id = mine.id AND mine.state <> 'running'
		)
		SELECT id FROM mine WHERE state = 'running'`, fileKey)
	for i := 0; err == nil && i < len(running); i++ {
		_, err = s.jobs.JobCancelTx(ctx, s.tx, running[i])
	}
	return err
}

// pause returns how long a job waits after its n-th failure: a second, doubled each time, up to a minute.
func pause(failures int) time.Duration { return min(time.Second<<min(failures-1, 6), maxPause) }

// cutShort returns why an attempt is the last one: it ran out of time, or its reader was killed, as others before it.
// It returns "" if the attempt may be repeated. A reader that got no processor time is not the file's fault.
func cutShort(ctx context.Context, job *rivertype.JobRow, err error) string {
	if overruns(job)+1 < maxOverruns || errors.Is(err, document.ErrBusy) {
		return ""
	}
	switch {
	case errors.Is(err, document.ErrStuck):
		return fmt.Sprintf("a program of the operator was not done with this file in its time, %d times; the operator finds "+
			"the cause in the log of the server; then retry the file", maxOverruns)
	case errors.Is(err, document.ErrCutShort):
		return fmt.Sprintf("the system ended the reading of this file %d times, as it does when its memory runs out; "+
			"try it again when the machine has more free memory, or split the file", maxOverruns)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Sprintf("processing this file took longer than %s, %d times; try it again when the machine is less busy, "+
			"or split the file", parseLimit, maxOverruns)
	}
	return ""
}

// isDelayed reports whether an attempt failed only because others have what it needs. However often that happens, the
// file waits.
func isDelayed(err error) bool { return errors.Is(err, document.ErrBusy) || errors.Is(err, errParsing) }

// overruns counts the attempts that were cut short.
func overruns(job *rivertype.JobRow) (n int) {
	for _, e := range job.Errors {
		if strings.Contains(e.Error, context.DeadlineExceeded.Error()) ||
			strings.Contains(e.Error, document.ErrCutShort.Error()) || strings.Contains(e.Error, document.ErrStuck.Error()) {
			n++
		}
	}
	return n
}
