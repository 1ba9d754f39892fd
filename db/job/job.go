// Package job lists what servers do in the background: the jobs of the queues, and work that is too long for one job.
// It reads what other packages store, and changes nothing.
package job

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// The states of a Job.
const (
	Waiting   = "waiting" // waits for a worker, or until it is due
	Running   = "running"
	Retrying  = "retrying" // it failed, and will be tried again
	Completed = "completed"
	Failed    = "failed" // it will not be tried again
	Cancelled = "cancelled"
)

// States lists all states of jobs.
var States = []string{Waiting, Running, Retrying, Completed, Failed, Cancelled}

// Job is a piece of background work.
type Job struct {
	ID string `db:"id" json:"id" doc:"Of a queue's job job- and what tells it from others; else the id of what is worked on."` //nolint:lll // a tag is one line
	// Number is the number of a queue's job; 0 for other work.
	Number      int64      `db:"number" json:"-"`
	Kind        string     `db:"kind" json:"kind" doc:"What is done."`
	State       string     `db:"state" json:"state" enum:"waiting,running,retrying,completed,failed,cancelled"`
	OrgID       *string    `db:"org_id" json:"org_id" doc:"Whose work it is; null for that of the server."`
	OrgName     *string    `db:"org_name" json:"org_name" doc:"The organization's name."`
	Attempt     int        `db:"attempt" json:"attempt" doc:"How often it was begun; 0 for work that goes in slices."`
	MaxAttempts int        `db:"max_attempts" json:"max_attempts" doc:"How often it may be begun."`
	Done        *int64     `db:"done" json:"done" doc:"Of work that goes in slices, what is done."`
	Total       *int64     `db:"total" json:"total" doc:"What is to be done; null if that is not known."`
	Error       *string    `db:"error" json:"error" doc:"Why it failed last, or waits."`
	CreatedAt   time.Time  `db:"created_at" json:"created_at" doc:"When it was asked for."`
	DueAt       time.Time  `db:"due_at" json:"due_at" doc:"When it may begin, or begin again."`
	StartedAt   *time.Time `db:"started_at" json:"started_at" doc:"When it was begun last."`
	EndedAt     *time.Time `db:"ended_at" json:"ended_at" doc:"When it ended; jobs of queues are kept for an hour then."`
}

// Query selects jobs. An empty field does not narrow the selection.
type Query struct {
	Org         db.Org // 0: all organizations, and the server's own work
	State, Kind string
}

// byAge is the order of the list. Jobs of the same time are ordered by number.
const byAge = "created_at, number, id"

// List returns a page of the jobs. Before and After may name a job that the query does not select, for example because
// its state has changed since it was listed. ErrNotFound if one of them is gone.
func List(ctx context.Context, d db.DB, q Query, p db.Page) ([]Job, error) {
	args, err := q.args(ctx, d)
	if err != nil {
		return nil, err
	}
	args["state"], args["kind"] = q.State, q.Kind
	c := p.Clauses(byAge, "SELECT "+byAge+" FROM jobs WHERE id = @place", args)
	list, err := db.All[Job](ctx, d, jobs+`
		SELECT id, number, kind, state, org_id, org_name, attempt, max_attempts, done, total, error, created_at, due_at,
		       started_at, ended_at
		FROM jobs
		WHERE @state IN ('', state) AND @kind IN ('', kind) AND `+c.Where+c.Order, args)
	if c.Reversed {
		slices.Reverse(list)
	}
	for _, id := range []string{p.After, p.Before} {
		if err == nil && len(list) == 0 && id != "" {
			err = q.find(ctx, d, id)
		}
	}
	return list, err
}

// find returns ErrNotFound if there is no job with the id.
func (q Query) find(ctx context.Context, d db.DB, id string) error {
	args, err := q.args(ctx, d)
	if err != nil {
		return err
	}
	args["id"] = id
	_, err = db.One[string](ctx, d, jobs+` SELECT id FROM jobs WHERE id = @id LIMIT 1`, args)
	return db.OrNotFound(err, "Job with ID %s not found: jobs of queues are removed an hour after they end. Begin again "+
		"without after and before", db.Short(id))
}

