package files

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// plan tells what is to be searched, in the order of the result: files by name, and their lines in order. Of what is in the index, that
// is only what may match.
func (g *grep) plan(ctx context.Context, tx pgx.Tx) ([]stretch, error) {
	in := g.store.With(tx)
	if g.q.Include != "" {
		return g.planIncluded(ctx, in)
	}
	type counts struct {
		Attached int   `db:"attached"`
		Ready    int   `db:"ready"`
		Chars    int64 `db:"chars"`
	}
	n, err := db.One[counts](ctx, tx, `
		SELECT count(*) AS attached, count(*) FILTER (WHERE f.generation > 0) AS ready, coalesce(sum(f.chars), 0)::bigint AS chars
		FROM agent_folders a JOIN files f ON f.folder_key = a.folder_key AND f.replaces IS NULL
		WHERE a.org = $1 AND f.org = $1 AND a.agent_id = $2`, g.org, g.agentID)
	if err != nil {
		return nil, err
	}
	g.result.Attached, g.result.Searched, g.result.Waiting = n.Attached, n.Ready, n.Attached-n.Ready
	if g.pattern.grams == nil || n.Chars < g.store.gramDue {
		return g.planAll(ctx, in)
	}
	stretches, err := in.gramStretches(ctx, g.org, g.agentID, g.pattern.grams)
	if err != nil {
		return nil, err
	}
	rest, err := db.All[textFile](ctx, tx, textRows+` AND f.generation > 0 AND f.gram_generation <> f.generation`, g.org, g.agentID)
	if err != nil {
		return nil, err
	}
	return in.planFiles(ctx, g.org, stretches, rest)
}

func (g *grep) planAll(ctx context.Context, in *Store) ([]stretch, error) {
	list, err := db.All[textFile](ctx, in.db, textRows+` AND f.generation > 0`, g.org, g.agentID)
	if err != nil {
		return nil, err
	}
	return in.planFiles(ctx, g.org, nil, list)
}

// planIncluded narrows the search to the files that are included.
func (g *grep) planIncluded(ctx context.Context, in *Store) ([]stretch, error) {
	t, err := in.texts(ctx, g.org, g.agentID, g.q.Include)
	if err != nil {
		return nil, err
	}
	g.result.Attached, g.result.Searched, g.result.Waiting = t.attached, len(t.ready), t.waiting
	var chars int64
	indexed := make(map[int64]bool, len(t.ready))
	var rest []textFile
	for _, f := range t.ready {
		chars += f.Chars
		if indexed[f.Key] = f.Indexed; !f.Indexed {
			rest = append(rest, f)
		}
	}
	if g.pattern.grams == nil || chars < g.store.gramDue {
		return in.planFiles(ctx, g.org, nil, t.ready)
	}
	stretches, err := in.gramStretches(ctx, g.org, g.agentID, g.pattern.grams)
	if err != nil {
		return nil, err
	}
	stretches = slices.DeleteFunc(stretches, func(in stretch) bool { return !indexed[in.file.Key] })
	return in.planFiles(ctx, g.org, stretches, rest)
}

// textRows are an agent's attached files. The organization is $1, the agent $2.
const textRows = `
	SELECT f.key, f.id, d.name || '/' || f.name AS name, f.generation, f.chars, f.gram_generation = f.generation AS indexed
	FROM agent_folders a JOIN folders d ON d.key = a.folder_key JOIN files f ON f.folder_key = a.folder_key AND f.replaces IS NULL
	WHERE a.org = $1 AND f.org = $1 AND a.agent_id = $2`

// longChars is the text of a file from which it is searched in parts of longSegments segments.
const (
	longChars    = 8 << 20
	longSegments = 64
)

// planFiles adds whole files to stretches, and puts all in order.
func (s *Store) planFiles(ctx context.Context, org db.Org, stretches []stretch, list []textFile) ([]stretch, error) {
	cuts, err := s.cuts(ctx, org, list)
	if err != nil {
		return nil, err
	}
	for i := range list {
		f := &list[i]
		first, chars := 0, f.Chars/int64(len(cuts[f.Key])+1)
		for _, end := range cuts[f.Key] {
			stretches, first = append(stretches, stretch{f, first, end, chars}), end
		}
		stretches = append(stretches, stretch{f, first, maxOrdinal, chars})
	}
	slices.SortFunc(stretches, func(a, b stretch) int {
		if c := cmp.Or(cmp.Compare(a.file.Name, b.file.Name), cmp.Compare(a.file.Key, b.file.Key)); c != 0 {
			return c
		}
		return cmp.Compare(a.first, b.first)
	})
	return stretches, nil
}

