package grep

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// file is an attached file.
type file struct {
	Key        int64  `db:"key"`
	ID         string `db:"id"`
	Name       string `db:"name"` // folder/name
	Generation int    `db:"generation"`
	Chars      int64  `db:"chars"`
	Indexed    bool   `db:"indexed"` // the n-gram index has its text
	Broken     bool   `db:"broken"`  // words may be broken by a hyphen
}

// attachedSQL selects an agent's attached files of all users. The organization is $1, the agent $2.
const attachedSQL = `
	SELECT f.key, f.id, d.name || '/' || f.name AS name, f.generation, f.chars,
	       f.gram_generation = f.generation AS indexed, f.media_type = 'application/pdf' AS broken
	FROM agent_folders a JOIN folders d ON d.org = a.org AND d.key = a.folder_key
	JOIN files f ON f.folder_key = a.folder_key AND f.replaces IS NULL
	WHERE a.org = $1 AND d.org = $1 AND f.org = $1 AND a.agent_id = $2`

// sees returns the condition that an attachment a is one whose files the query searches, as an end of a WHERE clause,
// and the statement's arguments: the organization, the agent, more, and its own.
func (s *search) sees(more ...any) (condition string, args []any) {
	args = append([]any{s.Org, s.AgentID}, more...)
	if s.Users.All() {
		return "", args
	}
	args = append(args, s.Users.User())
	return fmt.Sprintf(" AND (a.user_key IS NULL OR a.user_key = $%d)", len(args)), args
}

// plan returns the spans to search in the order of the result: files by name, and within each file by line. Of indexed
// files it returns only the spans that may match.
func (s *search) plan(ctx context.Context, tx pgx.Tx) ([]span, error) {
	if s.Include != nil {
		return s.planIncluded(ctx, tx)
	}
	chars, err := s.count(ctx, tx)
	if err != nil {
		return nil, err
	}
	condition := ` AND f.generation > 0`
	sees, args := s.sees()
	var spans []span
	if s.usesIndex(chars) {
		if spans, err = s.indexedSpans(ctx, tx); err != nil {
			return nil, err
		}
		condition += ` AND f.gram_generation <> f.generation`
	}
	files, err := db.All[file](ctx, tx, attachedSQL+condition+sees, args...)
	if err != nil {
		return nil, err
	}
	return s.ordered(ctx, tx, spans, files)
}

// usesIndex reports whether a search of so many characters uses the index.
func (s *search) usesIndex(chars int64) bool {
	return s.pattern(s.broken).grams != nil && chars >= s.IndexChars
}

// count counts the attached files, and returns their total number of characters.
func (s *search) count(ctx context.Context, tx pgx.Tx) (chars int64, err error) {
	type counts struct {
		Attached int   `db:"attached"`
		Ready    int   `db:"ready"`
		Chars    int64 `db:"chars"`
		Broken   bool  `db:"broken"`
	}
	sees, args := s.sees()
	n, err := db.One[counts](ctx, tx, `
		SELECT count(*) AS attached, count(*) FILTER (WHERE f.generation > 0) AS ready,
		       coalesce(sum(f.chars), 0)::bigint AS chars,
		       coalesce(bool_or(f.media_type = 'application/pdf'), false) AS broken
		FROM agent_folders a JOIN files f ON f.folder_key = a.folder_key AND f.replaces IS NULL
		WHERE a.org = $1 AND f.org = $1 AND a.agent_id = $2`+sees, args...)
	s.result.Attached, s.result.Searched, s.result.Waiting = n.Attached, n.Ready, n.Attached-n.Ready
	s.broken = n.Broken
	return n.Chars, err
}

// pattern returns the pattern for a file, or for the index: with broken words if the files may have them.
func (s *search) pattern(broken bool) *Pattern {
	if broken && s.Pattern.broken != nil {
		return s.Pattern.broken
	}
	return s.Pattern
}

// planIncluded plans a search of the files that Include accepts.
func (s *search) planIncluded(ctx context.Context, tx pgx.Tx) ([]span, error) {
	sees, args := s.sees()
	attached, err := db.All[file](ctx, tx, attachedSQL+sees, args...)
	if err != nil {
		return nil, err
	}
	included := slices.DeleteFunc(slices.Clone(attached), func(f file) bool { return !s.Include(f.Name) })
	ready := slices.DeleteFunc(slices.Clone(included), func(f file) bool { return f.Generation == 0 })
	s.result.Attached, s.result.Searched, s.result.Waiting = len(attached), len(ready), len(included)-len(ready)
	var chars int64
	indexed := make(map[int64]bool, len(ready))
	for _, f := range ready {
		chars += f.Chars
		indexed[f.Key] = f.Indexed
		s.broken = s.broken || f.Broken
	}
	if !s.usesIndex(chars) {
		return s.ordered(ctx, tx, nil, ready)
	}
	spans, err := s.indexedSpans(ctx, tx)
	if err != nil {
		return nil, err
	}
	spans = slices.DeleteFunc(spans, func(found span) bool { return !indexed[found.file.Key] })
	return s.ordered(ctx, tx, spans, slices.DeleteFunc(ready, func(f file) bool { return f.Indexed }))
}

