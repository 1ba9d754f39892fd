package recall

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/queue"
	"github.com/loci-memory/loci/embed"
)

// QueueEmbed is the queue of the jobs that make vectors of messages, which are bound by the endpoint.
const QueueEmbed = "embed_messages"

// Queues are the queues with as many workers as a server that has an embeddings endpoint gives each.
func Queues() map[string]river.QueueConfig {
	return map[string]river.QueueConfig{QueueEmbed: {MaxWorkers: embed.JobWorkers}}
}

// EmbedArgs is the job that makes the vectors that an agent's messages lack.
type EmbedArgs struct {
	queue.Start
	Org      db.Org `json:"org" db:"org" river:"unique"`
	AgentKey int64  `json:"agent_key" db:"agent_key" river:"unique"`
}

// Kind names the job in the queue.
func (EmbedArgs) Kind() string { return "embed_messages" }

// InsertOpts make an agent's job once.
func (EmbedArgs) InsertOpts() river.InsertOpts { return queue.Once(QueueEmbed) }

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
		LIMIT $3`, space.ID, QueueEmbed, embed.CallAtOnce)
	for i := range list {
		list[i].Start = queue.In(s.settle)
	}
	if err != nil {
		return 0, err
	}
	return embed.Enqueue(ctx, jobs, list)
}

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
	river.AddWorker(workers, s.worker())
}

func (s *Store) worker() *embed.Worker[EmbedArgs] {
	return &embed.Worker[EmbedArgs]{Dense: s.o.Dense, Batch: s.embed}
}
