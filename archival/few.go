package archival

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/rank"
	"github.com/loci-memory/loci/embed/wordindex"
)

// few returns rank.Filter.Few for a query: a function that reads the keys of the passages with the query's tags, times
// and filter. When there are few keys, both arms of the search share one read. few returns nil for a query without any
// of these.
func (s *Store) few(ctx context.Context, a searchedArchives, q Query, f rank.Filter) func(most int) ([]int64, error) {
	if len(q.Tags) == 0 && q.Start == nil && q.End == nil && a.narrowed.Empty() {
		return nil
	}
	if len(a.archives)*max(len(q.Tags), len(a.narrowed.tags), len(a.narrowed.objects), 1) > rank.MaxOwners {
		return nil
	}
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

// byTime makes Postgres read an archive's passages in the order of their times, through the index passages_archive.
const byTime = wordindex.ByIndexes + `, set_config('enable_sort', 'off', true)`

// keysOf returns the keys of at most most passages that pass a filter. It reads the index passages_metadata if each
// must have something in its metadata, passages_tags if the query has tags, and else passages_archive.
func (s *Store) keysOf(ctx context.Context, a searchedArchives, q Query, f rank.Filter, most int) ([]int64, error) {
	args := pgx.StrictNamedArgs{"most": most}
	maps.Copy(args, f.Args)
	var from string
	settings := rank.ByArrayIndex
	switch tags := a.ownedTags(q); {
	case a.narrowed.objects != nil:
		args["owned"] = a.narrowed.ownedObjects(a.archives)
		from = `unnest(@owned::text[]) o (object) CROSS JOIN LATERAL (
			SELECT * FROM passages r
			WHERE r.org = @org::oid AND owned_metadata(r.archive_key, r.metadata) @> o.object::jsonb AND r.metadata <> '{}'
			OFFSET 0)`
	case len(tags) > 0:
		args["owned"] = tags
		from = `(
			SELECT * FROM passages r
			WHERE r.org = @org::oid AND owned_tags(r.archive_key, r.tags) && @owned AND r.tags <> '{}' OFFSET 0)`
	default:
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
