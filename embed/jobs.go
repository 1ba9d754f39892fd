package embed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
)

// Settle is how long after rows were seen that lack their vectors their job begins: all that is written meanwhile is its work too.
const Settle = 2 * time.Second

// CallAtOnce is how many jobs a memory makes at a time at most.
const CallAtOnce = 1000

// JobWorkers is how many workers a server that has an embeddings endpoint gives the queue of a memory's vectors.
const JobWorkers = 4

// Enqueue makes jobs, and says how many.
func Enqueue[T river.JobArgs](ctx context.Context, jobs *river.Client[pgx.Tx], list []T) (int, error) {
	if len(list) == 0 {
		return 0, nil
	}
	params := make([]river.InsertManyParams, len(list))
	for i, job := range list {
		params[i] = river.InsertManyParams{Args: job}
	}
	if _, err := jobs.InsertManyFast(ctx, params); err != nil {
		return 0, fmt.Errorf("queue texts to be embedded: %w", err)
	}
	return len(list), nil
}

// Worker makes vectors batch after batch, as long as a batch says that there was one, and after a while lets other jobs go first.
type Worker[T river.JobArgs] struct {
	river.WorkerDefaults[T]
	Dense *Dense
	Batch func(ctx context.Context, turn *Turn, job T, space Space) (more bool, err error)
}

// workFor is how long a job begins new batches.
const workFor = 10 * time.Second

// NextRetry implements river.Worker.
func (w *Worker[T]) NextRetry(job *river.Job[T]) time.Time {
	return time.Now().Add(w.Dense.Pause(len(job.Errors) + 1))
}

// Work implements river.Worker.
func (w *Worker[T]) Work(ctx context.Context, job *river.Job[T]) error {
	for until := time.Now().Add(workFor); ; {
		space, ok := w.Dense.Space()
		if !ok {
			return river.JobCancel(errors.New("no embeddings endpoint is in use; the work is queued again when one is"))
		}
		more, err := w.Once(ctx, job.Args, space)
		if err != nil || !more {
			return err
		}
		if time.Now().After(until) {
			return river.JobSnooze(0)
		}
	}
}

// Once embeds one batch at the job's turn; more says that there was one.
func (w *Worker[T]) Once(ctx context.Context, job T, space Space) (more bool, err error) {
	turn, away := w.Dense.Await(ctx)
	if away > 0 {
		return false, river.JobSnooze(away)
	}
	defer turn.End()
	return w.Batch(ctx, turn, job, space)
}

// openingChars is how much of a text is embedded: what most models take. One that the endpoint refuses is tried once more with a quarter.
const openingChars = 8000

// Openings makes the vectors of texts by their beginnings, as Embed does, and asks once more for those it refuses by less of them.
func (t *Turn) Openings(ctx context.Context, items []Item) ([]Vector, []*RefusedError, error) {
	if len(items) == 0 {
		return nil, nil, nil
	}
	text, opened := make(map[int64]string, len(items)), make([]Item, len(items))
	for i, item := range items {
		text[item.ID], opened[i] = item.Text, Item{ID: item.ID, Text: opening(item.Text, openingChars)}
	}
	vectors, refused, err := t.Embed(ctx, opened)
	if err != nil {
		return nil, nil, err
	}
	var again []Item
	var final []*RefusedError
	for _, r := range refused {
		if short := opening(text[r.ID], openingChars/4); short != text[r.ID] {
			again = append(again, Item{ID: r.ID, Text: short})
		} else {
			final = append(final, r)
		}
	}
	if len(again) == 0 {
		return vectors, final, nil
	}
	more, refused, err := t.Embed(ctx, again)
	return append(vectors, more...), append(final, refused...), err
}

// opening is at most so many characters of a text.
func opening(text string, chars int) string {
	n := 0
	for at := range text {
		if n == chars {
			return text[:at]
		}
		n++
	}
	return text
}

// Status is how far the vectors of what belongs together are.
type Status struct {
	Pending int     `json:"pending"` // texts that wait for theirs, and are found by their words
	Refused int     `json:"refused"` // texts that the endpoint refused, which are found by their words alone
	Error   *string `json:"error"`   // why they wait, or why some were refused
}

// Waiting is the error of those who wait for an endpoint that fails so.
func Waiting(err error) string { return fmt.Sprintf("waiting for the embeddings endpoint: %v", err) }

// notePatience bounds the noting of what became of a job.
const notePatience = 10 * time.Second

// Noting is a context for noting what became of a job, which goes on when the job's own time is over.
func Noting(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), notePatience)
}
