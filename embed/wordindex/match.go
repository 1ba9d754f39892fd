package wordindex

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Question is the owners and the weighted terms that rows are ranked by.
type Question struct {
	Org     db.Org
	Owners  []int64 // owners of the rows
	Terms   []int32
	Weights []float32 // weights of the terms
}

// MaxTerms is the most terms of a question that the index answers.
const MaxTerms = 64

// Match has the scores of the rows in segments, and names the rows without a segment.
type Match struct {
	org     db.Org
	loose   []span  // places of rows without a segment, or changed since
	slack   float64 // how far a row's score may be wrong
	gap     bool    // rows between two segments have no segment
	matched []*matched
	has     []int32 // terms of the question that segments have, one entry per segment

	borrowed *workspace // memory of the matched rows; nil once it is released
}

// span is an owner's places from After (exclusive) to Until (inclusive).
type span struct {
	Owner        int64
	After, Until int64
}

// matched is a segment that is being read.
type matched struct {
	key  int64
	span span
	keys rowKeys
	rows []rowScore // rows that have one of the terms
}

// Release gives back the memory of the rows' scores. Do not call Best afterwards.
func (m *Match) Release() {
	if m == nil || m.borrowed == nil {
		return
	}
	for _, s := range m.matched {
		s.rows = nil
	}
	workspaces.Put(m.borrowed)
	m.borrowed = nil
}

// rowScore is the score of a row. row is its number in the segment.
type rowScore struct {
	row   int32
	score float32
}

// Match scores the rows of a question's owners in their segments. It returns nil if the index does not answer the
// question: if there are too many terms, if the owners have no segments, or if too many rows have no segment. The next
// Update indexes such rows.
func (x *Index) Match(ctx context.Context, d db.DB, q Question) (*Match, error) {
	if len(q.Terms) == 0 || len(q.Terms) > MaxTerms || len(q.Owners) == 0 {
		return nil, nil //nolint:nilnil // as documented
	}
	m := &Match{}
	loose, err := x.read(ctx, d, q, m)
	if err != nil {
		return nil, err
	}
	if loose >= x.NewRows || m.gap {
		x.lookAt(q.Org, q.Owners)
	}
	if len(m.matched) == 0 || loose > maxLoose || m.gap {
		m.Release()
		return nil, nil //nolint:nilnil // as documented
	}
	for _, w := range q.Weights {
		m.slack += float64(w) * impactStep
	}
	return m, nil
}

// maxReads is how often a search starts again because a segment was replaced while it was read.
const maxReads = 3

// read reads what a question needs from the index.
func (x *Index) read(ctx context.Context, d db.DB, q Question, m *Match) (loose int, err error) {
	for range maxReads {
		*m = Match{org: q.Org}
		segments, loose, err := x.places(ctx, d, q, m)
		if err != nil {
			return 0, err
		}
		parts, err := x.parts(ctx, d, q, segments)
		if err != nil {
			return 0, err
		}
		whole, err := m.score(q, segments, parts)
		if err != nil {
			return 0, err
		}
		if whole {
			m.addLoose(q.Owners)
			return loose, nil
		}
	}
	*m = Match{org: q.Org}
	return 0, nil
}

// found is a segment of a question's owners.
type found struct {
	Key   int64 `db:"key"`
	Owner int64 `db:"owner"`
	After int64 `db:"after"`
	Until int64 `db:"until"`
	Shift int   `db:"shift"`
}

// places reads in one round trip the changed rows, the number of rows without a segment, and the segments. The order
// matters: a change that is noted later does not exist for this search, and a row with a change that a new segment has
// made obsolete in the meantime is ranked twice.
func (x *Index) places(ctx context.Context, d db.DB, q Question, m *Match) (segments []found, loose int, err error) {
	args := pgx.StrictNamedArgs{"org": q.Org, "owners": q.Owners}
	var batch pgx.Batch
	batch.Queue(ByIndexes)
	batch.Queue(x.sql(`
		SELECT OWNER AS owner, place - 1 AS after, place AS until FROM word_changes
		WHERE org = @org AND OWNER = ANY (@owners)`), args).Query(func(rows pgx.Rows) error {
		m.loose, err = pgx.CollectRows(rows, pgx.RowToStructByName[span])
		return err
	})
	counted := pgx.StrictNamedArgs{"org": q.Org, "owners": q.Owners, "most": maxLoose + 1}
	batch.Queue(x.sql(`
		SELECT count(*) FROM (
			SELECT FROM unnest(@owners::bigint[]) AS o (key) CROSS JOIN LATERAL (
				SELECT FROM ROWS r
				WHERE r.org = @org AND r.OWNER = o.key AND r.PLACE > coalesce((
					SELECT max(s.until_place) FROM word_segments s WHERE s.org = @org AND s.OWNER = o.key), 0)
				ORDER BY r.PLACE LIMIT @most) l
			LIMIT @most) l`), counted).QueryRow(func(row pgx.Row) error { return row.Scan(&loose) })
	batch.Queue(x.sql(`
		SELECT key, OWNER AS owner, after_place AS after, until_place AS until, shift FROM word_segments
		WHERE org = @org AND OWNER = ANY (@owners)
		ORDER BY key`), args).Query(func(rows pgx.Rows) error {
		segments, err = pgx.CollectRows(rows, pgx.RowToStructByName[found])
		return err
	})
	return segments, loose, db.Error(d.SendBatch(ctx, &batch).Close())
}

