package archival

import (
	"context"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Limits of facets.
const (
	FacetRows   = 100_000 // passages that are counted; of more, the newest of each archive
	maxFacets   = 20      // fields of metadata, those of the most passages
	facetValues = 20      // values of a field, the most frequent
	facetBytes  = 200     // of a value; longer ones are left out
)

// Facets are counts of passages by what filters can ask of them.
type Facets struct {
	Passages int                `json:"passages" doc:"Those that were counted, at most 100,000."`
	Counts   map[string][]Count `json:"counts" doc:"By field: tags, day and metadata.…, the most frequent values first."`
}

// Count is how many passages have a value.
type Count struct {
	Value string `json:"value" doc:"A text, a number or a boolean, as text; a day as YYYY-MM-DD."`
	Count int    `json:"count"`
}

// Facets counts the passages that a query may see, whatever its Text, by tag, day and value of metadata. Days are in
// the query's Zone. It reads one statement. Errors are as for Search.
func (s *Store) Facets(ctx context.Context, org db.Org, q Query) (Facets, error) {
	out := Facets{Counts: map[string][]Count{}}
	narrowed, err := read(q.Filter, q.Zone)
	if err != nil {
		return out, err
	}
	q.Tags = tagFilter(q.Tags)
	if len(q.Tags) > maxSearchedTags {
		return out, db.Invalid("a search has %d tags; it may have at most %d", len(q.Tags), maxSearchedTags)
	}
	searched, err := s.searched(ctx, org, q)
	if err != nil {
		return out, err
	}
	searched.narrowed = narrowed
	f := searched.filter(q)
	zone := time.UTC
	if q.Zone != nil {
		zone = q.Zone
	}
	args := pgx.StrictNamedArgs{"most": FacetRows, "zone": zone.String(), "fields": maxFacets, "values": facetValues,
		"bytes": facetBytes}
	maps.Copy(args, f.Args)
	type row struct {
		Field string `db:"field"`
		Value string `db:"value"`
		Count int    `db:"count"`
	}
	rows, err := db.All[row](ctx, s.db, facetsSQL(f.Rows), args)
	for _, r := range rows {
		if r.Field == "" {
			out.Passages = r.Count
			continue
		}
		out.Counts[r.Field] = append(out.Counts[r.Field], Count{r.Value, r.Count})
	}
	return out, err
}

// facetsSQL returns the statement for the passages r that meet a condition. The row with an empty field has their
// number.
func facetsSQL(condition string) string {
	return `
		WITH counted AS MATERIALIZED (
			SELECT r.tags, r.metadata, r.happened_at FROM passages r
			WHERE ` + condition + `
			ORDER BY r.archive_key, r.happened_at DESC
			LIMIT @most
		), found AS (
			SELECT 'tags' AS field, tag AS value, count(*) AS count FROM counted CROSS JOIN unnest(tags) AS tag GROUP BY tag
			UNION ALL
			SELECT 'day', to_char(happened_at AT TIME ZONE @zone, 'YYYY-MM-DD'), count(*) FROM counted GROUP BY 2
			UNION ALL
			SELECT 'metadata.' || m.key, one.value #>> '{}', count(*)
			FROM counted CROSS JOIN jsonb_each(CASE jsonb_typeof(metadata) WHEN 'object' THEN metadata ELSE '{}' END) AS m
			CROSS JOIN jsonb_array_elements(
				CASE jsonb_typeof(m.value) WHEN 'array' THEN m.value ELSE jsonb_build_array(m.value) END) AS one
			WHERE jsonb_typeof(one.value) IN ('string', 'number', 'boolean') AND octet_length(one.value::text) <= @bytes
			  AND octet_length(m.key) <= @bytes
			GROUP BY 1, 2
		), placed AS (
			SELECT *, row_number() OVER (PARTITION BY field ORDER BY count DESC, value) AS place,
			       sum(count) OVER (PARTITION BY field) AS together
			FROM found
		), ranked AS (
			SELECT *, dense_rank() OVER (
				ORDER BY field NOT IN ('tags', 'day') DESC, together DESC, field) AS rank
			FROM placed
		)
		SELECT field, value, count FROM (
			SELECT '' AS field, '' AS value, count(*) AS count, 0 AS place FROM counted
			UNION ALL
			SELECT field, value, count, place FROM ranked
			WHERE place <= @values AND (field IN ('tags', 'day') OR rank <= @fields)
		) AS shown
		ORDER BY field, place`
}
