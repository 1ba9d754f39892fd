package wordindex

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pgvector/pgvector-go"

	"github.com/loci-memory/loci/db"
)

// build makes segments of an owner, each in its own transaction, until none is due, and returns their number. stale are
// the keys of segments to make again.
func (x *Index) build(ctx context.Context, d db.DB, target scope, stale []int64) (segments int, err error) {
	for made := true; made; {
		err = db.Tx(ctx, d, func(tx pgx.Tx) error {
			b := builder{Index: x, scope: target, tx: tx, stale: stale}
			made, err = b.next(ctx)
			return err
		})
		if errors.Is(err, db.ErrNotFound) { // the owner was deleted
			return segments, nil
		}
		if err != nil {
			return segments, err
		}
		if made {
			segments++
		}
	}
	return segments, nil
}

// builder makes one segment in a transaction.
type builder struct {
	*Index
	scope
	tx       pgx.Tx
	stale    []int64 // keys of segments to make again
	segments []segment
	changes  []change
}

// segment is the row of a segment, without its postings.
type segment struct {
	Key   int64 `db:"key"`
	After int64 `db:"after_place"`
	Until int64 `db:"until_place"`
	Rows  int   `db:"rows"`
	Size  int   `db:"size"`
}

// change is a row that changed.
type change struct {
	Key   int64 `db:"key"`
	Place int64 `db:"place"`
}

// next makes the next segment that is due. built is false if none is due or another server works on the owner.
func (b *builder) next(ctx context.Context) (built bool, err error) {
	locked, err := db.One[bool](ctx, b.tx, `
		SELECT pg_try_advisory_xact_lock(hashtextextended('words ' || $1, $2))`, b.Owner, b.owner)
	if err != nil || !locked {
		return false, err
	}
	// Read the changes before the rows: a change after this statement stays noted after the segment is made.
	b.changes, err = db.All[change](ctx, b.tx, b.sql(`
		SELECT key, place FROM word_changes WHERE org = $1 AND OWNER = $2 ORDER BY key`), b.org, b.owner)
	if err == nil {
		b.segments, err = db.All[segment](ctx, b.tx, b.sql(`
			SELECT key, after_place, until_place, rows, size FROM word_segments
			WHERE org = $1 AND OWNER = $2 ORDER BY until_place`), b.org, b.owner)
	}
	if err != nil {
		return false, err
	}
	p, err := b.plan(ctx)
	if err != nil {
		return false, err
	}
	if p.due() {
		if p, err = b.make(ctx, p); err != nil {
			return false, err
		}
	}
	return p.due(), b.forget(ctx, p)
}

// plan is a segment to make: its rows have places from after (exclusive) to until (inclusive). It replaces other
// segments.
type plan struct {
	after, until int64
	replaced     []int64
}

func (p plan) due() bool { return p.until > p.after }

// plan plans a segment to make again, a segment for a gap between others, or a segment for the rows after the last one,
// joined with the segments before it that are no larger. So an owner who adds rows in small steps has few segments, and
// each row is read only a few times.
func (b *builder) plan(ctx context.Context) (plan, error) {
	covered := int64(0)
	for i, s := range b.segments {
		if slices.Contains(b.stale, s.Key) {
			return plan{s.After, s.Until, []int64{s.Key}}, nil
		}
		if s.After > covered {
			return b.grown(ctx, plan{after: covered, until: s.After}, b.segments[:i])
		}
		covered = max(covered, s.Until)
	}
	enough := b.NewRows
	if covered == 0 {
		enough = b.FirstRows
	}
	last, err := b.settled(ctx, covered, enough)
	if err != nil || last <= covered {
		return plan{}, err
	}
	return b.grown(ctx, plan{after: covered, until: last}, b.segments)
}

// settled returns the owner's last place, once no more rows can get an earlier one. It returns 0 if there are too few
// rows after covered, or if a transaction that may add such rows goes on for too long.
func (b *builder) settled(ctx context.Context, covered int64, enough int) (last int64, err error) {
	type end struct {
		Rows int   `db:"rows"`
		Last int64 `db:"last"`
	}
	e, err := db.One[end](ctx, b.tx, b.sql(`
		SELECT (SELECT count(*) FROM (
			SELECT FROM ROWS r WHERE r.org = $1 AND r.OWNER = $2 AND r.PLACE > $3 LIMIT $4) l) AS rows,
		       coalesce((SELECT max(r.PLACE) FROM ROWS r WHERE r.org = $1 AND r.OWNER = $2), 0) AS last`),
		b.org, b.owner, covered, enough)
	if err != nil || e.Rows < enough {
		return 0, err
	}
	open, err := b.writers(ctx)
	for until := time.Now().Add(b.Wait); err == nil && len(open) > 0; {
		if time.Now().After(until) {
			return 0, nil
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(writerPause):
		}
		var stillOpen []string
		stillOpen, err = b.writers(ctx)
		open = slices.DeleteFunc(open, func(w string) bool { return !slices.Contains(stillOpen, w) })
	}
	return e.Last, err
}

// How often a builder looks for writing transactions, and how long it waits for them.
const (
	writerPause = 50 * time.Millisecond
	writerWait  = 5 * time.Second
)

// writers returns the transactions that write to the table of rows. A transaction that took a place before this
// statement is among them or has ended: a writer takes the table's lock before it takes a place, and holds it until it
// ends.
func (b *builder) writers(ctx context.Context) ([]string, error) {
	return db.All[string](ctx, b.tx, `
		SELECT DISTINCT virtualtransaction FROM pg_locks
		WHERE relation = to_regclass($1) AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
		  AND mode = 'RowExclusiveLock' AND pid <> pg_backend_pid()`, b.Rows)
}

