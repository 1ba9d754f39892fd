package archival

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/filter"
	"github.com/loci-memory/loci/embed/rank"
	"github.com/loci-memory/loci/embed/wordindex"
)

// narrow sets Few and Loose of the filter of a query. Few reads the keys of the passages with the query's tags, times
// and filter; a query without any of these has none.
func (s *Store) narrow(ctx context.Context, a searchedArchives, q Query, f *rank.Filter) {
	if len(q.Tags) == 0 && q.Start == nil && q.End == nil && a.narrowed.Empty() ||
		len(a.archives)*max(len(q.Tags), len(a.narrowed.tags), 1) > rank.MaxOwners {
		return
	}
	if tags := a.ownedTags(q); len(tags) == 0 && a.narrowed.byValues() {
		f.Loose, f.Few = true, s.fewByValues(ctx, a, q, *f)
		return
	}
	f.Few = s.fewOf(ctx, a, q, *f)
}

// fewOf returns rank.Filter.Few by the tags and times of a query. When there are few keys, both arms of the search
// share one read.
func (s *Store) fewOf(ctx context.Context, a searchedArchives, q Query, f rank.Filter) func(most int) ([]int64, error) {
	first := sync.OnceValues(func() ([]int64, error) { return s.keysOf(ctx, a, q, f, rank.FewByWords+1) })
	return func(most int) ([]int64, error) {
		keys, err := first()
		if err == nil && rank.FewByWords < len(keys) && rank.FewByWords < most {
			keys, err = s.keysOf(ctx, a, q, f, most+1)
		}
		if len(keys) > most {
			return nil, err
		}
		return keys, err
	}
}

// fewByValues returns rank.Filter.Few by the values in the metadata of passages. Where these are many, it asks for the
// query's times.
func (s *Store) fewByValues(ctx context.Context, a searchedArchives, q Query, f rank.Filter) func(most int) ([]int64,
	error) {
	first := sync.OnceValues(func() ([]int64, error) { return s.byValues(ctx, a, rank.FewByMeaning) })
	byTime := func(int) ([]int64, error) { return nil, nil }
	if a.times(q, pgx.StrictNamedArgs{}) != "" {
		byTime = s.fewOf(ctx, a, q, f)
	}
	return func(most int) ([]int64, error) {
		keys, err := first()
		if err == nil && (keys == nil || len(keys) > most) {
			return byTime(most)
		}
		return keys, err
	}
}

// byTime makes Postgres read an archive's passages in the order of their times, through the index passages_archive.
const byTime = wordindex.ByIndexes + `, set_config('enable_sort', 'off', true)`

// keysOf returns the keys of at most most passages that pass a filter. It reads the index passages_tags if the query
// has tags, and else passages_archive.
func (s *Store) keysOf(ctx context.Context, a searchedArchives, q Query, f rank.Filter, most int) ([]int64, error) {
	args := pgx.StrictNamedArgs{"most": most}
	maps.Copy(args, f.Args)
	var from string
	settings := rank.ByArrayIndex
	if tags := a.ownedTags(q); len(tags) > 0 {
		args["owned"] = tags
		from = `(
			SELECT * FROM passages r
			WHERE r.org = @org::oid AND owned_tags(r.archive_key, r.tags) && @owned AND r.tags <> '{}' OFFSET 0)`
	} else {
		settings, from = byTime, `unnest(@archives::bigint[]) a (archive) CROSS JOIN LATERAL (
			SELECT * FROM passages r WHERE r.org = @org AND r.archive_key = a.archive`+a.times(q, args)+`
			ORDER BY r.happened_at, r.key OFFSET 0)`
	}
	var keys []int64
	var batch pgx.Batch
	batch.Queue(settings)
	batch.Queue(`SELECT r.key FROM `+from+` r WHERE `+f.Rows+` LIMIT @most`, args).Query(func(rows pgx.Rows) (err error) {
		keys, err = pgx.AppendRows([]int64{}, rows, pgx.RowTo[int64])
		return err
	})
	return keys, db.Error(s.db.SendBatch(ctx, &batch).Close())
}

// ownedTags pairs archives and tags as the index passages_tags stores them. If a passage needs all tags, the first tag
// is enough.
func (a searchedArchives) ownedTags(q Query) (owned []string) {
	tags := q.Tags
	if q.Match == All {
		tags = tags[:min(len(tags), 1)]
	}
	if len(tags) == 0 {
		tags = a.narrowed.tags
	}
	for _, archive := range a.archives {
		for _, tag := range tags {
			owned = append(owned, fmt.Sprint(archive, " ", tag))
		}
	}
	return owned
}