// apart selects the jobs that are rows of organizations, as JSON. In a cluster they lie on other nodes than the queue,
// so jobs gets them as @apart.
const apart = `
	SELECT coalesce(jsonb_agg(j), '[]') FROM (
		SELECT id, 'replay' AS kind, CASE status WHEN 'done' THEN 'completed' ELSE status END AS state, org,
		       steps_done::bigint AS done, steps::bigint AS total, why AS error, created_at, created_at AS started_at,
		       ended_at
		FROM replays WHERE %[1]s
		UNION ALL
		SELECT id, 'erasure', CASE status WHEN 'running' THEN 'running' WHEN 'completed' THEN 'completed' ELSE 'failed' END,
		       org, NULL, NULL, NULL, created_at, claimed_at, ended_at
		FROM erasures WHERE %[1]s AND status IN ('running', 'completed', 'incomplete')
	) j`

// args are the arguments of jobs. If a node of a cluster is away, the operator's list lacks the jobs on it.
func (q Query) args(ctx context.Context, d db.DB) (pgx.StrictNamedArgs, error) {
	var list json.RawMessage
	var err error
	if q.Org != 0 {
		list, err = db.One[json.RawMessage](ctx, d, fmt.Sprintf(apart, `org = $1`), q.Org)
	} else if list, err = db.One[json.RawMessage](ctx, d, fmt.Sprintf(apart, `true`)); db.Unavailable(err) {
		list, err = json.RawMessage(`[]`), nil
	}
	return pgx.StrictNamedArgs{"all": q.Org == 0, "org": q.Org, "apart": list}, err
}

// jobs begins a query on the jobs of organization @org, or on all jobs if @all. The id of an organization's job does
// not show the job's number, because numbers count the jobs of all organizations.
const jobs = `
	WITH jobs AS NOT MATERIALIZED (
		SELECT CASE WHEN j.number > 0 AND o.org IS NOT NULL THEN 'job-' || md5(o.job_salt::text || j.number)::uuid
		            ELSE j.id END AS id, j.number, j.kind, j.state, o.id AS org_id, o.name AS org_name,
		       j.attempt, j.max_attempts, j.done, j.total, j.error, j.created_at, j.due_at, j.started_at, j.ended_at
		FROM (
			SELECT 'job-' || j.id AS id, j.id AS number, j.kind, CASE j.state
			       WHEN 'running' THEN 'running' WHEN 'retryable' THEN 'retrying' WHEN 'completed' THEN 'completed'
			       WHEN 'discarded' THEN 'failed' WHEN 'cancelled' THEN 'cancelled' ELSE 'waiting' END AS state,
			       (j.args ->> 'org')::integer AS org, j.attempt::integer, j.max_attempts::integer, NULL::bigint AS done,
			       NULL::bigint AS total, j.errors[cardinality(j.errors)] ->> 'error' AS error, j.created_at,
			       j.scheduled_at AS due_at, j.attempted_at AS started_at, j.finalized_at AS ended_at
			FROM river_job j
			WHERE @all OR j.args @> jsonb_build_object('org', @org::integer)
			UNION ALL
			SELECT s.id, 0, s.kind, s.state, s.org, 0, 0, s.done, s.total, s.error, s.created_at, s.created_at, s.started_at,
			       s.ended_at
			FROM jsonb_to_recordset(@apart) AS s (id text, kind text, state text, org integer, done bigint, total bigint,
				error text, created_at timestamptz, started_at timestamptz, ended_at timestamptz)
			UNION ALL
			SELECT 'reembedding', 0, 'reembedding', CASE r.state WHEN 'switched' THEN 'completed' ELSE r.state END, NULL, 0, 0,
			       r.done, r.total, r.error, r.started_at, r.started_at, r.started_at, r.finished_at
			FROM reembedding r WHERE @all
			UNION ALL
			SELECT o.id, 0, 'organization_deletion', 'running', o.org, 0, 0, NULL, NULL, NULL, o.deleted_at, o.deleted_at,
			       o.deleted_at, NULL
			FROM organizations o WHERE @all AND o.deleted_at IS NOT NULL
		) j LEFT JOIN organizations o ON o.org = j.org
	)`
