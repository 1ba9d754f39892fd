package wordindex

import (
	"context"
	"encoding/binary"
	"sort"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// vocabulary is the terms of a segment, ascending: for each, three bytes with the term and two with the number of rows
// that have it, capped at what two bytes can hold.
type vocabulary []byte

const wordBytes = 5

// newVocabulary returns the vocabulary of sorted postings.
func newVocabulary(sorted []posting) (v vocabulary) {
	for i := 0; i < len(sorted); {
		term, from := sorted[i].term(), i
		for i < len(sorted) && sorted[i].term() == term {
			i++
		}
		v = append(v, byte(term>>16), byte(term>>8), byte(term)) //nolint:gosec // a term has 24 bits
		v = binary.BigEndian.AppendUint16(v, uint16(min(i-from, 1<<16-1)))
	}
	return v
}

// rows returns how many rows have a term.
func (v vocabulary) rows(term int32) int {
	n := len(v) / wordBytes
	termAt := func(i int) int32 {
		w := v[i*wordBytes:]
		return int32(w[0])<<16 | int32(w[1])<<8 | int32(w[2])
	}
	i := sort.Search(n, func(i int) bool { return termAt(i) >= term })
	if i == n || termAt(i) != term {
		return 0
	}
	return int(binary.BigEndian.Uint16(v[i*wordBytes+3:]))
}

// Count returns term → number of rows in a match's segments that have it, or had it when the segment was made. It lacks
// terms that no row has. ok is false if a segment was deleted.
func (x *Index) Count(ctx context.Context, d db.DB, m *Match, terms []int32) (counts map[int32]int, ok bool,
	err error) {
	words, err := x.vocabularies(ctx, d, m)
	if err != nil || len(words) < len(m.matched) {
		return nil, false, err
	}
	counts = map[int32]int{}
	for _, term := range terms {
		rows := 0
		for _, v := range words {
			rows += v.rows(term)
		}
		if rows > 0 {
			counts[term] = rows
		}
	}
	return counts, true, nil
}

// vocabularies returns the vocabularies of a match's segments, without deleted ones, and reads what the cache lacks.
func (x *Index) vocabularies(ctx context.Context, d db.DB, m *Match) (all []vocabulary, err error) {
	var missing []int64
	for _, s := range m.matched {
		if bytes, ok := x.cache.get(part{s.key, vocabularyPart}, x.CachedBytes); ok {
			all = append(all, bytes)
		} else {
			missing = append(missing, s.key)
		}
	}
	if len(missing) == 0 {
		return all, nil
	}
	var batch pgx.Batch
	batch.Queue(ByIndexes)
	batch.Queue(`
		SELECT key, vocabulary FROM word_segments WHERE org = @org AND key = ANY (@keys)`,
		pgx.StrictNamedArgs{"org": m.org, "keys": missing}).Query(func(rows pgx.Rows) error {
		var key int64
		var bytes []byte
		_, err := pgx.ForEachRow(rows, []any{&key, &bytes}, func() error {
			all = append(all, bytes)
			x.cache.add(part{key, vocabularyPart}, bytes, x.CachedBytes)
			return nil
		})
		return err
	})
	return all, db.Error(d.SendBatch(ctx, &batch).Close())
}
