package wordindex

import "github.com/jackc/pgx/v5"

// Matched returns SQL for a FROM clause: a table with the columns key and lex. Its rows are the rows of x.Searched that
// Args names and that meet a condition on rows r. It also needs the argument @org. Its form makes Postgres look up each
// row by its key, whatever the statistics say.
func (x *Index) Matched(condition string) string {
	return x.sql(`(
		SELECT unnest(@matched::bigint[]) AS key
		UNION
		SELECT l.key
		FROM unnest(@loose_owners::bigint[], @loose_after::bigint[], @loose_until::bigint[]) AS s (owner, after, until)
		CROSS JOIN LATERAL (
			SELECT l.key FROM ROWS l
			WHERE l.org = @org AND l.OWNER = s.owner AND l.PLACE > s.after AND l.PLACE <= s.until
			ORDER BY l.PLACE
			OFFSET 0
		) l
	) m CROSS JOIN LATERAL (
		SELECT r.key, r.lex FROM (
			SELECT * FROM SEARCHED r WHERE r.org = @org AND r.key = m.key OFFSET 0
		) r
		WHERE `) + condition + `
		OFFSET 0
	) r`
}

// Args adds the arguments of Matched: the rows with the given keys, and the rows without a segment.
func (m *Match) Args(args pgx.StrictNamedArgs, keys []int64) {
	owners, after, until := make([]int64, len(m.loose)), make([]int64, len(m.loose)), make([]int64, len(m.loose))
	for i, s := range m.loose {
		owners[i], after[i], until[i] = s.Owner, s.After, s.Until
	}
	args["matched"], args["loose_owners"], args["loose_after"], args["loose_until"] = keys, owners, after, until
}