// ByIndexes are settings that make Postgres read few rows of a large table through indexes, even if its statistics are
// older than the rows. Each statement of the index has one good plan, whatever its arguments.
const ByIndexes = `
	SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
	       set_config('enable_mergejoin', 'off', true), set_config('enable_bitmapscan', 'off', true),
	       set_config('plan_cache_mode', CASE WHEN to_regclass('pg_dist_node') IS NULL
	         THEN 'force_generic_plan' ELSE 'auto' END, true)`

// bucketOf returns the part of a segment with a term's postings.
func (s found) bucketOf(term int32) part { return part{s.Key, term >> s.Shift} }

// parts returns the parts of segments that a question needs, and reads those that the cache lacks. A deleted segment
// has no keys in the result.
func (x *Index) parts(ctx context.Context, d db.DB, q Question, segments []found) (map[part][]byte, error) {
	parts := make(map[part][]byte, len(segments)*(len(q.Terms)+1))
	var missing []part
	want := func(p part) {
		if _, ok := parts[p]; ok {
			return
		}
		bytes, ok := x.cache.get(p, x.CachedBytes)
		if parts[p] = bytes; !ok {
			missing = append(missing, p)
		}
	}
	for _, s := range segments {
		want(part{s.Key, keysPart})
		for _, term := range q.Terms {
			want(s.bucketOf(term))
		}
	}
	if len(missing) == 0 {
		return parts, nil
	}
	keys, buckets := make([]int64, len(missing)), make([]int32, len(missing))
	for i, p := range missing {
		keys[i], buckets[i] = p.segment, p.bucket
	}
	var batch pgx.Batch
	batch.Queue(ByIndexes)
	batch.Queue(`
		SELECT s.key, w.bucket, CASE WHEN w.bucket < 0 THEN s.row_keys ELSE p.postings END AS bytes
		FROM unnest(@keys::bigint[], @buckets::integer[]) AS w (key, bucket)
		JOIN word_segments s ON s.org = @org AND s.key = w.key
		LEFT JOIN LATERAL (
			SELECT p.postings FROM word_postings p
			WHERE p.org = @org AND p.segment_key = w.key AND p.bucket = w.bucket
			OFFSET 0
		) p ON true`, pgx.StrictNamedArgs{"org": q.Org, "keys": keys, "buckets": buckets}).Query(
		func(rows pgx.Rows) error {
			var p part
			var bytes []byte
			_, err := pgx.ForEachRow(rows, []any{&p.segment, &p.bucket, &bytes}, func() error {
				parts[p] = bytes
				x.cache.add(p, bytes, x.CachedBytes)
				return nil
			})
			return err
		})
	return parts, db.Error(d.SendBatch(ctx, &batch).Close())
}

// score adds up the scores of the segments' rows. whole is false if a segment was deleted.
func (m *Match) score(q Question, segments []found, parts map[part][]byte) (whole bool, err error) {
	m.borrowed = borrow()
	for _, s := range segments {
		keys := rowKeys(parts[part{s.Key, keysPart}])
		if keys == nil {
			return false, nil
		}
		scores, found := m.borrowed.noScores(keys.len()), 0
		for i, term := range q.Terms {
			bucket := parts[s.bucketOf(term)]
			if bucket == nil {
				continue
			}
			rows, err := addScores(scores, bucket, term, q.Weights[i])
			if err != nil {
				return false, err
			}
			if rows > 0 {
				m.has = append(m.has, term)
			}
			found += rows
		}
		m.matched = append(m.matched, &matched{s.Key, span{s.Owner, s.After, s.Until}, keys,
			m.borrowed.scored(scores, found)})
	}
	return true, nil
}

// Has reports whether a row of a segment has a term, or had it when the segment was made.
func (m *Match) Has(term int32) bool { return m != nil && slices.Contains(m.has, term) }

// addLoose adds the places after the last segments, and notes whether there is a gap before them.
func (m *Match) addLoose(owners []int64) {
	slices.SortFunc(m.matched, func(a, b *matched) int { return cmp.Compare(a.span.Until, b.span.Until) })
	covered := make(map[int64]int64, len(owners))
	for _, s := range m.matched {
		if s.span.After > covered[s.span.Owner] {
			m.gap = true
		}
		covered[s.span.Owner] = max(covered[s.span.Owner], s.span.Until)
	}
	for _, owner := range owners {
		m.loose = append(m.loose, span{owner, covered[owner], math.MaxInt64})
	}
}
