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

// firstTurn is when the first job is scheduled to start; each further job is scheduled a millisecond later.
var firstTurn = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

const (
	maxNewJobs = 1000             // that one Call queues
	maxOrgJobs = 100              // of an organization in a queue
	jobWorkers = 4                // of a queue on one server
	maxWork    = 10 * time.Second // how long a job starts new batches
)

// Kind is the type of an owner's job. Its method Kind returns the name of the queue and of the jobs.
type Kind interface{ Kind() string }

// OwnerJob is the job that makes the missing vectors of one owner's rows.
type OwnerJob[K Kind] struct {
	queue.Start
	Org   db.Org `json:"org" db:"org" river:"unique"`
	Owner int64  `json:"owner" db:"owner" river:"unique"`
}

// Kind returns the job's name in the queue.
func (OwnerJob[K]) Kind() string { return (*new(K)).Kind() }

// InsertOpts makes an owner have at most one job in the queue.
func (j OwnerJob[K]) InsertOpts() river.InsertOpts { return queue.Once(j.Kind()) }

// Queue is a memory's queue of rows that wait for vectors. Each row belongs to an owner. The owner's column
// embedded_space names a space: all its rows have a vector in that space or wait for one. The arguments of the
// statements are @space (the active space) and those that the fields name. Waiting alone reads all organizations.
type Queue[K Kind] struct {
	Worker[OwnerJob[K]]
	Settle time.Duration

	// Waiting selects the columns org, owner and newest of the owners with waiting rows, each owner once. In an
	// organization, the owner with the greatest newest comes first.
	Waiting string
	// Owners is the table of the owners, with the columns embedded_space and deleted_at. One statement takes over
	// TakeOverRows of its rows.
	Owners       string
	TakeOverRows int
	// TakeOver are statements that let the rows of the Owners @keys of @org wait for their missing vectors. The owners are
	// locked FOR Lock.
	TakeOver []string
	Lock     string
}

// Queues returns the queue's configuration on a server with an embedding model.
func (q *Queue[K]) Queues() map[string]river.QueueConfig {
	return map[string]river.QueueConfig{OwnerJob[K]{}.Kind(): {MaxWorkers: jobWorkers}}
}

// Work registers the worker of the queue's jobs.
func (q *Queue[K]) Work(workers *river.Workers) {
	q.place = q.placeOf
	q.Register(workers)
}

// Call queues jobs for the owners that have waiting rows and no job, in every organization. It returns the number of
// jobs. An organization has at most maxOrgJobs in the queue. Call also orders the jobs: the organization with the
// fewest running jobs comes first, and within an organization the owner with the newest rows.
func (q *Queue[K]) Call(ctx context.Context, jobs *river.Client[pgx.Tx]) (int, error) {
	space, ok := q.Endpoint.Space()
	if !ok {
		return 0, nil
	}
	waiting, err := q.waiting(ctx, space)
	if err != nil {
		return 0, err
	}
	args := pgx.StrictNamedArgs{"queue": OwnerJob[K]{}.Kind(), "most": maxNewJobs, "each": maxOrgJobs,
		"first": firstTurn, "orgs": make([]db.Org, len(waiting)), "owners": make([]int64, len(waiting)),
		"ranks": make([]int64, len(waiting))}
	for i, w := range waiting {
		args["orgs"].([]db.Org)[i], args["owners"].([]int64)[i], args["ranks"].([]int64)[i] = w.Org, w.Owner, w.Rank
	}
	owners, err := db.All[OwnerJob[K]](ctx, q.DB, `
		WITH queued AS (
			SELECT id, state, scheduled_at, (args ->> 'org')::integer AS org, (args ->> 'owner')::bigint AS owner
			FROM river_job
			WHERE queue = @queue AND state IN ('available', 'pending', 'running', 'retryable', 'scheduled')
		), waiting AS MATERIALIZED (
			SELECT * FROM unnest(@orgs::integer[], @owners::bigint[], @ranks::bigint[]) AS w (org, owner, rank)
		), placed AS (
			SELECT q.id, @first::timestamptz + interval '1 millisecond' * (
				(SELECT count(*) FROM queued r WHERE r.org = q.org AND r.state = 'running')
				+ row_number() OVER (PARTITION BY q.org ORDER BY w.rank, q.owner)) AS place
			FROM queued q LEFT JOIN waiting w ON w.org = q.org AND w.owner = q.owner
			WHERE q.state = 'available' AND q.scheduled_at <= now()
		), free AS (
			SELECT j.id, p.place FROM river_job j JOIN placed p ON p.id = j.id
			WHERE j.state = 'available' AND j.scheduled_at <> p.place
			FOR UPDATE OF j SKIP LOCKED
		), ordered AS (
			UPDATE river_job j SET scheduled_at = f.place FROM free f WHERE j.id = f.id
		), numbered AS (
			SELECT w.org, w.owner, row_number() OVER (PARTITION BY w.org ORDER BY w.rank) AS number
			FROM waiting w
			WHERE NOT EXISTS (SELECT FROM queued WHERE queued.owner = w.owner)
		)
		SELECT n.org, n.owner
		FROM numbered n LEFT JOIN (SELECT org, count(*) AS jobs FROM queued GROUP BY org) has ON has.org = n.org
		WHERE n.number + coalesce(has.jobs, 0) <= @each
		ORDER BY n.number, n.owner
		LIMIT @most`, args)
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

// waitingOwner is an owner with waiting rows, and its rank in its organization, from 1 on.
type waitingOwner struct {
	Org   db.Org `db:"org"`
	Owner int64  `db:"owner"`
	Rank  int64  `db:"rank"`
}

// waiting returns the first owners with waiting rows of each organization. If a node of a cluster is away, it returns
// those of the organizations on other nodes.
func (q *Queue[K]) waiting(ctx context.Context, space Space) (list []waitingOwner, err error) {
	const limited = `
		SELECT org, owner, rank FROM (
			SELECT org, owner, row_number() OVER (PARTITION BY org ORDER BY newest DESC NULLS LAST, owner) AS rank
			FROM (%s) w %s
		) w
		WHERE rank <= @most`
	args := pgx.StrictNamedArgs{"space": space.ID, "most": 2 * maxOrgJobs}
	list, err = db.All[waitingOwner](ctx, q.DB, fmt.Sprintf(limited, q.Waiting, ""), args)
	if !db.Unavailable(err) {
		return list, err
	}
	orgs, failed := db.Orgs(ctx, q.DB)
	if failed != nil {
		return nil, err
	}
	for _, org := range orgs {
		args["org"] = org
		some, failed := db.All[waitingOwner](ctx, q.DB, fmt.Sprintf(limited, q.Waiting, "WHERE org = @org"), args)
		if failed != nil && !db.Unavailable(failed) {
			return list, failed
		}
		list = append(list, some...)
	}
	return list, nil
}

// placeOf returns how a job's work ranks against other work.
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

// Backfill takes over the owners without a space, and those with a space that is not active and that no server has used
// for idle: their rows wait for their missing vectors in the active space. It returns the number of owners.
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
		_, err := q.Backfill(ctx, IdleSpace) // otherwise the owners of deleted vectors would count as embedded
		return err
	})
}

