package recall

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
)

// QueueEmbed is the queue of the jobs that make vectors of messages, which are bound by the endpoint.
const QueueEmbed = "embed_messages"

// Queues are the queues with as many workers as a server that has an embeddings endpoint gives each.
func Queues() map[string]river.QueueConfig {
	return map[string]river.QueueConfig{QueueEmbed: {MaxWorkers: 4}}
}

// EmbedArgs is the job that makes the vectors that an agent's messages lack.
type EmbedArgs struct {
	Org      db.Org `json:"org" db:"org" river:"unique"`
	AgentKey int64  `json:"agent_key" db:"agent_key" river:"unique"`

	begins time.Time
}

// Kind names the job in the queue.
func (EmbedArgs) Kind() string { return "embed_messages" }

// maxAttempts is for as long as the endpoint or the database may be away.
const maxAttempts = 1000

// InsertOpts make an agent's job once.
func (EmbedArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: QueueEmbed, MaxAttempts: maxAttempts, UniqueOpts: river.UniqueOpts{ByArgs: true,
		ByState: []rivertype.JobState{rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning,
			rivertype.JobStateRetryable, rivertype.JobStateScheduled}}}
}

// Hooks implements river.JobArgsWithHooks.
func (EmbedArgs) Hooks() []rivertype.Hook { return []rivertype.Hook{&delay{}} }

// delay lets a job begin a little later. A job that is made with a time to come would wait for the scheduler too, which looks around seldom.
type delay struct{ river.HookDefaults }

// InsertBegin implements rivertype.HookInsertBegin.
func (*delay) InsertBegin(_ context.Context, params *rivertype.JobInsertParams) error {
	if job, ok := params.Args.(EmbedArgs); ok {
		params.ScheduledAt = &job.begins
	}
	return nil
}

// settle is how long after messages were seen that lack their vectors their job begins: all that is appended meanwhile is its work too.
const settle = 2 * time.Second

// callAtOnce is how many jobs one call makes at most.
const callAtOnce = 1000

// Call makes a job for each agent, of every organization, whose messages lack vectors of the active space and that has none, and says how
// many.
func (s *Store) Call(ctx context.Context, jobs *river.Client[pgx.Tx]) (int, error) {
	space, ok := s.o.Dense.Space()
	if !ok {
		return 0, nil
	}
	list, err := db.All[EmbedArgs](ctx, s.db, `
		SELECT DISTINCT org, agent_key FROM conversations
		WHERE unembedded AND deleted_at IS NULL AND coalesce(embedded_space, $1) = $1
		  AND agent_key NOT IN (
			SELECT (args ->> 'agent_key')::bigint FROM river_job
			WHERE queue = $2 AND state IN ('available', 'pending', 'running', 'retryable', 'scheduled'))
		ORDER BY agent_key
		LIMIT $3`, space.ID, QueueEmbed, callAtOnce)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	params := make([]river.InsertManyParams, len(list))
	for i, job := range list {
		job.begins = time.Now().Add(s.settle)
		params[i] = river.InsertManyParams{Args: job}
	}
	if _, err := jobs.InsertManyFast(ctx, params); err != nil {
		return 0, fmt.Errorf("queue messages to be embedded: %w", err)
	}
	return len(list), nil
}

// IdleSpace is how long no server must have used a space before a running one takes over what is embedded in it: longer than a server takes
// between two times of saying that it uses one.
const IdleSpace = 5 * time.Minute

// takeAtOnce is how many conversations one statement takes over.
const takeAtOnce = 500

// Backfill takes over the conversations whose vectors are of no space, or of another than the active one that no server used for so long:
// they are embedded from their beginning. Vectors that they have of the active space are not made again. It says how many there were.
func (s *Store) Backfill(ctx context.Context, idle time.Duration) (conversations int, err error) {
	space, ok := s.o.Dense.Space()
	for ok && err == nil {
		var n int64
		err = db.Tx(ctx, s.db, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, `
				UPDATE conversations c
				SET embedded = 0, embedded_space = $1, unembedded = true, embed_error = NULL, embed_refused = 0
				FROM (
					SELECT key FROM conversations o
					WHERE coalesce(embedded_space, 0) <> $1 AND deleted_at IS NULL AND NOT EXISTS (
						SELECT FROM embedding_spaces s WHERE s.id = o.embedded_space AND s.used_at > now() - $2::interval)
					ORDER BY key
					LIMIT $3
					FOR NO KEY UPDATE
				) other
				WHERE c.key = other.key`, space.ID, idle, takeAtOnce)
			n = tag.RowsAffected()
			return err
		})
		conversations += int(n)
		ok = n > 0
	}
	return conversations, err
}

// Work registers what works on the jobs of messages.
func (s *Store) Work(workers *river.Workers) {
	river.AddWorker(workers, &embedWorker{store: s})
}

// embedWorker makes the vectors of an agent's messages, and after a while lets other agents' jobs go first.
type embedWorker struct {
	river.WorkerDefaults[EmbedArgs]
	store *Store
}

// workFor is how long a job begins new batches.
const workFor = 10 * time.Second

// NextRetry implements river.Worker.
func (w *embedWorker) NextRetry(job *river.Job[EmbedArgs]) time.Time {
	return time.Now().Add(w.store.o.Dense.Pause(len(job.Errors) + 1))
}

// Work implements river.Worker.
func (w *embedWorker) Work(ctx context.Context, job *river.Job[EmbedArgs]) error {
	for until := time.Now().Add(workFor); ; {
		space, ok := w.store.o.Dense.Space()
		if !ok {
			return river.JobCancel(errors.New("no embeddings endpoint is in use; the work is queued again when one is"))
		}
		more, err := w.batch(ctx, job.Args, space)
		if err != nil || !more {
			return err
		}
		if time.Now().After(until) {
			return river.JobSnooze(0)
		}
	}
}

// batch embeds one batch at the job's turn; more says that there was one.
func (w *embedWorker) batch(ctx context.Context, job EmbedArgs, space embed.Space) (more bool, err error) {
	turn, away := w.store.o.Dense.Await(ctx)
	if away > 0 {
		return false, river.JobSnooze(away)
	}
	defer turn.End()
	return w.store.embed(ctx, turn, job, space)
}