// times returns the condition that a passage r happened when the query and its filter say, and adds its arguments to
// args.
func (a searchedArchives) times(q Query, args pgx.StrictNamedArgs) string {
	where := q.times("r", args)
	if a.narrowed.start != nil {
		args["narrowed_start"] = *a.narrowed.start
		where += ` AND r.happened_at >= @narrowed_start`
	}
	if a.narrowed.end != nil {
		args["narrowed_end"] = *a.narrowed.end
		where += ` AND r.happened_at <= @narrowed_end`
	}
	return where
}

// wideWays is how many passages several ways to find them may find each, in times of how many both may find.
const wideWays = 4

// byValues returns the keys of all passages that pass the filter, and maybe of others, by the values in their metadata.
// It returns nil if more than most have them. For a minute it then says so without looking.
func (s *Store) byValues(ctx context.Context, a searchedArchives, most int) (keys []int64, err error) {
	args := pgx.StrictNamedArgs{"org": a.org, "archives": a.archives}
	ways, limit := a.narrowed.Indexed(args), most
	if len(ways) > 1 {
		limit = wideWays * most
	}
	args["most"] = limit + 1
	asked := fmt.Sprintf("%q %#v", ways, args)
	if s.wide.has(asked) {
		return nil, nil
	}
	found := make([][]int64, len(ways))
	var batch pgx.Batch
	for _, grams := range []bool{false, true} {
		settings, sql, used := wordindex.ByIndexes, valuesSQL(ways, grams), pgx.StrictNamedArgs{}
		if sql == "" {
			continue
		}
		if grams {
			settings = byGrams
		}
		for _, name := range names.FindAllString(sql, -1) {
			used[name[1:]] = args[name[1:]]
		}
		batch.Queue(settings)
		batch.Queue(sql, used).Query(func(rows pgx.Rows) error {
			var way int
			var some []int64
			_, err := pgx.ForEachRow(rows, []any{&way, &some}, func() error {
				found[way], some = append(found[way], some...), nil
				return nil
			})
			return err
		})
	}
	if err := s.db.SendBatch(ctx, &batch).Close(); err != nil {
		return nil, db.Error(err)
	}
	for _, some := range found {
		if len(some) > limit {
			continue
		}
		slices.Sort(some)
		if some = slices.Compact(some); keys == nil {
			keys = append([]int64{}, some...)
			continue
		}
		keys = slices.DeleteFunc(keys, func(key int64) bool {
			_, ok := slices.BinarySearch(some, key)
			return !ok
		})
	}
	if keys == nil || len(keys) > most {
		s.wide.add(asked)
		return nil, nil
	}
	return keys, nil
}

// byGrams makes Postgres read values through the index passage_values_grams.
const byGrams = `
	SELECT set_config('enable_bitmapscan', 'on', true), set_config('enable_indexscan', 'off', true),
	       set_config('enable_indexonlyscan', 'off', true)`

// names matches the names of arguments.
var names = regexp.MustCompile(`@[a-z]+(_\d+)?`)

// valuesSQL returns a statement that reads the keys of the passages that each way finds, at most @most of a condition:
// of those that the index of parts of texts answers, or of the others. It is empty if there are none of them.
// Passages with too many values to be stored are among the others.
func valuesSQL(ways []filter.Indexed, grams bool) string {
	var all []string
	for i, way := range ways {
		var parts []string
		if !grams {
			way = append(filter.Indexed{{SQL: `v.path = 0 AND v.text = ''`}}, way...)
		}
		for _, c := range way {
			if grams == (c.Grams != nil) {
				parts = append(parts, `(`+conditionSQL(c)+` LIMIT @most)`)
			}
		}
		if parts != nil {
			all = append(all, fmt.Sprintf(`
				SELECT %d AS way, array_agg(found.passage_key) AS keys
				FROM unnest(@archives::bigint[]) a (archive) CROSS JOIN LATERAL (%s) found`, i,
				strings.Join(parts, ` UNION ALL`)))
		}
	}
	return strings.Join(all, ` UNION ALL`)
}

// conditionSQL returns a query for the passages of the archive a.archive with a value that meets a condition.
func conditionSQL(c filter.Condition) string {
	from, owned := `passage_values v`, `v.org = @org AND v.archive_key = a.archive`
	if c.Each != "" {
		from = c.Each + ` AS one (value) CROSS JOIN LATERAL (
			SELECT v.passage_key FROM passage_values v WHERE ` + owned + ` AND ` + c.SQL + ` LIMIT @most) v`
		return `SELECT v.passage_key FROM ` + from
	}
	if c.Grams != nil { // no other index fits
		owned = fmt.Sprintf(`v.org = @org::oid AND v.archive_key + 0 = a.archive
			AND value_grams(v.archive_key, v.path, v.text) @> value_grams(a.archive, %s, %s)`, c.Grams[0], c.Grams[1])
	}
	return `SELECT v.passage_key FROM ` + from + ` WHERE ` + owned + ` AND ` + c.SQL
}
