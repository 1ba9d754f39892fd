package endpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/queue"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/lexicon"
	"github.com/loci-memory/loci/embed/provider"
)

// Settle is the time between the call that finds rows without vectors and the start of their job. Rows written during
// that time belong to the same job.
const Settle = 2 * time.Second

// firstTurn is the time at which the first job to start is scheduled, each further one a millisecond later.
var firstTurn = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

const (
	maxNewJobs = 1000             // that one call of Call queues
	maxOrgJobs = 100              // of an organization in a queue
	jobWorkers = 4                // of a queue on one server
	maxWork    = 10 * time.Second // for which a job starts new batches
)

// Kind is the type of an owner's job; Kind returns the name of its queue and of its jobs.
type Kind interface{ Kind() string }

// OwnerJob is the job that makes the vectors that the rows of one owner lack.
type OwnerJob[K Kind] struct {
	queue.Start
	Org   db.Org `json:"org" db:"org" river:"unique"`
	Owner int64  `json:"owner" db:"owner" river:"unique"`
}

// Kind names the job in the queue.
func (OwnerJob[K]) Kind() string { return (*new(K)).Kind() }

// InsertOpts queue the job of an owner once.
func (j OwnerJob[K]) InsertOpts() river.InsertOpts { return queue.Once(j.Kind()) }

// Queue is a memory's queue of rows that wait for their vectors. Its rows belong to owners, and an owner's rows have
// their vectors in the space that the owner's column embedded_space names, or wait for them. The statements' arguments
// are @space, the active space, and those named; Waiting alone reads every organization.
type Queue[K Kind] struct {
	Worker[OwnerJob[K]]
	Settle time.Duration

	// Waiting selects the columns org, owner and newest of the owners, each once, whose rows wait for a vector. Of the
	// owners of an organization, the one with the greatest newest comes first.
	Waiting string
	// Owners is the table of the rows with the columns embedded_space and deleted_at, of which one statement takes over
	// TakeOverRows.
	Owners       string
	TakeOverRows int
	// TakeOver lets the rows of the Owners @keys of @org wait for the vectors that they lack. These owners are locked
	// FOR Lock.
	TakeOver []string
	Lock     string
}

// Queues returns the queue's configuration on a server that has an embedding model.
func (q *Queue[K]) Queues() map[string]river.QueueConfig {
	return map[string]river.QueueConfig{OwnerJob[K]{}.Kind(): {MaxWorkers: jobWorkers}}
}

// Work registers the worker of the queue's jobs.
func (q *Queue[K]) Work(workers *river.Workers) {
	q.place = q.placeOf
	q.Register(workers)
}

// Call queues jobs for owners of every organization whose rows wait for a vector and that have no job, and returns the
// number of jobs. An organization has at most maxOrgJobs in the queue. Call also orders the jobs: first those of the
// organization with the fewest at work, and of one organization the owner with the newest rows first.
func (q *Queue[K]) Call(ctx context.Context, jobs *river.Client[pgx.Tx]) (int, error) {
	space, ok := q.Endpoint.Space()
	if !ok {
		return 0, nil
	}
	owners, err := db.All[OwnerJob[K]](ctx, q.DB, `
		WITH queued AS (
			SELECT id, state, scheduled_at, (args ->> 'org')::integer AS org, (args ->> 'owner')::bigint AS owner
			FROM river_job
			WHERE queue = @queue AND state IN ('available', 'pending', 'running', 'retryable', 'scheduled')
		), waiting AS MATERIALIZED (
			`+q.Waiting+`
		), placed AS (
			SELECT q.id, @first::timestamptz + interval '1 millisecond' * (
				(SELECT count(*) FROM queued r WHERE r.org = q.org AND r.state = 'running')
				+ row_number() OVER (PARTITION BY q.org ORDER BY w.newest DESC NULLS LAST, q.owner)) AS place
			FROM queued q LEFT JOIN waiting w ON w.org = q.org AND w.owner = q.owner
			WHERE q.state = 'available' AND q.scheduled_at <= now()
		), free AS (
			SELECT j.id, p.place FROM river_job j JOIN placed p ON p.id = j.id
			WHERE j.state = 'available' AND j.scheduled_at <> p.place
			FOR UPDATE OF j SKIP LOCKED
		), ordered AS (
			UPDATE river_job j SET scheduled_at = f.place FROM free f WHERE j.id = f.id
		), numbered AS (
			SELECT w.org, w.owner, row_number() OVER (PARTITION BY w.org ORDER BY w.newest DESC NULLS LAST, w.owner) AS number
			FROM waiting w
			WHERE NOT EXISTS (SELECT FROM queued WHERE queued.owner = w.owner)
		)
		SELECT n.org, n.owner
		FROM numbered n LEFT JOIN (SELECT org, count(*) AS jobs FROM queued GROUP BY org) has ON has.org = n.org
		WHERE n.number + coalesce(has.jobs, 0) <= @each
		ORDER BY n.number, n.owner
		LIMIT @most`,
		pgx.StrictNamedArgs{"space": space.ID, "queue": OwnerJob[K]{}.Kind(), "most": maxNewJobs, "each": maxOrgJobs,
			"first": firstTurn})
	if err != nil || len(owners) == 0 {
		return 0, err
	}
	params := make([]river.InsertManyParams, len(owners))
	for i, job := range owners {
		job.Start = queue.In(q.Settle)
		params[i] = river.InsertManyParams{Args: job}
	}
	if _, err := jobs.InsertManyFast(ctx, params); err != nil {
		return 0, fmt.Errorf("queue texts to be embedded: %w", err)
	}
	return len(owners), nil
}

