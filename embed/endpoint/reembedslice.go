package endpoint

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
)

// slices makes the vectors of rows, several slices at a time, and returns their number. While the endpoint fails, it
// waits.
func (w *reembedding) slices(ctx context.Context, org db.Org, m ReembedSource, keys []int64) (made int, err error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	var mu sync.Mutex
	for len(keys) > 0 && ctx.Err() == nil {
		n := min(len(keys), w.Next.Size())
		some := keys[:n]
		keys = keys[n:]
		group.Go(func() error {
			n, err := w.insist(ctx, org, m, some)
			mu.Lock()
			defer mu.Unlock()
			made += n
			return err
		})
	}
	return made, group.Wait()
}

// insist makes the vectors of one slice. It tries again until the endpoint answers.
func (w *reembedding) insist(ctx context.Context, org db.Org, m ReembedSource, keys []int64) (int, error) {
	for {
		n, away, err := w.slice(ctx, org, m, keys)
		if err == nil && away == 0 || errors.Is(err, errEnded) || ctx.Err() != nil {
			return n, err
		}
		if _, broken := errors.AsType[endpointError](err); err != nil && !broken {
			return n, err
		}
		if err != nil {
			if err := w.note(ctx, w.to.ID, err.Error()); err != nil {
				return n, err
			}
		}
		if err := w.running(db.Exec(ctx, w.DB, `
			UPDATE reembedding SET error = error WHERE to_space = $1 AND state = 'running' AND started_at = $2`,
			w.to.ID, w.started)); err != nil {
			return n, err
		}
		select { // a cancellation is noticed when the pause is over
		case <-ctx.Done():
			return n, ctx.Err()
		case <-time.After(min(away, time.Second)):
		}
	}
}

// endpointError is a failure of the new endpoint; the endpoint is asked again.
type endpointError struct{ error }

// slice makes the vectors of rows with one call of the endpoint, and commits them. away is how long to leave the
// endpoint alone if it gave no permit.
func (w *reembedding) slice(ctx context.Context, org db.Org, m ReembedSource, keys []int64) (
	made int, away time.Duration, err error) {
	permit, away := w.Next.Await(ctx)
	if away > 0 {
		return 0, away, nil
	}
	defer permit.End()
	batch, err := m.Read(ctx, org, w.to, keys)
	if err != nil || batch == nil {
		return 0, 0, err
	}
	items := w.wanted(m, batch.Items())
	if len(items) == 0 {
		return 0, 0, nil
	}
	vectors, refused, err := permit.texts(ctx, items, m.Openings)
	if err != nil {
		return 0, 0, endpointError{err}
	}
	err = db.Tx(ctx, w.DB, func(tx pgx.Tx) error {
		if made, err = m.store(ctx, tx, w.to, batch, answer{vectors, refused}); err != nil {
			return err
		}
		return w.running(db.Exec(ctx, tx, `
			UPDATE reembedding
			SET done = done + @made, refused = refused + @refused, total = greatest(total, done + @made), error = NULL
			WHERE to_space = @space AND state = 'running' AND started_at = @started`,
			pgx.StrictNamedArgs{"space": w.to.ID, "made": made, "refused": len(refused), "started": w.started}))
	})
	if err != nil {
		return 0, 0, err
	}
	w.refuse(m, refused)
	return made, 0, nil
}

// wanted returns the items that the endpoint has not refused.
func (w *reembedding) wanted(m ReembedSource, items []embed.Item) (wanted []embed.Item) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, item := range items {
		if !w.refused[m.Table][item.ID] {
			wanted = append(wanted, item)
		}
	}
	return wanted
}

func (w *reembedding) refuse(m ReembedSource, refused []*RefusedError) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range refused {
		if w.refused[m.Table] == nil {
			w.refused[m.Table] = map[int64]bool{}
		}
		w.refused[m.Table][r.ID] = true
	}
}
