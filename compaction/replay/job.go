package replay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/compaction/lab"
	"github.com/loci-memory/loci/compaction/lab/transcript"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/queue"
)

// queueReplay is the queue for slices of replays.
const queueReplay = "replay"

const (
	sliceTime     = 10 * time.Second
	modelPatience = 40 * time.Second // wait for a summary; a slice may have to wait for one that it has begun
	jobTimeout    = 100 * time.Second
)

// Queues returns the queue with the number of workers that a server gives it.
func Queues() map[string]river.QueueConfig {
	return map[string]river.QueueConfig{queueReplay: {MaxWorkers: 1}}
}

// args is the job of one slice of a replay.
type args struct {
	queue.Start
	Org   db.Org `json:"org"`
	ID    string `json:"id"`
	Slice int    `json:"slice"`
}

func (args) Kind() string { return "replay" }

func (args) InsertOpts() river.InsertOpts { return queue.Tried(queueReplay, 5) }

// Work registers the worker for the jobs.
func (s *Store) Work(workers *river.Workers) {
	river.AddWorker(workers, &queue.Worker[args]{Limit: jobTimeout, Do: s.slice, Fail: s.fail})
}

// fail ends a replay that cannot continue.
func (s *Store) fail(ctx context.Context, a args, why string) error {
	_, err := s.DB.Exec(ctx, `
		UPDATE replays SET status = 'failed', why = $3, ended_at = now()
		WHERE org = $1 AND id = $2 AND status = 'running'`, a.Org, a.ID, why)
	return db.Error(err)
}

// queue queues a slice in a transaction. Without Jobs it does nothing.
func (s *Store) queue(ctx context.Context, tx pgx.Tx, a args) error {
	if s.Jobs == nil || s.Jobs() == nil {
		return nil
	}
	_, err := s.Jobs().InsertTx(ctx, tx, a, nil)
	return err
}

// waiting is the part of a replay that comes next.
type waiting struct {
	Key        int64           `db:"key"`
	Slices     int             `db:"slices"`
	Prices     json.RawMessage `db:"prices"`
	Model      *string         `db:"model"`
	Number     int             `db:"number"`
	Settings   json.RawMessage `db:"settings"`
	Saved      json.RawMessage `db:"saved"`
	Transcript json.RawMessage `db:"transcript"`
}

// slice replays for a while, commits the state, and queues the next slice. If another server has committed the slice
// meanwhile, nothing changes.
func (s *Store) slice(ctx context.Context, job *river.Job[args]) error {
	a := job.Args
	next, err := db.One[waiting](ctx, s.DB, `
		SELECT r.key, r.slices, r.prices, r.model, p.number, p.settings, p.saved, n.transcript
		FROM replays r
		JOIN replay_parts p ON p.org = r.org AND p.replay_key = r.key AND p.result IS NULL
		JOIN replay_sessions n ON n.org = p.org AND n.replay_key = p.replay_key AND n.number = p.session
		WHERE r.org = $1 AND p.org = $1 AND n.org = $1 AND r.id = $2 AND r.status = 'running'
		ORDER BY p.number LIMIT 1`, a.Org, a.ID)
	if err != nil {
		return err
	}
	if next.Slices != a.Slice {
		return nil
	}
	r, err := s.replaying(ctx, next)
	if err != nil {
		return err
	}
	steps := 0
	for until := time.Now().Add(cmp.Or(s.Slice, sliceTime)); !r.Done(); steps++ {
		if err := r.Step(ctx); err != nil {
			return err
		}
		if time.Now().After(until) {
			steps++
			break
		}
	}
	return s.commit(ctx, a, next, r, steps)
}

// replaying returns the replay of a part at its stored state.
func (s *Store) replaying(ctx context.Context, next waiting) (*lab.Replaying, error) {
	var t transcript.Transcript
	var stored settings
	var prices policy.CachePrices
	if err := errors.Join(json.Unmarshal(next.Transcript, &t), json.Unmarshal(next.Settings, &stored),
		json.Unmarshal(next.Prices, &prices)); err != nil {
		return nil, err
	}
	session := lab.NewSession(t)
	under, err := stored.under(session, prices)
	if err != nil {
		return nil, err
	}
	if next.Model != nil && s.Models != nil {
		if under.Model = s.Models(ctx, *next.Model); under.Model != nil {
			under.Model.Patience = modelPatience
		}
	}
	if next.Saved == nil {
		return lab.Begin(session, under), nil
	}
	return lab.Resume(session, under, next.Saved)
}

// commit stores the state of a part after some more steps. Then it queues the next slice, or ends the replay.
func (s *Store) commit(ctx context.Context, a args, part waiting, r *lab.Replaying, steps int) error {
	saved, err := r.Save()
	if err != nil {
		return err
	}
	var result json.RawMessage
	if r.Done() {
		saved = nil
		if result, err = json.Marshal(r.Result()); err != nil {
			return err
		}
	}
	return db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			UPDATE replays SET slices = slices + 1, steps_done = steps_done + $4
			WHERE org = $1 AND key = $2 AND slices = $3 AND status = 'running'`, a.Org, part.Key, a.Slice, steps)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		if err := db.Exec(ctx, tx, `
			UPDATE replay_parts SET saved = @saved, result = @result
			WHERE org = @org AND replay_key = @replay AND number = @number`, pgx.StrictNamedArgs{"org": a.Org,
			"replay": part.Key, "number": part.Number, "saved": saved, "result": result}); err != nil {
			return err
		}
		tag, err = tx.Exec(ctx, `
			UPDATE replays r SET status = 'done', ended_at = now()
			WHERE r.org = $1 AND r.key = $2 AND NOT EXISTS (
				SELECT FROM replay_parts p WHERE p.org = $1 AND p.replay_key = $2 AND p.result IS NULL)`, a.Org, part.Key)
		if err != nil || tag.RowsAffected() > 0 {
			return err
		}
		return s.queue(ctx, tx, args{Org: a.Org, ID: a.ID, Slice: a.Slice + 1})
	})
}