// placeOf returns where a job's work stands among that of others.
func (q *Queue[K]) placeOf(ctx context.Context, j OwnerJob[K]) (place, error) {
	return db.One[place](ctx, q.DB, `
		WITH queued AS (
			SELECT state, scheduled_at, (args ->> 'org')::integer AS org FROM river_job
			WHERE queue = @queue AND state IN ('available', 'pending', 'running', 'retryable', 'scheduled')
		), of AS (
			SELECT org, count(*) AS jobs, count(*) FILTER (WHERE state = 'running') AS working,
			       count(*) FILTER (WHERE state = 'available' AND scheduled_at <= now()) AS available
			FROM queued GROUP BY org
		)
		SELECT coalesce(bool_or(other.available > 0 AND (other.working = 0 OR other.working + 1 < mine.working)), false)
		         AS behind,
		       mine.jobs >= @each AS crowded
		FROM of mine LEFT JOIN of other ON other.org <> mine.org
		WHERE mine.org = @org
		GROUP BY mine.jobs`,
		pgx.StrictNamedArgs{"queue": j.Kind(), "org": j.Org, "each": maxOrgJobs})
}

// Backfill takes over the owners whose vectors are in no space, or in one other than the active that no server has used
// for idle: what they lack of the active space waits for it. It returns their number.
func (q *Queue[K]) Backfill(ctx context.Context, idle time.Duration) (owners int, err error) {
	space, ok := q.Endpoint.Space()
	if !ok {
		return 0, nil
	}
	orgs, err := db.Orgs(ctx, q.DB)
	for _, org := range orgs {
		for more := true; more && err == nil; {
			var n int
			n, err = q.takeOver(ctx, org, space, idle)
			owners, more = owners+n, n > 0
		}
	}
	return owners, err
}

// takeOver takes over the next owners of an organization, and returns their number.
func (q *Queue[K]) takeOver(ctx context.Context, org db.Org, space Space, idle time.Duration) (owners int, err error) {
	err = db.Tx(ctx, q.DB, func(tx pgx.Tx) error {
		keys, err := db.All[int64](ctx, tx, `
			SELECT key FROM `+q.Owners+` o
			WHERE org = $1 AND coalesce(embedded_space, 0) <> $2 AND deleted_at IS NULL AND NOT EXISTS (
				SELECT FROM embedding_spaces s WHERE s.id = o.embedded_space AND s.used_at > now() - $3::interval)
			ORDER BY key
			LIMIT $4
			FOR `+q.Lock, org, space.ID, idle, q.TakeOverRows)
		if owners = len(keys); err != nil || owners == 0 {
			return err
		}
		var statements pgx.Batch
		for _, sql := range q.TakeOver {
			statements.Queue(sql, pgx.NamedArgs{"org": org, "keys": keys, "space": space.ID})
		}
		return tx.SendBatch(ctx, &statements).Close()
	})
	return owners, err
}

// ClearSpaces deletes the vectors of spaces that no server has used for a week, with their indexes, and returns the
// number of vectors.
func (q *Queue[K]) ClearSpaces(ctx context.Context, pool *pgxpool.Pool) (rows int, err error) {
	return q.ClearUnused(ctx, pool, func(context.Context, []int16) error {
		_, err := q.Backfill(ctx, IdleSpace) // the owners of deleted vectors would count as embedded
		return err
	})
}

// Rows are some rows that lack their vectors, as they were read.
type Rows interface {
	// Items are the texts of the rows, by their keys.
	Items() []embed.Item
	// Lock locks the rows that did not change since they were read and still lack vectors, and returns the values of
	// Vectors.Columns by the rows' keys; db.ErrNotFound if the batch is not to be stored. Of two batches with a row in
	// common, Lock returns it to one.
	Lock(ctx context.Context, tx pgx.Tx) (map[int64][]any, error)
	// Finish ends the wait of the locked rows, after their vectors are stored; the endpoint refused some.
	Finish(ctx context.Context, tx pgx.Tx, refused []*RefusedError) error
}

// Batch is some rows that wait for their vectors.
type Batch interface {
	Rows
	// Note stores why the rows wait.
	Note(ctx context.Context, reason string) error
}

// Worker makes the vectors of a job's rows batch by batch, and lets other jobs go first after 10 seconds.
type Worker[J river.JobArgs] struct {
	Vectors
	DB       db.DB
	Openings bool // embed at most the first 8,000 characters of a text
	OneBatch bool // a job has one batch
	Bulk     bool // see WithBulk

	// Next reads the job's next batch; nil if none of its rows waits.
	Next func(ctx context.Context, job J, space Space) (Batch, error)

	place   func(ctx context.Context, job J) (place, error) // nil if the jobs need not give way to each other
	working atomic.Int32                                    // jobs of this server
}

