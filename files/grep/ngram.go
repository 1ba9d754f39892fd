package grep

import (
	"iter"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"
)

// The index knows a unit of text by the byte n-grams in its lines, of three lengths. Short n-grams find short words;
// long ones tell digits and identifiers apart. Each n-gram falls into one of gramBuckets buckets, so that a unit of 64
// KiB has 10 KiB of bits.
const (
	gramMin     = 3
	gramMax     = 5
	gramBuckets = 5 << 14
)

// bucket returns the bucket of the n-gram with its bytes in x.
func bucket(x uint64, n int) uint32 {
	hash := (x | uint64(n)<<40) * 0x9E3779B97F4A7C15 >> 32 //nolint:gosec // n is gramMin to gramMax
	return uint32(hash * gramBuckets >> 32)                //nolint:gosec // below gramBuckets
}

// last returns the last n bytes of x.
func last(x uint64, n int) uint64 { return x & (1<<(8*n) - 1) }

// fold returns the byte that stands in the index for the character or byte at text[i], and the size of that character
// in bytes. ASCII letters become lower case. So do ſ (long s) and the Kelvin sign, which are ASCII letters in another
// case.
func fold(text string, i int) (folded byte, size int) {
	c := text[i]
	switch {
	case 'A' <= c && c <= 'Z':
		return c + 'a' - 'A', 1
	case c == 0xC5 && strings.HasPrefix(text[i:], "ſ"):
		return 's', len("ſ")
	case c == 0xE2 && strings.HasPrefix(text[i:], "\u212A"):
		return 'k', len("\u212A")
	}
	return c, 1
}

// folded returns a text folded as by fold.
func folded(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		c, size := fold(text, i)
		b.WriteByte(c)
		i += size
	}
	return b.String()
}

// gramSet is a set of buckets, one bit per bucket.
type gramSet [gramBuckets / 64]uint64

// add adds the n-grams of a text of whole lines.
func (s *gramSet) add(text string) {
	var x uint64
	n := 0 // bytes of the line in x
	for i := 0; i < len(text); {
		c, size := text[i], 1
		if c-'A' < 26 || c >= utf8.RuneSelf { // every other byte folds to itself
			c, size = fold(text, i)
		}
		i += size
		if c == '\n' {
			n = 0
			continue
		}
		x = x<<8 | uint64(c)
		if n++; n < gramMin {
			continue
		}
		s.set(bucket(last(x, 3), 3))
		if n >= 4 {
			s.set(bucket(last(x, 4), 4))
		}
		if n >= 5 {
			s.set(bucket(last(x, 5), 5))
		}
	}
}

func (s *gramSet) set(bucket uint32) { s[bucket/64] |= 1 << (bucket % 64) }

// gramRows turns the sets of a block's units into rows, one per bucket. A row has (units + 7) / 8 bytes, one bit per
// unit.
func gramRows(sets []*gramSet) []byte {
	width := (len(sets) + 7) / 8
	rows := make([]byte, gramBuckets*width)
	for unit, set := range sets {
		index, bit := unit/8, byte(1)<<(unit%8)
		for i, word := range set {
			for ; word != 0; word &= word - 1 {
				rows[(i*64+bits.TrailingZeros64(word))*width+index] |= bit
			}
		}
	}
	return rows
}

// setBits yields the numbers of the bits that are set in a row.
func setBits(row []byte) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, b := range row {
			for ; b != 0; b &= b - 1 {
				if !yield(i*8 + bits.TrailingZeros8(b)) {
					return
				}
			}
		}
	}
}

// and clears the bits of row that other does not have. Both have the same length.
func and(row, other []byte) {
	for i := range row {
		row[i] &= other[i]
	}
}

// or sets the bits of row that other has.
func or(row, other []byte) {
	for i := range row {
		row[i] |= other[i]
	}
}

// How many buckets a search reads from the index, at most, for one text and for all texts.
const (
	gramsOfText  = 24
	gramsOfQuery = 256
)

// minGramsOfText is how many buckets a search reads at least for a text, because a single one leaves too many units.
const minGramsOfText = 2

// gramQuery is a requirement in terms of buckets.
type gramQuery struct {
	buckets  []int32 // without duplicates
	required *required
	of       map[string][]int // text → indexes of its buckets in buckets
}

// newGramQuery returns nil if r is nil or has too many texts.
func newGramQuery(r *required) *gramQuery {
	if r == nil || r.texts() > gramsOfQuery/minGramsOfText {
		return nil
	}
	q := &gramQuery{required: r, of: map[string][]int{}}
	q.add(r, min(gramsOfQuery/r.texts(), gramsOfText), map[int32]int{})
	return q
}

func (q *gramQuery) add(r *required, limit int, places map[int32]int) {
	if r.text != "" {
		for _, b := range bucketsOf(r.text, limit) {
			place, known := places[b]
			if !known {
				place = len(q.buckets)
				places[b] = place
				q.buckets = append(q.buckets, b)
			}
			q.of[r.text] = append(q.of[r.text], place)
		}
	}
	for _, sub := range slices.Concat(r.all, r.any) {
		q.add(sub, limit, places)
	}
}

// bucketsOf returns the buckets of up to limit n-grams of a folded text. It prefers the longest n-grams; for a long
// text, it spreads them evenly.
func bucketsOf(text string, limit int) []int32 {
	var list []int32
	for n := gramMax; n >= gramMin; n-- {
		places := len(text) - n + 1
		take := min(max(places, 0), limit-len(list))
		for i := range take {
			start := i * places / take
			var x uint64
			for _, c := range []byte(text[start : start+n]) {
				x = x<<8 | uint64(c)
			}
			list = append(list, int32(bucket(x, n))) //nolint:gosec // below gramBuckets
		}
	}
	return list
}

// units returns, as a row of bits, which units of a block may match. rows are the block's rows for the query's buckets.
func (q *gramQuery) units(rows [][]byte) []byte { return q.eval(q.required, rows) }

func (q *gramQuery) eval(r *required, rows [][]byte) []byte {
	row := slices.Repeat([]byte{0xFF}, len(rows[0]))
	for _, place := range q.of[r.text] {
		and(row, rows[place])
	}
	for _, sub := range r.all {
		and(row, q.eval(sub, rows))
	}
	if len(r.any) > 0 {
		one := make([]byte, len(row))
		for _, sub := range r.any {
			or(one, q.eval(sub, rows))
		}
		and(row, one)
	}
	return row
}