// grown ends a plan when its segment is full, and adds the earlier segments that are no larger.
func (b *builder) grown(ctx context.Context, p plan, before []segment) (plan, error) {
	type end struct {
		Rows int   `db:"rows"`
		Last int64 `db:"last"`
	}
	e, err := db.One[end](ctx, b.tx, b.sql(`
		SELECT count(*) AS rows, coalesce(max(place), 0) AS last FROM (
			SELECT r.PLACE AS place FROM ROWS r
			WHERE r.org = $1 AND r.OWNER = $2 AND r.PLACE > $3 AND r.PLACE <= $4
			ORDER BY r.PLACE LIMIT $5) l`), b.org, b.owner, p.after, p.until, b.SegmentRows)
	if err != nil {
		return plan{}, err
	}
	if e.Rows == b.SegmentRows {
		p.until = e.Last
	}
	for _, s := range slices.Backward(before) {
		// A segment that was cut at maxSize is too large to be read again with each step.
		if s.Until != p.after || s.Rows > e.Rows || s.Rows+e.Rows > b.SegmentRows || s.Size > maxSize/2 {
			break
		}
		p.after, p.replaced, e.Rows = s.After, append(p.replaced, s.Key), e.Rows+s.Rows
	}
	return p, nil
}

// make stores the segment of a plan, and returns the plan as it was carried out. It may end earlier, if the rows have
// too many postings. The rest of the replaced segments is then a gap, which is planned next.
func (b *builder) make(ctx context.Context, p plan) (plan, error) {
	part, until, err := b.read(ctx, p)
	if err != nil {
		return p, err
	}
	p.until = until
	if _, err := b.tx.Exec(ctx, `
		DELETE FROM word_segments WHERE org = $1 AND key = ANY ($2)`, b.org, p.replaced); err != nil {
		return p, db.Error(err)
	}
	slices.Sort(part.postings)
	shift := shiftFor(len(part.postings))
	key, err := db.One[int64](ctx, b.tx, b.sql(`
		INSERT INTO word_segments (org, OWNER, after_place, until_place, size, shift, row_keys, vocabulary, rows)
		SELECT $1, $2, $3, $4, $5, $6, $7, $8, count(*)
		FROM ROWS r WHERE r.org = $1 AND r.OWNER = $2 AND r.PLACE > $3 AND r.PLACE <= $4
		RETURNING key`), b.org, b.owner, p.after, p.until, part.size(), shift, packKeys(part.keys),
		newVocabulary(part.postings))
	if err != nil {
		return p, err
	}
	var rows [][]any
	for number, bytes := range buckets(part.postings, shift) {
		rows = append(rows, []any{b.org, key, number, bytes})
	}
	_, err = b.tx.CopyFrom(ctx, pgx.Identifier{"word_postings"}, []string{"org", "segment_key", "bucket", "postings"},
		pgx.CopyFromRows(rows))
	return p, db.Error(err)
}

// inverted is a segment in memory: the keys of its rows, and their postings.
type inverted struct {
	keys     []int64
	postings []posting
}

// read inverts the rows of a plan, and returns the last place that it read.
func (b *builder) read(ctx context.Context, p plan) (part inverted, until int64, err error) {
	rows, err := b.tx.Query(ctx, b.sql(`
		SELECT r.PLACE, w.key, w.lex FROM ROWS r JOIN SEARCHED w ON w.org = $1 AND w.key = r.key
		WHERE r.org = $1 AND r.OWNER = $2 AND r.PLACE > $3 AND r.PLACE <= $4 AND w.lex IS NOT NULL
		ORDER BY r.PLACE`), b.org, b.owner, p.after, p.until)
	if err != nil {
		return part, 0, db.Error(err)
	}
	defer rows.Close()
	var whole inverted // without the rows of the last place
	last := p.after
	for rows.Next() {
		var place, key int64
		var lex pgvector.SparseVector
		if err := rows.Scan(&place, &key, &lex); err != nil {
			return part, 0, err
		}
		if place != last {
			whole, last = part, place
		}
		part.add(key, lex)
		if len(whole.keys) > 0 && part.size() > maxSize {
			return whole, last - 1, nil
		}
	}
	return part, p.until, db.Error(rows.Err())
}

// size returns the number of postings or, if greater, a number that reaches maxSize at 65,536 rows: no segment has
// more.
func (m *inverted) size() int { return max(len(m.postings), len(m.keys)*(maxSize>>16)) }

// add adds a row.
func (m *inverted) add(key int64, lex pgvector.SparseVector) {
	values := lex.Values()
	for i, term := range lex.Indices() {
		m.postings = append(m.postings, newPosting(term, len(m.keys), values[i]))
	}
	m.keys = append(m.keys, key)
}

// forget deletes the changes that came before the rows of all segments were read.
func (b *builder) forget(ctx context.Context, p plan) error {
	var keys []int64
	for _, c := range b.changes {
		inOld := slices.ContainsFunc(b.segments, func(s segment) bool {
			return s.After < c.Place && c.Place <= s.Until && !slices.Contains(p.replaced, s.Key)
		})
		if !inOld {
			keys = append(keys, c.Key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	_, err := b.tx.Exec(ctx, `DELETE FROM word_changes WHERE org = $1 AND key = ANY ($2)`, b.org, keys)
	return db.Error(err)
}
