package files

import (
	"context"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Sizes of the index of n-grams.
const (
	gramUnitBytes  = SegmentBytes + SegmentBytes/4 // small texts share a unit up to this size
	gramBlockChars = 64 << 20                      // of text that one step reads, but for a single larger one
	gramTextChars  = 256 << 20                     // a larger text stays out of the index: its block would not fit in memory
	gramDueChars   = 8 << 20                       // so much text of a folder may be out of the index: a scan of it takes no time
)

// IndexText puts text that is new into the index that grep_files narrows its search by, in all folders with enough of it for that to
// pay, and returns how many blocks it made. Several servers may do this at once: each folder is worked on by one.
func (s *Store) IndexText(ctx context.Context) (blocks int, err error) {
	due, err := db.All[gramFolder](ctx, s.db, `
		SELECT org, folder_key FROM files
		WHERE generation > 0 AND gram_generation <> generation AND chars <= $2
		GROUP BY org, folder_key HAVING sum(chars) >= $1
		ORDER BY folder_key`, s.gramDue, int64(gramTextChars))
	if err != nil {
		return 0, fmt.Errorf("find text to index: %w", err)
	}
	return s.gramSteps(ctx, due)
}

// PruneIndex makes the blocks of the index anew that are mostly of files which are gone, and returns how many steps that took.
func (s *Store) PruneIndex(ctx context.Context) (steps int, err error) {
	due, err := db.All[gramFolder](ctx, s.db, `
		SELECT b.org, b.folder_key FROM gram_blocks b JOIN gram_units u ON u.block_key = b.key
		LEFT JOIN files f ON f.key = u.file_key AND f.generation = u.generation
		GROUP BY b.key HAVING count(f.key) * 2 < count(*)
		ORDER BY b.key`)
	if err != nil {
		return 0, fmt.Errorf("find what is stale in the index: %w", err)
	}
	return s.gramSteps(ctx, due)
}

// gramSteps makes blocks of each folder as long as some are due.
func (s *Store) gramSteps(ctx context.Context, due []gramFolder) (steps int, err error) {
	for _, folder := range due {
		for {
			made, err := s.gramStep(ctx, folder)
			if err != nil {
				return steps, fmt.Errorf("index the text of folder %d: %w", folder.Key, err)
			}
			if !made {
				break
			}
			steps++
		}
	}
	return steps, nil
}

// gramFolder is a folder whose text is to be indexed.
type gramFolder struct {
	Org db.Org `db:"org"`
	Key int64  `db:"folder_key"`
}

// gramStep makes one block of a folder, of text that is in none and of what lives in blocks that are not worth keeping, in one commit.
// It makes none if another server is at it, or nothing is due.
func (s *Store) gramStep(ctx context.Context, folder gramFolder) (made bool, err error) {
	err = db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		in := s.With(tx)
		mine, err := db.One[bool](ctx, tx, `SELECT pg_try_advisory_xact_lock(hashtextextended('grams', $1))`, folder.Key)
		if err != nil || !mine {
			return err
		}
		work, err := in.gramWork(ctx, folder)
		if err != nil || work.empty() {
			return err
		}
		block, err := in.gramRead(ctx, folder, work.texts)
		if err != nil {
			return err
		}
		made = true
		return in.gramCommit(ctx, folder, work, block)
	})
	return made && err == nil, ignoreNotFound(err) // the folder may be gone
}

// gramWork is what a step does: texts that go into a new block, and the blocks it takes the place of.
type gramWork struct {
	texts   []gramText
	retired []int64
}

func (w gramWork) empty() bool { return len(w.texts)+len(w.retired) == 0 }

type gramText struct {
	Key        int64 `db:"key"`
	Generation int   `db:"generation"`
	Chars      int64 `db:"chars"`
}

// gramKept is a block with what lives of it.
type gramKept struct {
	Key   int64 `db:"key"`
	Parts int   `db:"parts"` // of files, in its units
	Live  int   `db:"live"`
	Chars int64 `db:"chars"` // of the files that live
}

// gramWork takes new texts up to a block's size, and then small blocks as long as they are no larger than what is taken already: so a
// folder that grows bit by bit has few blocks, and a text is indexed only a few times.
func (s *Store) gramWork(ctx context.Context, folder gramFolder) (gramWork, error) {
	texts, err := db.All[gramText](ctx, s.db, `
		SELECT key, generation, chars FROM files
		WHERE org = $1 AND folder_key = $2 AND generation > 0 AND gram_generation <> generation AND chars <= $3
		ORDER BY key LIMIT $4`, folder.Org, folder.Key, int64(gramTextChars), gramStepFiles)
	if err != nil {
		return gramWork{}, err
	}
	kept, err := db.All[gramKept](ctx, s.db, `
		SELECT b.key, count(*) AS parts, count(f.key) AS live,
		       coalesce((SELECT sum(l.chars) FROM files l WHERE l.key = ANY (array_agg(DISTINCT f.key))), 0)::bigint AS chars
		FROM gram_blocks b JOIN gram_units u ON u.block_key = b.key
		LEFT JOIN files f ON f.key = u.file_key AND f.generation = u.generation
		WHERE b.org = $1 AND b.folder_key = $2
		GROUP BY b.key ORDER BY chars, b.key`, folder.Org, folder.Key)
	if err != nil {
		return gramWork{}, err
	}
	var work gramWork
	var chars, all int64
	for _, t := range texts {
		all += t.Chars
		if chars == 0 || chars+t.Chars <= gramBlockChars {
			work.texts, chars = append(work.texts, t), chars+t.Chars
		}
	}
	if all < s.gramDue && len(texts) < gramStepFiles {
		work.texts, chars = nil, 0
	}
	for _, b := range kept {
		stale := b.Live*2 < b.Parts
		if (stale || b.Chars <= chars) && chars+b.Chars <= gramBlockChars {
			work.retired, chars = append(work.retired, b.Key), chars+b.Chars
		}
	}
	return work, s.gramRevive(ctx, folder, &work)
}

