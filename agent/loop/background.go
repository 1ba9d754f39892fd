package loop

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// Bounds of a background run's events that wait to be stored.
const (
	maxWaiting   = 64
	waitingSince = 100 * time.Millisecond
)

// emit shows an event to the run's clients.
func (w *worker) emit(ctx context.Context, e Event) error {
	w.add(e)
	if !w.run.Background {
		if e.Delta != nil && len(w.Render(w.run, e, 0)) > 0 {
			w.unstored = e.Delta.MessageID
		}
		return nil
	}
	i := &w.items
	i.waiting = append(i.waiting, e)
	if e.Delta != nil && len(i.waiting) < maxWaiting && time.Since(i.flushed) < waitingSince {
		return nil
	}
	return w.flush(ctx, w.DB)
}

// store stores waiting events and then these events of a message, for clients that attach to a background run.
func (w *worker) store(ctx context.Context, d db.DB, message string, events ...Event) error {
	if !w.run.Background {
		return nil
	}
	for _, e := range events {
		if err := w.dropCalls(ctx, d, message, e.Dropped); err != nil {
			return err
		}
	}
	w.items.waiting = append(w.items.waiting, events...)
	return w.flush(ctx, d)
}

// dropCalls drops pieces of these calls in a message.
func (w *worker) dropCalls(ctx context.Context, d db.DB, message string, calls []string) error {
	if len(calls) == 0 {
		return nil
	}
	w.items.waiting = slices.DeleteFunc(slices.Clone(w.items.waiting), func(e Event) bool {
		return e.Delta != nil && slices.Contains(calls, e.Delta.CallID)
	})
	if err := w.findLast(ctx, d); err != nil {
		return err
	}
	_, err := d.Exec(ctx, `
		DELETE FROM run_items WHERE org = $1 AND run_key = $2 AND item ->> 'id' = $3
		       AND item -> 'tool_call' ->> 'tool_call_id' = ANY ($4)`, w.org, w.run.Key, message, calls)
	return db.Error(err)
}

// flushLate stores waiting pieces of an answer while its model is silent, until done is closed. stopped waits until it
// has stopped. ctx is the run's, because a statement that were broken off at the end of an answer might have stored
// items without the run's knowledge.
func (w *worker) flushLate(ctx context.Context, done <-chan struct{}) (stopped func()) {
	var flushing sync.WaitGroup
	if w.run.Background {
		flushing.Go(func() {
			look := time.NewTicker(waitingSince)
			defer look.Stop()
			for {
				select {
				case <-done:
					return
				case <-look.C:
					w.flushWaiting(ctx)
				}
			}
		})
	}
	return flushing.Wait
}

func (w *worker) flushWaiting(ctx context.Context) {
	w.shows.Lock()
	defer w.shows.Unlock()
	if len(w.items.waiting) == 0 || time.Since(w.items.flushed) < waitingSince {
		return
	}
	if err := w.flush(ctx, w.DB); err != nil && ctx.Err() == nil {
		w.Log.WarnContext(ctx, "pieces of an answer are not stored for their client", "run", w.run.ID, "error", err)
	}
}

// flush stores the waiting events as items.
func (w *worker) flush(ctx context.Context, d db.DB) error {
	i := &w.items
	if err := w.findLast(ctx, d); err != nil {
		return err
	}
	var list []json.RawMessage
	for _, e := range i.waiting {
		items := w.Render(w.run, e, i.last+int64(len(list))+1)
		if e.Delta != nil && len(items) > 0 {
			w.unstored = e.Delta.MessageID
		}
		list = append(list, items...)
	}
	i.waiting, i.flushed = nil, time.Now()
	if len(list) == 0 {
		return nil
	}
	_, err := d.Exec(ctx, `
		INSERT INTO run_items (org, run_key, seq, item)
		SELECT $1, $2, $3 + place, item
		FROM unnest($4::json[]) WITH ORDINALITY AS item (item, place)`, w.org, w.run.Key, i.last, list)
	if err != nil {
		i.last = 0 // the items may be stored
		return db.Error(err)
	}
	i.last += int64(len(list))
	return nil
}

// findLast finds the number of the last stored item. It does so before items are withdrawn, so that no number is used
// twice.
func (w *worker) findLast(ctx context.Context, d db.DB) (err error) {
	if w.items.last == 0 {
		w.items.last, err = db.One[int64](ctx, d, `
			SELECT coalesce(max(seq), 0) FROM run_items WHERE org = $1 AND run_key = $2`, w.org, w.run.Key)
	}
	return err
}

// inTx calls do in a transaction. If that fails, the waiting events are again those from before.
func (w *worker) inTx(ctx context.Context, do func(pgx.Tx) error) error {
	before := w.items
	err := db.Tx(ctx, w.DB, do)
	if err != nil {
		w.items = before
	}
	return err
}

// sendLast stores events, and makes sure that no delta of an unstored message is left.
func (w *worker) sendLast(ctx context.Context, tx pgx.Tx, last []Event) error {
	w.items.dropDeltas()
	if err := w.findLast(ctx, tx); err != nil {
		return err
	}
	if w.unstored != "" {
		_, err := tx.Exec(ctx, `DELETE FROM run_items WHERE org = $1 AND run_key = $2 AND item ->> 'id' = $3`, w.org,
			w.run.Key, w.unstored)
		if err != nil {
			return db.Error(err)
		}
	}
	w.items.waiting = append(w.items.waiting, last...)
	return w.flush(ctx, tx)
}

// catchUp makes the items of a background run match the log after another server worked on the run: it withdraws deltas
// of an answer that was not stored, and adds messages without items.
func (w *worker) catchUp(ctx context.Context, produced []recall.Message) error {
	if !w.run.Background {
		return nil
	}
	shown, err := db.All[string](ctx, w.DB, `
		SELECT DISTINCT item ->> 'id' FROM run_items
		WHERE org = $1 AND run_key = $2 AND item ->> 'id' LIKE 'message-%'`, w.org, w.run.Key)
	if err != nil {
		return err
	}
	stored := map[string]bool{}
	for _, m := range produced {
		if stored[m.ID] = true; !slices.Contains(shown, m.ID) {
			if err := w.emit(ctx, Event{Message: &m}); err != nil {
				return err
			}
		}
	}
	for _, id := range shown {
		_, err := w.Recall.Message(ctx, w.org, id)
		if stored[id] || !errors.Is(err, db.ErrNotFound) {
			continue
		}
		w.unstored = id
		lost := Event{Withdrawn: id}
		err = w.inTx(ctx, func(tx pgx.Tx) error { return w.sendLast(ctx, tx, []Event{lost}) })
		if err != nil {
			return err
		}
		w.unstored = ""
		w.add(lost)
	}
	return nil
}

// Item is one thing that the client of a background run is sent.
type Item struct {
	Seq  int64           `db:"seq"`
	Item json.RawMessage `db:"item"`
}

// Items returns the items of a background run after a number, at most limit. ended is true if no more will come.
func (l *Loop) Items(ctx context.Context, org db.Org, id string, after int64, limit int) (list []Item, ended bool,
	err error) {
	r, err := l.RunByID(ctx, org, id)
	if err != nil {
		return nil, false, err
	}
	list, err = db.All[Item](ctx, l.DB, `
		SELECT seq, item FROM run_items WHERE org = $1 AND run_key = $2 AND seq > $3 ORDER BY seq LIMIT $4`,
		org, r.Key, after, limit)
	return list, r.Status != Running && len(list) < limit, err
}
