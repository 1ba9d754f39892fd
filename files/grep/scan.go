package grep

import (
	"context"
	"errors"
	"iter"
	"math"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// span is whole lines of a file: its segments from first to end, end excluded.
type span struct {
	file       *file
	first, end int
	chars      int64 // an estimate
}

// maxOrdinal ends a span that reaches to the end of its file.
const maxOrdinal = math.MaxInt32

// The sizes of batches. The first batches are small, because many searches end early.
const (
	firstBatchChars = 256 << 10
	maxBatchChars   = 4 << 20
	maxBatchSpans   = 2000
)

// batches groups spans that are read by one query.
func batches(spans []span) [][]span {
	var batched [][]span
	var chars, limit int64 = 0, firstBatchChars
	start := 0
	for i, s := range spans {
		if i > start && (chars+s.chars > limit || i-start == maxBatchSpans) {
			batched, start, chars, limit = append(batched, spans[start:i]), i, 0, min(2*limit, maxBatchChars)
		}
		chars += s.chars
	}
	if start < len(spans) {
		batched = append(batched, spans[start:])
	}
	return batched
}

// found is the matches of one span.
type found struct {
	in      span
	matches []Match
}

// scan searches batches of spans on one or several connections, and adds their matches to the result in order.
type scan struct {
	search  *search
	batches [][]span

	mu     sync.Mutex
	next   int             // the next batch to search
	merged int             // number of batches that are in the result
	done   map[int][]found // batches that are searched but not in the result yet
	found  int             // matches in all batches
	err    error
}

// scan searches spans in order. If there are several batches, and it does not run in the caller's transaction, free
// connections with the same snapshot help. It does not wait for a connection while it holds one.
func (s *search) scan(ctx context.Context, tx pgx.Tx, spans []span, shared bool) error {
	c := &scan{search: s, batches: batches(spans), done: map[int][]found{}}
	var helpers sync.WaitGroup
	starting, stop := context.WithCancel(ctx)
	defer stop()
	if !shared && len(c.batches) > 1 {
		snapshot, err := db.One[string](ctx, tx, `SELECT pg_export_snapshot()`)
		if err != nil {
			return err
		}
		for range min(cap(s.helpers), len(c.batches)-1) {
			select {
			case s.helpers <- struct{}{}:
				helpers.Go(func() {
					c.help(starting, ctx, snapshot)
					<-s.helpers
				})
			default: // other searches use them
			}
		}
	}
	c.work(ctx, tx)
	stop()
	helpers.Wait()
	return c.err
}

// help searches batches on another connection. It gives up if starting ends before it has a connection.
func (c *scan) help(starting, ctx context.Context, snapshot string) {
	tx, err := c.search.db.Begin(starting)
	if err != nil {
		return
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // it only read
	if _, err := tx.Exec(starting, `SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY`); err != nil {
		return
	}
	if _, err := tx.Exec(starting, `SET TRANSACTION SNAPSHOT '`+snapshot+`'`); err != nil {
		return
	}
	c.work(ctx, tx)
}

// work searches batches until none is left.
func (c *scan) work(ctx context.Context, tx pgx.Tx) {
	for i, ok := c.take(); ok; i, ok = c.take() {
		list, err := c.searchBatch(ctx, tx, c.batches[i])
		c.put(i, list, err)
	}
}

// take returns the next batch. ok is false if none is left, or the batches before have enough matches.
func (c *scan) take() (i int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil || c.found > MaxMatches || c.next == len(c.batches) {
		return 0, false
	}
	c.next++
	return c.next - 1, true
}

// put stores the matches of a batch. It adds to the result every batch that now follows the result without a gap.
func (c *scan) put(i int, list []found, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done[i] = list
	for _, f := range list {
		c.found += len(f.matches)
	}
	if c.err == nil {
		c.err = err
	}
	for ; c.err == nil; c.merged++ {
		list, ok := c.done[c.merged]
		if !ok {
			return
		}
		delete(c.done, c.merged)
		for _, f := range list {
			if c.search.result.Capped || c.search.add(f.in, f.matches) {
				return
			}
		}
	}
}

var errEnough = errors.New("enough matches")

// searchBatch returns the matches of a batch, at most MaxMatches+1, one more than a result may have.
func (c *scan) searchBatch(ctx context.Context, tx pgx.Tx, batch []span) ([]found, error) {
	var list []found
	left := MaxMatches + 1
	read := segmentQuery{db: tx, org: c.search.Org, sql: byOrdinals, spans: batch}
	err := read.each(ctx, func(i int, segments iter.Seq2[Segment, error]) error {
		matches, err := c.search.pattern(batch[i].file.Broken).matchIn(segments, left)
		if err != nil || len(matches) == 0 {
			return err
		}
		list = append(list, found{batch[i], matches})
		if left -= len(matches); left == 0 {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return list, err
}