const (
	longChars    = 8 << 20 // a file with more text is searched in several spans
	longSegments = 64      // about so many segments per span
)

// ordered adds spans for whole files, and sorts all spans by file name and position.
func (s *search) ordered(ctx context.Context, tx pgx.Tx, spans []span, files []file) ([]span, error) {
	cuts, err := s.cuts(ctx, tx, files)
	if err != nil {
		return nil, err
	}
	for i := range files {
		f := &files[i]
		first, chars := 0, f.Chars/int64(len(cuts[f.Key])+1)
		for _, end := range cuts[f.Key] {
			spans, first = append(spans, span{f, first, end, chars}), end
		}
		spans = append(spans, span{f, first, maxOrdinal, chars})
	}
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.file.Name, b.file.Name), cmp.Compare(a.file.Key, b.file.Key),
			cmp.Compare(a.first, b.first))
	})
	return spans, nil
}

// cuts maps file key → the ordinals at which a long file is cut, between lines, about every longSegments segments.
func (s *search) cuts(ctx context.Context, tx pgx.Tx, files []file) (map[int64][]int, error) {
	var keys []int64
	var generations []int
	for _, f := range files {
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
	rows, err := db.All[cut](ctx, tx, `
		SELECT g.file_key, g.ordinal
		FROM unnest($2::bigint[], $3::int[]) AS n (key, generation)
		JOIN file_segments g ON g.org = $1 AND g.file_key = n.key AND g.generation = n.generation
		WHERE g.ordinal > 0 AND g.ordinal % $4 = 0 AND NOT g.continues
		ORDER BY g.file_key, g.ordinal`, s.Org, keys, generations, longSegments)
	for _, c := range rows {
		cuts[c.Key] = append(cuts[c.Key], c.Ordinal)
	}
	return cuts, err
}

// indexedSpans returns the spans of the agent's indexed files that may match.
func (s *search) indexedSpans(ctx context.Context, tx pgx.Tx) ([]span, error) {
	blocks, units, err := s.candidates(ctx, tx)
	if err != nil || len(blocks) == 0 {
		return nil, err
	}
	type row struct {
		file
		First int `db:"first_ordinal"`
		End   int `db:"end_ordinal"`
	}
	rows, err := db.All[row](ctx, tx, `
		SELECT f.key, f.id, d.name || '/' || f.name AS name, f.generation, f.chars, true AS indexed,
		       f.media_type = 'application/pdf' AS broken, u.first_ordinal, u.end_ordinal
		FROM unnest($2::bigint[], $3::int[]) AS n (block, unit)
		JOIN gram_units u ON u.org = $1 AND u.block_key = n.block AND u.unit = n.unit
		JOIN files f ON f.org = u.org AND f.key = u.file_key AND f.generation = u.generation
		  AND f.gram_generation = f.generation AND f.replaces IS NULL
		JOIN folders d ON d.org = f.org AND d.key = f.folder_key AND d.deleted_at IS NULL
		WHERE f.org = $1`, s.Org, blocks, units)
	spans := make([]span, len(rows))
	for i, r := range rows {
		spans[i] = span{&r.file, r.First, r.End, min(r.Chars, int64(r.End-r.First)*SegmentBytes)}
	}
	return spans, err
}

// candidates returns the units that may match. A unit is given by the key of its block and its number in the block.
func (s *search) candidates(ctx context.Context, tx pgx.Tx) (blocks []int64, units []int, err error) {
	q := s.pattern(s.broken).grams
	sees, args := s.sees(q.buckets)
	rows, err := tx.Query(ctx, `
		SELECT b.key, n.place - 1, substring(b.bits FROM n.bucket * ((b.units + 7) / 8) + 1 FOR (b.units + 7) / 8)
		FROM agent_folders a JOIN gram_blocks b ON b.folder_key = a.folder_key
		CROSS JOIN unnest($3::int[]) WITH ORDINALITY AS n (bucket, place)
		WHERE a.org = $1 AND b.org = $1 AND a.agent_id = $2`+sees, args...)
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
		for unit := range setBits(q.units(rows)) {
			blocks, units = append(blocks, key), append(units, unit)
		}
	}
	return blocks, units, err
}