// Rows are some rows without vectors, as they were read.
type Rows interface {
	// Items returns the rows' texts, with the rows' keys as IDs.
	Items() []embed.Item
	// Lock locks the rows that have not changed since they were read and still lack vectors. It returns key → values of
	// Vectors.Columns, or db.ErrNotFound if the batch must not be stored. If two batches have a row in common, Lock
	// returns it only to one.
	Lock(ctx context.Context, tx pgx.Tx) (map[int64][]any, error)
	// Finish ends the wait of the locked rows. It is called after their vectors are stored; refused are the texts that the
	// endpoint refused.
	Finish(ctx context.Context, tx pgx.Tx, refused []*RefusedError) error
}

// Batch is some rows that wait for vectors.
type Batch interface {
	Rows
	// Note stores why the rows wait.
	Note(ctx context.Context, reason string) error
}

// Worker makes the vectors of a job's rows batch by batch, and lets other jobs go first after 10 seconds.
type Worker[J river.JobArgs] struct {
	Vectors
	DB       db.DB
	Openings bool // embed only the first 8,000 characters of a text
	OneBatch bool // a job has one batch
	Bulk     bool // see WithBulk

	// Next reads the job's next batch; nil if no row waits.
	Next func(ctx context.Context, job J, space Space) (Batch, error)

	place   func(ctx context.Context, job J) (place, error) // nil: jobs need not let others go first
	working atomic.Int32                                    // running jobs on this server
}

// place says how a job's work ranks against other work.
type place struct {
	Behind bool `db:"behind"` // it is another organization's turn
	// The organization has the most jobs that it may have in the queue, and other owners may wait.
	Crowded bool `db:"crowded"`
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

// givesWay reports whether a job ends after a batch: because it has run for long, or because no worker is free and it
// is another organization's turn. An error sends the job back to the queue. Without an error the job is done, and Call
// makes it again later: other owners of its organization wait for a place in the queue.
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

// Once embeds one batch when the endpoint permits it. more reports whether there was one. No transaction is open while
// the endpoint is asked. A row that the endpoint refuses gets no vector; words find it.
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
		return false, river.JobSnooze(0) // the active space has changed
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
	if errors.Is(err, db.ErrNotFound) { // another worker has the batch, or its owner is gone
		return false, nil
	}
	return true, err
}

// texts makes the vectors of whole texts, or of their openings.
func (p *Permit) texts(ctx context.Context, items []embed.Item, openings bool) ([]embed.Vector, []*RefusedError,
	error) {
	if openings {
		return p.openings(ctx, items)
	}
	return p.Embed(ctx, items)
}

// Noting returns a context in which a job can store why it failed, even if the job's own context has ended.
func Noting(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
}

// openingChars is how many characters of a text openings embeds: as many as most models take.
const openingChars = 8000

// openings embeds the beginnings of texts as Embed does. If the endpoint refuses some, it tries a quarter of each once
// more.
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
	Pending int     `json:"pending"` // texts that wait for a vector; words find them
	Refused int     `json:"refused"` // texts that get no vector; only words find them
	Error   *string `json:"error"`   // why texts wait, or why some were refused
}
