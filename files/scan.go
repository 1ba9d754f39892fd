package files

import (
	"context"
	"errors"
	"iter"
	"math"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// stretch is a stretch of a file's text: whole lines, which are the segments first to end, end not among them.
type stretch struct {
	file       *textFile
	first, end int
	chars      int64 // about
}

// maxOrdinal is the end of a stretch that goes to the end of its file.
const maxOrdinal = math.MaxInt32

// A query of a search reads so much text, little at first: many searches end early.
const (
	firstBatchChars = 256 << 10
	batchChars      = 4 << 20
	batchStretches  = 2000
)

// batches parts stretches into runs that are read together.
func batches(stretches []stretch) [][]stretch {
	var out [][]stretch
	var chars, most int64 = 0, firstBatchChars
	start := 0
	for i, in := range stretches {
		if i > start && (chars+in.chars > most || i-start == batchStretches) {
			out, start, chars, most = append(out, stretches[start:i]), i, 0, min(2*most, batchChars)
		}
		chars += in.chars
	}
	if start < len(stretches) {
		out = append(out, stretches[start:])
	}
	return out
}

// found is what was found in one stretch.
type found struct {
	in      stretch
	matches []Match
}

// scan is a search through batches of stretches, by one or several connections. What they find is put together in order.
type scan struct {
	grep    *grep
	batches [][]stretch

	mu     sync.Mutex
	next   int             // the batch to search
	merged int             // batches that the result has
	done   map[int][]found // of batches after those
	found  int             // matches, in all batches
	err    error
}

// scan searches stretches, given in order. Where there is more than one batch, other connections help as far as there are any: they see what
// this transaction sees. It holds no connection while it waits for one.
func (g *grep) scan(ctx context.Context, tx pgx.Tx, stretches []stretch, alone bool) error {
	c := &scan{grep: g, batches: batches(stretches), done: map[int][]found{}}
	var helpers sync.WaitGroup
	helping, end := context.WithCancel(ctx)
	defer end()
	if !alone && len(c.batches) > 1 {
		snapshot, err := db.One[string](ctx, tx, `SELECT pg_export_snapshot()`)
		if err != nil {
			return err
		}
		for range min(cap(g.store.helpers), len(c.batches)-1) {
			select {
			case g.store.helpers <- struct{}{}:
				helpers.Go(func() {
					c.help(helping, ctx, snapshot)
					<-g.store.helpers
				})
			default: // other searches have them
			}
		}
	}
	c.work(ctx, tx)
	end()
	helpers.Wait()
	return c.err
}

// help searches on a connection of its own. It may not get one until the search is over: starting ends then.
func (c *scan) help(starting, ctx context.Context, snapshot string) {
	tx, err := c.grep.store.db.Begin(starting)
	if err != nil {
		return
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := tx.Exec(starting, `SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY`); err != nil {
		return
	}
	if _, err := tx.Exec(starting, `SET TRANSACTION SNAPSHOT '`+snapshot+`'`); err != nil {
		return
	}
	c.work(ctx, tx)
}

// work searches batches until none is left to search.
func (c *scan) work(ctx context.Context, tx pgx.Tx) {
	for i, ok := c.take(); ok; i, ok = c.take() {
		list, err := c.search(ctx, tx, c.batches[i])
		c.put(i, list, err)
	}
}

// take hands out a batch, as long as more matches are wanted than all batches before it have.
func (c *scan) take() (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil || c.found > GrepCap || c.next == len(c.batches) {
		return 0, false
	}
	c.next++
	return c.next - 1, true
}

// put gives back what a batch had, and adds to the result what follows it.
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
			if c.grep.result.Capped || c.grep.add(f.in, f.matches) {
				return
			}
		}
	}
}

var errEnough = errors.New("enough was found")

// search searches a batch. More than GrepCap matches are more than any result has.
func (c *scan) search(ctx context.Context, tx pgx.Tx, batch []stretch) ([]found, error) {
	var list []found
	most := GrepCap + 1
	err := readStretches(ctx, tx, c.grep.org, bySegments, batch, func(i int, segments iter.Seq2[Segment, error]) error {
		matches, err := c.grep.pattern.matchIn(segments, most)
		if err != nil || len(matches) == 0 {
			return err
		}
		list = append(list, found{batch[i], matches})
		if most -= len(matches); most == 0 {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return list, err
}

// The statements that read the segments of stretches: by their ordinals, or, where first and end are lines, those that have one of them.
const (
	bySegments     = stretchColumns + ` AND g.ordinal >= n.first AND g.ordinal < n.stop ORDER BY n.ord, g.ordinal`
	byLines        = stretchColumns + ` AND g.first_line < n.stop AND g.first_line + greatest(g.lines, 1) > n.first ORDER BY n.ord, g.ordinal`
	stretchColumns = `
		SELECT n.ord - 1, g.ordinal, g.first_line, g.lines, g.continues, g.text
		FROM unnest($2::bigint[], $3::int[], $4::int[], $5::int[]) WITH ORDINALITY AS n (key, generation, first, stop, ord)
		JOIN file_segments g ON g.org = $1 AND g.file_key = n.key AND g.generation = n.generation`
)

// readStretches gives the segments of each stretch to fn, in order, until fn returns an error. A stretch without segments is passed over.
func readStretches(ctx context.Context, d db.DB, org db.Org, sql string, stretches []stretch, fn func(i int, segments iter.Seq2[Segment, error]) error) error {
	keys, generations := make([]int64, len(stretches)), make([]int, len(stretches))
	firsts, ends := make([]int, len(stretches)), make([]int, len(stretches))
	for i, in := range stretches {
		keys[i], generations[i], firsts[i], ends[i] = in.file.Key, in.file.Generation, in.first, in.end
	}
	rows, err := d.Query(ctx, sql, org, keys, generations, firsts, ends)
	if err != nil {
		return err
	}
	defer rows.Close()
	stream := segmentStream{rows: rows}
	for stream.next(); stream.err == nil && stream.stretch >= 0; {
		in := stream.stretch
		if err := fn(in, stream.of(in)); err != nil {
			return err
		}
		for stream.err == nil && stream.stretch == in { // what was not needed
			stream.next()
		}
	}
	return stream.err
}

// segmentStream reads segments of one stretch after the other.
type segmentStream struct {
	rows    pgx.Rows
	stretch int // the place of the stretch that segment is of; -1 at the end
	segment Segment
	err     error
}

func (s *segmentStream) next() {
	if !s.rows.Next() {
		s.stretch, s.err = -1, s.rows.Err()
		return
	}
	g := &s.segment
	s.err = s.rows.Scan(&s.stretch, &g.Ordinal, &g.FirstLine, &g.Lines, &g.Continues, &g.Text)
}

// of yields the segments of one stretch, from the present one.
func (s *segmentStream) of(stretch int) iter.Seq2[Segment, error] {
	return func(yield func(Segment, error) bool) {
		for s.err == nil && s.stretch == stretch {
			if !yield(s.segment, nil) {
				return
			}
			s.next()
		}
		if s.err != nil {
			yield(Segment{}, s.err)
		}
	}
}
