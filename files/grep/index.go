package grep

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Sizes of the index.
const (
	maxUnitBytes  = SegmentBytes + SegmentBytes/4 // small texts share a unit up to this size
	maxBlockChars = 64 << 20                      // per block, unless it holds a single larger text
	// A larger text is not indexed, because its block would not fit in memory.
	maxTextChars      = 256 << 20
	defaultIndexChars = 8 << 20 // less text is scanned fast enough without an index
	maxBlockFiles     = 20_000
)

// UpdateIndex indexes new text in all folders with at least IndexChars of it. It returns how many blocks it made.
// Several servers may call it at once; only one of them works on a folder.
func (s *Searcher) UpdateIndex(ctx context.Context, d db.DB) (blocks int, err error) {
	due, err := db.All[folder](ctx, d, `
		SELECT org, folder_key FROM files
		WHERE generation > 0 AND gram_generation <> generation AND chars <= $2
		GROUP BY org, folder_key HAVING sum(chars) >= $1
		ORDER BY folder_key`, s.IndexChars, int64(maxTextChars))
	if err != nil {
		return 0, fmt.Errorf("find text to index: %w", err)
	}
	return s.buildBlocks(ctx, d, due)
}

// PruneIndex rebuilds blocks in which more than half belongs to deleted or replaced texts. It returns how many blocks
// it made.
func (s *Searcher) PruneIndex(ctx context.Context, d db.DB) (blocks int, err error) {
	due, err := db.All[folder](ctx, d, `
		SELECT b.org, b.folder_key FROM gram_blocks b
		LEFT JOIN gram_units u ON u.org = b.org AND u.block_key = b.key
		LEFT JOIN files f ON f.org = u.org AND f.key = u.file_key AND f.generation = u.generation
		GROUP BY b.org, b.key HAVING count(f.key) * 2 < b.parts
		ORDER BY b.key`)
	if err != nil {
		return 0, fmt.Errorf("find stale blocks of the index: %w", err)
	}
	return s.buildBlocks(ctx, d, due)
}

// buildBlocks builds blocks of each folder until none is due.
func (s *Searcher) buildBlocks(ctx context.Context, d db.DB, due []folder) (blocks int, err error) {
	for len(due) > 0 {
		built, err := s.buildBlock(ctx, d, due[0])
		switch {
		case err != nil:
			return blocks, fmt.Errorf("index the text of folder %d: %w", due[0].Key, err)
		case built:
			blocks++
		default:
			due = due[1:]
		}
	}
	return blocks, nil
}

// folder is a folder with text to index.
type folder struct {
	Org db.Org `db:"org"`
	Key int64  `db:"folder_key"`
}

// buildBlock builds one block of a folder in one transaction, from new texts and from blocks that it replaces. It
// builds none if another server works on the folder, or nothing is due.
func (s *Searcher) buildBlock(ctx context.Context, d db.DB, f folder) (built bool, err error) {
	err = db.Tx(ctx, d, func(tx pgx.Tx) error {
		built = false
		locked, err := db.One[bool](ctx, tx, `SELECT pg_try_advisory_xact_lock(hashtextextended('grams', $1))`, f.Key)
		if err != nil || !locked {
			return err
		}
		todo, err := s.plannedBlock(ctx, tx, f)
		if err != nil || len(todo.texts)+len(todo.replaced) == 0 {
			return err
		}
		block, err := readBlock(ctx, tx, f, todo.texts)
		if err != nil {
			return err
		}
		built = true
		return commitBlock(ctx, tx, f, todo, block)
	})
	if errors.Is(err, db.ErrNotFound) { // the folder was deleted
		return false, nil
	}
	return built && err == nil, err
}

// blockPlan has the texts for a new block, and the keys of the blocks that it replaces.
type blockPlan struct {
	texts    []text
	replaced []int64
}

// text is the text of one generation of a file.
type text struct {
	Key        int64 `db:"key"`
	Generation int   `db:"generation"`
	Chars      int64 `db:"chars"`
}

// plannedBlock plans a block. It takes new texts up to the size of a block, then blocks that are stale or no larger
// than the texts planned so far. A folder that grows in small steps therefore has few blocks, and a text is indexed
// only a few times.
func (s *Searcher) plannedBlock(ctx context.Context, tx pgx.Tx, f folder) (blockPlan, error) {
	texts, err := db.All[text](ctx, tx, `
		SELECT key, generation, chars FROM files
		WHERE org = $1 AND folder_key = $2 AND generation > 0 AND gram_generation <> generation AND chars <= $3
		ORDER BY key LIMIT $4`, f.Org, f.Key, int64(maxTextChars), maxBlockFiles)
	if err != nil {
		return blockPlan{}, err
	}
	var todo blockPlan
	var chars, all int64
	for _, t := range texts {
		all += t.Chars
		if chars == 0 || chars+t.Chars <= maxBlockChars {
			todo.texts, chars = append(todo.texts, t), chars+t.Chars
		}
	}
	if all < s.IndexChars && len(texts) < maxBlockFiles {
		todo.texts, chars = nil, 0
	}
	return todo, todo.addBlocks(ctx, tx, f, chars)
}