// cuts are the places where long files may be cut between lines, every longSegments segments.
func (s *Store) cuts(ctx context.Context, org db.Org, list []textFile) (map[int64][]int, error) {
	var keys []int64
	var generations []int
	for _, f := range list {
		if f.Chars > longChars {
			keys, generations = append(keys, f.Key), append(generations, f.Generation)
		}
	}
	cuts := make(map[int64][]int, len(keys))
	if len(keys) == 0 {
		return cuts, nil
	}
	type cut struct {
		Key     int64 `db:"file_key"`
		Ordinal int   `db:"ordinal"`
	}
	rows, err := db.All[cut](ctx, s.db, `
		SELECT g.file_key, g.ordinal
		FROM unnest($2::bigint[], $3::int[]) AS n (key, generation)
		JOIN file_segments g ON g.org = $1 AND g.file_key = n.key AND g.generation = n.generation
		WHERE g.ordinal > 0 AND g.ordinal % $4 = 0 AND NOT g.continues
		ORDER BY g.file_key, g.ordinal`, org, keys, generations, longSegments)
	for _, c := range rows {
		cuts[c.Key] = append(cuts[c.Key], c.Ordinal)
	}
	return cuts, err
}

// gramStretches are the stretches of an agent's indexed files that may match.
func (s *Store) gramStretches(ctx context.Context, org db.Org, agentID string, q *gramQuery) ([]stretch, error) {
	blocks, units, err := s.gramUnits(ctx, org, agentID, q)
	if err != nil || len(blocks) == 0 {
		return nil, err
	}
	type row struct {
		textFile
		First int `db:"first_ordinal"`
		End   int `db:"end_ordinal"`
	}
	rows, err := db.All[row](ctx, s.db, `
		SELECT f.key, f.id, d.name || '/' || f.name AS name, f.generation, f.chars, true AS indexed, u.first_ordinal, u.end_ordinal
		FROM unnest($2::bigint[], $3::int[]) AS n (block, unit)
		JOIN gram_units u ON u.block_key = n.block AND u.unit = n.unit
		JOIN files f ON f.key = u.file_key AND f.generation = u.generation AND f.gram_generation = f.generation AND f.replaces IS NULL
		JOIN folders d ON d.key = f.folder_key
		WHERE f.org = $1`, org, blocks, units)
	stretches := make([]stretch, len(rows))
	for i := range rows {
		r := &rows[i]
		stretches[i] = stretch{&r.textFile, r.First, r.End, min(r.Chars, int64(r.End-r.First)*SegmentBytes)}
	}
	return stretches, err
}

// gramUnits are the units that may match, each as its block and its place there.
func (s *Store) gramUnits(ctx context.Context, org db.Org, agentID string, q *gramQuery) (blocks []int64, units []int, err error) {
	rows, err := s.db.Query(ctx, `
		SELECT b.key, n.place - 1, substring(b.bits FROM n.bucket * ((b.units + 7) / 8) + 1 FOR (b.units + 7) / 8)
		FROM agent_folders a JOIN gram_blocks b ON b.folder_key = a.folder_key
		CROSS JOIN unnest($3::int[]) WITH ORDINALITY AS n (bucket, place)
		WHERE a.org = $1 AND b.org = $1 AND a.agent_id = $2`, org, agentID, q.buckets)
	if err != nil {
		return nil, nil, err
	}
	byBlock := map[int64][][]byte{}
	var key int64
	var place int
	var bits []byte
	_, err = pgx.ForEachRow(rows, []any{&key, &place, &bits}, func() error {
		if byBlock[key] == nil {
			byBlock[key] = make([][]byte, len(q.buckets))
		}
		byBlock[key][place] = bits
		bits = nil
		return nil
	})
	for key, rows := range byBlock {
		unitsIn(q.units(rows), func(unit int) {
			blocks, units = append(blocks, key), append(units, unit)
		})
	}
	return blocks, units, err
}