// gramStepFiles is how many files go into a block at most.
const gramStepFiles = 20_000

// gramRevive adds the texts that live in retired blocks.
func (s *Store) gramRevive(ctx context.Context, folder gramFolder, work *gramWork) error {
	if len(work.retired) == 0 {
		return nil
	}
	texts, err := db.All[gramText](ctx, s.db, `
		SELECT DISTINCT f.key, f.generation, f.chars FROM gram_units u JOIN files f ON f.key = u.file_key AND f.generation = u.generation
		WHERE f.org = $1 AND u.block_key = ANY ($2) ORDER BY f.key`, folder.Org, work.retired)
	work.texts = append(work.texts, texts...)
	return err
}

// gramUnit is where the segments of a file are in a block.
type gramUnit struct {
	unit       int
	text       gramText
	first, end int
}

// gramBlock collects units.
type gramBlock struct {
	sets  []*gramSet
	units []gramUnit
	bytes int // in the last unit
}

// gramRead reads texts and makes a block of them.
func (s *Store) gramRead(ctx context.Context, folder gramFolder, texts []gramText) (*gramBlock, error) {
	stretches := make([]stretch, len(texts))
	for i, t := range texts {
		stretches[i] = stretch{file: &textFile{Key: t.Key, Generation: t.Generation}, end: maxOrdinal}
	}
	b := &gramBlock{}
	err := readStretches(ctx, s.db, folder.Org, bySegments, stretches, func(i int, segments iter.Seq2[Segment, error]) error {
		return b.add(texts[i], segments)
	})
	return b, err
}

// add takes a file. The segments of a line longer than one stay together in a unit: a pattern that stretches them is found in it.
func (b *gramBlock) add(t gramText, segments iter.Seq2[Segment, error]) error {
	for part, err := range blocks(segments) {
		if err != nil {
			return err
		}
		if len(b.sets) == 0 || b.bytes+len(part.text) > gramUnitBytes {
			b.sets, b.bytes = append(b.sets, new(gramSet)), 0
		}
		unit := len(b.sets) - 1
		b.sets[unit].add(part.text)
		b.bytes += len(part.text)
		if n := len(b.units) - 1; n >= 0 && b.units[n].unit == unit && b.units[n].text.Key == t.Key {
			b.units[n].end = part.end
		} else {
			b.units = append(b.units, gramUnit{unit, t, part.first, part.end})
		}
	}
	return nil
}

// gramCommit writes a block in the place of those retired, and marks its files. A file that has another text by now is left out. Files
// are locked before the folder that the block belongs to, in the order of their keys.
func (s *Store) gramCommit(ctx context.Context, folder gramFolder, work gramWork, block *gramBlock) error {
	keys, generations := make([]int64, len(work.texts)), make([]int, len(work.texts))
	for i, t := range work.texts {
		keys[i], generations[i] = t.Key, t.Generation
	}
	if _, err := s.db.Exec(ctx, `
		WITH read AS (
			SELECT f.key FROM files f JOIN unnest($2::bigint[], $3::int[]) AS n (key, generation) ON n.key = f.key AND n.generation = f.generation
			WHERE f.org = $1 ORDER BY f.key FOR NO KEY UPDATE OF f
		)
		UPDATE files SET gram_generation = generation WHERE key IN (SELECT key FROM read) AND gram_generation <> generation`,
		folder.Org, keys, generations); err != nil {
		return err
	}
	if _, err := s.db.Exec(ctx, `DELETE FROM gram_blocks WHERE org = $1 AND key = ANY ($2)`, folder.Org, work.retired); err != nil {
		return err
	}
	if len(block.sets) == 0 {
		return nil
	}
	key, err := db.One[int64](ctx, s.db, `
		INSERT INTO gram_blocks (org, folder_key, units, bits) VALUES ($1, $2, $3, $4) RETURNING key`,
		folder.Org, folder.Key, len(block.sets), gramRows(block.sets))
	if err != nil {
		return err
	}
	_, err = s.db.CopyFrom(ctx, pgx.Identifier{"gram_units"},
		[]string{"block_key", "unit", "file_key", "generation", "first_ordinal", "end_ordinal"},
		pgx.CopyFromSlice(len(block.units), func(i int) ([]any, error) {
			u := block.units[i]
			return []any{key, u.unit, u.text.Key, u.text.Generation, u.first, u.end}, nil
		}))
	return err
}
