package loop

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/queue"
)

// ItemsKept is how long the items of background runs can be read.
const ItemsKept = 3 * time.Hour

// Bounds of the events of a background run that wait to be stored.
const (
	maxWaiting   = 64
	waitingSince = 100 * time.Millisecond
)

// items are the events of a background run that wait to be stored.
type items struct {
	waiting []Event
	flushed time.Time
	last    int64           // number of the last stored item; 0 before it is known
	asked   map[string]bool // ids of calls whose deltas are the client's to run
}

func (i *items) ask(callID string) {
	if i.asked == nil {
		i.asked = map[string]bool{}
	}
	i.asked[callID] = true
}

// emit shows an event to the clients of the run.
func (w *worker) emit(ctx context.Context, e Event) error {
	w.add(e)
	if !w.run.Background {
		return nil
	}
	i := &w.items
	i.waiting = append(i.waiting, e)
	if e.Delta != nil && len(i.waiting) < maxWaiting && time.Since(i.flushed) < waitingSince {
		return nil
	}
	return w.flush(ctx, w.DB)
}

// flush stores the waiting events as items.
func (w *worker) flush(ctx context.Context, d db.DB) (err error) {
	i := &w.items
	if i.last == 0 {
		i.last, err = db.One[int64](ctx, d, `
			SELECT coalesce(max(seq), 0) FROM run_items WHERE org = $1 AND run_key = $2`, w.org, w.run.Key)
		if err != nil {
			return err
		}
	}
	var list []json.RawMessage
	for _, e := range i.waiting {
		list = append(list, w.Render(w.run, e, i.last+int64(len(list))+1)...)
	}
	i.waiting, i.flushed = nil, time.Now()
	if len(list) == 0 {
		return nil
	}
	_, err = d.Exec(ctx, `
		INSERT INTO run_items (org, run_key, seq, item)
		SELECT $1, $2, $3 + place, item
		FROM unnest($4::json[]) WITH ORDINALITY AS item (item, place)`, w.org, w.run.Key, i.last, list)
	if err == nil {
		i.last += int64(len(list))
	}
	return db.Error(err)
}

// end ends the run. One that is gone, or has ended, ends for its clients alone.
func (w *worker) end(ctx context.Context, s stop) error {
	if s.reason != RequiresApproval {
		err := w.answerPending(ctx, "The call was not run: the run stopped before it ("+s.reason+").")
		if ignoreNotFound(err) != nil {
			w.Log.WarnContext(ctx, "calls without a result stay", "run", w.run.ID, "error", err)
		}
	}
	usage, err := w.UsageOf(ctx, w.org, w.run)
	if err != nil {
		return err
	}
	e := End{StopReason: s.reason, Failure: s.failed, Usage: usage}
	err = db.Tx(ctx, w.DB, func(tx pgx.Tx) error {
		before := w.items
		if err := w.storeEnd(ctx, tx, e); err != nil || !w.run.Background {
			return err
		}
		w.items.waiting = append(w.items.waiting, Event{End: &e})
		err := w.flush(ctx, tx)
		if err != nil {
			w.items = before
		}
		return err
	})
	if err = ignoreNotFound(err); err != nil && ctx.Err() != nil {
		return err
	}
	w.add(Event{End: &e})
	return err
}

// Item is what the client of a background run is sent.
type Item struct {
	Seq  int64           `db:"seq"`
	Item json.RawMessage `db:"item"`
}

// Items returns the items of a background run after a number, at most limit. ended is true if no more come.
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

// Forget deletes the items of runs that ended more than ItemsKept ago, some at a time, and returns their number.
func (l *Loop) Forget(ctx context.Context) (int, error) {
	tag, err := l.DB.Exec(ctx, `
		DELETE FROM run_items WHERE (org, run_key, seq) IN (
			SELECT i.org, i.run_key, i.seq FROM run_items i JOIN runs r ON r.org = i.org AND r.key = i.run_key
			WHERE r.completed_at < now() - $1::interval LIMIT 10000)`, ItemsKept)
	return int(tag.RowsAffected()), db.Error(err)
}

// orphan is a run that no living server works on.
type orphan struct {
	Org   db.Org `db:"org"`
	ID    string `db:"id"`
	Owner string `db:"owner"`
}

// adopt takes over the runs of servers that are gone, and those of this server that were interrupted.
func (l *Loop) adopt(ctx context.Context) {
	orphans, err := l.orphans(ctx)
	if err != nil && ctx.Err() == nil {
		l.Log.WarnContext(ctx, "runs that were interrupted do not go on yet", "error", err)
	}
	for _, o := range orphans {
		s := newSession(o.Org, Run{ID: o.ID}, Model{})
		if !l.hold(s) {
			continue
		}
		if err := l.takeOver(ctx, s, o); err != nil {
			l.release(s)
			if ctx.Err() == nil && ignoreNotFound(err) != nil {
				l.Log.WarnContext(ctx, "a run that was interrupted does not go on yet", "run", o.ID, "error", err)
			}
		}
	}
}

func (l *Loop) takeOver(ctx context.Context, s *session, o orphan) (err error) {
	err = db.Exec(ctx, l.DB, `
		UPDATE runs SET owner = $4 WHERE org = $1 AND id = $2 AND owner = $3 AND status = 'running'`,
		o.Org, o.ID, o.Owner, l.Server)
	if err != nil {
		return err
	}
	if s.run, err = l.RunByID(ctx, o.Org, o.ID); err != nil {
		return err
	}
	go func() { _ = l.hand(ctx, s) }() // Run receives it after adopt, or ends with ctx
	return nil
}

// orphans lists the runs of all organizations that are running and whose server is gone, and those of this server that
// it does not work on.
func (l *Loop) orphans(ctx context.Context) ([]orphan, error) {
	running, err := db.All[orphan](ctx, l.DB, `SELECT org, id, owner FROM runs WHERE status = 'running' ORDER BY org, key`)
	if err != nil || len(running) == 0 {
		return nil, err
	}
	var owners []string
	for _, o := range running {
		owners = append(owners, o.Owner)
	}
	dead, err := queue.Dead(ctx, l.DB, owners)
	if err != nil {
		return nil, err
	}
	gone := map[string]bool{l.Server: true}
	for _, id := range dead {
		gone[id] = true
	}
	var orphans []orphan
	for _, o := range running {
		if gone[o.Owner] && l.held(o.ID) == nil {
			orphans = append(orphans, o)
		}
	}
	return orphans, nil
}