// addBlocks adds blocks to replace, and their current texts, to a plan that has chars characters already.
func (p *blockPlan) addBlocks(ctx context.Context, tx pgx.Tx, f folder, chars int64) error {
	type block struct {
		Key     int64 `db:"key"`
		Parts   int   `db:"parts"`   // files in its units, including deleted ones
		Current int   `db:"current"` // number of these files that still have the same text
		Chars   int64 `db:"chars"`   // of the current files
	}
	blocks, err := db.All[block](ctx, tx, `
		SELECT b.key, b.parts, count(f.key) AS current,
		       coalesce((
				SELECT sum(l.chars) FROM files l WHERE l.org = $1 AND l.key = ANY (array_agg(DISTINCT f.key))
		       ), 0)::bigint AS chars
		FROM gram_blocks b
		LEFT JOIN gram_units u ON u.org = b.org AND u.block_key = b.key
		LEFT JOIN files f ON f.org = u.org AND f.key = u.file_key AND f.generation = u.generation
		WHERE b.org = $1 AND b.folder_key = $2
		GROUP BY b.org, b.key ORDER BY chars, b.key`, f.Org, f.Key)
	if err != nil {
		return err
	}
	for _, b := range blocks {
		stale := b.Current*2 < b.Parts
		if (stale || b.Chars <= chars) && chars+b.Chars <= maxBlockChars {
			p.replaced, chars = append(p.replaced, b.Key), chars+b.Chars
		}
	}
	if len(p.replaced) == 0 {
		return nil
	}
	texts, err := db.All[text](ctx, tx, `
		SELECT DISTINCT f.key, f.generation, f.chars
		FROM gram_units u JOIN files f ON f.org = u.org AND f.key = u.file_key AND f.generation = u.generation
		WHERE u.org = $1 AND u.block_key = ANY ($2) ORDER BY f.key`, f.Org, p.replaced)
	p.texts = append(p.texts, texts...)
	return err
}

// unit says which segments of a file are in a unit.
type unit struct {
	number     int
	text       text
	first, end int
}

// block is a block that is being built.
type block struct {
	sets  []*gramSet // one per unit
	units []unit
	bytes int // bytes in the last unit
}

// readBlock reads texts and builds a block from them.
func readBlock(ctx context.Context, tx pgx.Tx, f folder, texts []text) (*block, error) {
	spans := make([]span, len(texts))
	for i, t := range texts {
		spans[i] = span{file: &file{Key: t.Key, Generation: t.Generation}, end: maxOrdinal}
	}
	b := &block{}
	read := segmentQuery{db: tx, org: f.Org, sql: byOrdinals, spans: spans}
	err := read.each(ctx, func(i int, segments iter.Seq2[Segment, error]) error { return b.add(texts[i], segments) })
	return b, err
}

// add adds a text. The segments of a long line stay in one unit, so that a match across them is found.
func (b *block) add(t text, segments iter.Seq2[Segment, error]) error {
	for part, err := range wholeLines(segments) {
		if err != nil {
			return err
		}
		if len(b.sets) == 0 || b.bytes+len(part.text) > maxUnitBytes {
			b.sets, b.bytes = append(b.sets, new(gramSet)), 0
		}
		number := len(b.sets) - 1
		b.sets[number].add(part.text)
		b.bytes += len(part.text)
		if n := len(b.units) - 1; n >= 0 && b.units[n].number == number && b.units[n].text.Key == t.Key {
			b.units[n].end = part.end
		} else {
			b.units = append(b.units, unit{number, t, part.first, part.end})
		}
	}
	return nil
}

// commitBlock stores a block in place of the blocks that it replaces, and marks its files as indexed. It leaves out
// files that were deleted, or got another text, since they were read. It locks files, in the order of their keys,
// before the block's folder.
func commitBlock(ctx context.Context, tx pgx.Tx, f folder, todo blockPlan, b *block) error {
	keys, generations := make([]int64, len(todo.texts)), make([]int, len(todo.texts))
	for i, t := range todo.texts {
		keys[i], generations[i] = t.Key, t.Generation
	}
	current, err := db.All[int64](ctx, tx, `
		SELECT f.key FROM files f
		JOIN unnest($2::bigint[], $3::int[]) AS n (key, generation) ON n.key = f.key AND n.generation = f.generation
		WHERE f.org = $1 ORDER BY f.key FOR NO KEY UPDATE OF f`, f.Org, keys, generations)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `
		UPDATE files SET gram_generation = generation
		WHERE org = $1 AND key = ANY ($2) AND gram_generation <> generation`, f.Org, current); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `
		DELETE FROM gram_blocks WHERE org = $1 AND key = ANY ($2)`, f.Org, todo.replaced); err != nil {
		return err
	}
	units := slices.DeleteFunc(b.units, func(u unit) bool {
		_, found := slices.BinarySearch(current, u.text.Key)
		return !found
	})
	if len(units) == 0 {
		return nil
	}
	key, err := db.One[int64](ctx, tx, `
		INSERT INTO gram_blocks (org, folder_key, units, parts, bits) VALUES ($1, $2, $3, $4, $5) RETURNING key`,
		f.Org, f.Key, len(b.sets), len(units), gramRows(b.sets))
	if err != nil {
		return err
	}
	_, err = tx.CopyFrom(ctx, pgx.Identifier{"gram_units"},
		[]string{"org", "block_key", "unit", "file_key", "generation", "first_ordinal", "end_ordinal"},
		pgx.CopyFromSlice(len(units), func(i int) ([]any, error) {
			u := units[i]
			return []any{f.Org, key, u.number, u.text.Key, u.text.Generation, u.first, u.end}, nil
		}))
	return err
}
