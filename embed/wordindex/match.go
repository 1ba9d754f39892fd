package wordindex

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/loci-memory/loci/db"
)

// Question is what rows are ranked by.
type Question struct {
	Org     db.Org
	Owners  []int64 // of the rows
	Terms   []int32
	Weights []float32 // of the terms
}

// MaxTerms is the most terms of a question that the index is read for.
const MaxTerms = 64

// Match holds the scores of the rows of segments, and names the rows that no segment has.
type Match struct {
	loose   []span  // places of rows that no segment has, or that changed since
	slack   float64 // by which a score of a row may be wrong
	gap     bool    // rows between two segments have none
	matched []*matched
}

// span is the places of an owner after one, up to another.
type span struct {
	Owner        int64
	After, Until int64
}

// matched is a segment that is being read.
type matched struct {
	key    int64
	span   span
	keys   rowKeys
	scores []float32 // by row number
}

// Match scores the rows of a question's owners in their segments. It returns nil if the index does not answer the
// question: it has too many terms, or its owners have no segments, or too many rows that no segment has. Owners with
// such rows are indexed by the next Update.
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
		return nil, nil //nolint:nilnil // as documented
	}
	for _, w := range q.Weights {
		m.slack += float64(w) * impactStep
	}
	return m, nil
}

// read reads, in one round trip, the rows that changed, how many have no segment, and the postings. The order matters:
// a change that is noted after it was read has not happened for this search, and one that a new segment made obsolete
// since is ranked twice.
func (x *Index) read(ctx context.Context, d db.DB, q Question, m *Match) (loose int, err error) {
	owners := make([]scope, len(q.Owners))
	for i, owner := range q.Owners {
		owners[i] = scope{q.Org, owner}
	}
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
	known := x.keys.known(owners)
	postings := pgx.StrictNamedArgs{"org": q.Org, "owners": q.Owners, "terms": q.Terms,
		"known": slices.AppendSeq([]int64{}, maps.Keys(known))}
	batch.Queue(x.sql(`
		SELECT s.key, s.OWNER, s.after_place, s.until_place, t.number,
		       CASE WHEN t.number = 1 AND s.key <> ALL (@known::bigint[]) THEN s.row_keys END AS row_keys, p.postings
		FROM word_segments s
		CROSS JOIN unnest(@terms::integer[]) WITH ORDINALITY AS t (term, number)
		LEFT JOIN LATERAL (
			SELECT p.postings FROM word_postings p
			WHERE p.org = @org AND p.segment_key = s.key AND p.bucket = t.term >> s.shift
			OFFSET 0
		) p ON true
		WHERE s.org = @org AND s.OWNER = ANY (@owners)
		ORDER BY s.key, t.number`), postings).Query(func(rows pgx.Rows) error { return x.score(rows, q, known, m) })
	if err := d.SendBatch(ctx, &batch).Close(); err != nil {
		return 0, db.Error(err)
	}
	m.addLoose(q.Owners)
	return loose, nil
}

// ByIndexes makes the settings under which Postgres reads few rows of a large table even where its statistics are of a
// time before the rows came.
const ByIndexes = `
	SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
	       set_config('enable_mergejoin', 'off', true), set_config('enable_bitmapscan', 'off', true)`

// score adds up the scores of rows from the postings of segments, which come by segment and term.
func (x *Index) score(rows pgx.Rows, q Question, known map[int64]rowKeys, m *Match) error {
	var s *matched
	for rows.Next() {
		var key int64
		var span span
		var number int
		var keys []byte
		var bucket pgtype.DriverBytes // valid until the next row
		if err := rows.Scan(&key, &span.Owner, &span.After, &span.Until, &number, &keys, &bucket); err != nil {
			return err
		}
		if s == nil || s.key != key {
			if keys != nil {
				x.keys.add(scope{q.Org, span.Owner}, key, keys)
			} else {
				keys = known[key]
			}
			s = &matched{key: key, span: span, keys: keys, scores: make([]float32, rowKeys(keys).len())}
			m.matched = append(m.matched, s)
		}
		if bucket == nil {
			continue
		}
		if err := addScores(s.scores, bucket, q.Terms[number-1], q.Weights[number-1]); err != nil {
			return err
		}
	}
	return rows.Err()
}

// addLoose adds the places after the last segments, and notes whether there is a gap before these.
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