// place is where a job's work stands among that of others.
type place struct {
	Behind  bool `db:"behind"`  // it is the turn of another organization
	Crowded bool `db:"crowded"` // the organization has as many jobs in the queue as it may, and other owners may wait
}

// Register registers the worker.
func (w *Worker[J]) Register(workers *river.Workers) {
	river.AddWorker(workers, &queue.Worker[J]{Do: w.work, Pause: w.Endpoint.Pause})
}

// work embeds batches of a job.
func (w *Worker[J]) work(ctx context.Context, job *river.Job[J]) error {
	w.working.Add(1)
	defer w.working.Add(-1)
	for until := time.Now().Add(maxWork); ; {
		space, ok := w.Endpoint.Space()
		if !ok {
			return river.JobCancel(errors.New("no embedding model is in use; the work is queued again when one is"))
		}
		more, err := w.Once(ctx, job.Args, space)
		if err != nil || !more || w.OneBatch {
			return err
		}
		if end, err := w.givesWay(ctx, job.Args, time.Now().After(until)); end || err != nil {
			return err
		}
	}
}

// givesWay reports whether a job ends after a batch, because it has worked for long or because it is the turn of
// another organization and no worker is free. The job goes back to the queue with the error, or is made again by Call
// if other owners of its organization have no place there.
func (w *Worker[J]) givesWay(ctx context.Context, job J, long bool) (end bool, err error) {
	if w.place == nil || !long && w.working.Load() < jobWorkers {
		if long {
			return true, river.JobSnooze(0)
		}
		return false, nil
	}
	place, err := w.place(ctx, job)
	switch {
	case err != nil:
		return true, err
	case long && place.Crowded:
		return true, nil
	case long || place.Behind:
		return true, river.JobSnooze(0)
	}
	return false, nil
}

// Once embeds one batch when the endpoint permits; more reports whether there was one. The endpoint is called with no
// transaction open. A row that it refuses gets no vector and is found by its words.
func (w *Worker[J]) Once(ctx context.Context, job J, space Space) (more bool, err error) {
	if w.Bulk {
		ctx = embed.WithBulk(ctx)
	}
	permit, away := w.Endpoint.Await(ctx)
	if away > 0 {
		return false, river.JobSnooze(away)
	}
	defer permit.End()
	if permit.source.space != space {
		return false, river.JobSnooze(0) // another space is in use since
	}
	batch, err := w.Next(ctx, job, space)
	if err != nil || batch == nil {
		return false, err
	}
	vectors, refused, err := permit.texts(ctx, batch.Items(), w.Openings)
	if err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return false, err
		}
		noting, cancel := Noting(ctx)
		defer cancel()
		return false, errors.Join(err, batch.Note(noting, "waiting for "+permit.source.of.name()+": "+provider.Public(err)))
	}
	err = db.Tx(ctx, w.DB, func(tx pgx.Tx) error {
		_, err := w.store(ctx, tx, space, batch, answer{vectors, refused})
		return err
	})
	if errors.Is(err, db.ErrNotFound) { // the batch is another worker's, or its owner is gone
		return false, nil
	}
	return true, err
}

// texts makes the vectors of texts, or of their openings.
func (p *Permit) texts(ctx context.Context, items []embed.Item, openings bool) ([]embed.Vector, []*RefusedError,
	error) {
	if openings {
		return p.openings(ctx, items)
	}
	return p.Embed(ctx, items)
}

// Noting returns a context in which a job whose own context has ended can store why it failed.
func Noting(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
}

// openingChars is the most characters of a text that openings embeds: what most models take.
const openingChars = 8000

// openings makes the vectors of the beginnings of texts, as Embed does, and asks once more with a quarter of those that
// the endpoint refuses.
func (p *Permit) openings(ctx context.Context, items []embed.Item) ([]embed.Vector, []*RefusedError, error) {
	texts, opened := make(map[int64]string, len(items)), make([]embed.Item, len(items))
	for i, item := range items {
		texts[item.ID], opened[i] = item.Text, embed.Item{ID: item.ID, Text: lexicon.Opening(item.Text, openingChars)}
	}
	vectors, refused, err := p.Embed(ctx, opened)
	var again []embed.Item
	refused = slices.DeleteFunc(refused, func(r *RefusedError) bool {
		short := lexicon.Opening(texts[r.ID], openingChars/4)
		if short == texts[r.ID] {
			return false
		}
		again = append(again, embed.Item{ID: r.ID, Text: short})
		return true
	})
	if err != nil || len(again) == 0 {
		return vectors, refused, err
	}
	more, final, err := p.Embed(ctx, again)
	return append(vectors, more...), append(refused, final...), err
}

// Status is the progress of the vectors of rows that belong together.
type Status struct {
	Pending int     `json:"pending"` // texts that wait for a vector, and are found by their words
	Refused int     `json:"refused"` // texts that get no vector, which are found by their words alone
	Error   *string `json:"error"`   // why they wait, or why some were refused
}
