package files

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf8"
)

// A unit of text is known by the n-grams of bytes in its lines, of three lengths: short ones find short words, long ones tell digits and
// identifiers apart. Each falls into one of gramBuckets buckets: 10 KiB of bits for the 64 KiB of a unit.
const (
	gramMin     = 3
	gramMax     = 5
	gramBuckets = 5 << 14
)

// bucket is where an n-gram falls, its bytes in x.
func bucket(x uint64, n int) uint32 {
	hash := (x | uint64(n)<<40) * 0x9E3779B97F4A7C15 >> 32 //nolint:gosec // n is gramMin to gramMax
	return uint32(hash * gramBuckets >> 32)                //nolint:gosec // below gramBuckets
}

// last is the last n bytes of x.
func last(x uint64, n int) uint64 { return x & (1<<(8*n) - 1) }

// fold maps a byte, and what comes after it, to what stands for it in the index: letters of ASCII regardless of their case, and so the
// two other characters that are letters of ASCII in another case: ſ (long s) and the sign of Kelvin. It returns how many bytes it took.
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

// folded is a text as it stands in the index.
func folded(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		c, size := fold(text, i)
		b.WriteByte(c)
		i += size
	}
	return b.String()
}

// gramSet is the buckets of the n-grams of one unit, a bit each.
type gramSet [gramBuckets / 64]uint64

// add takes a text of whole lines.
func (s *gramSet) add(text string) {
	var x uint64
	n := 0 // bytes of the line in x
	for i := 0; i < len(text); {
		c, size := text[i], 1
		if c-'A' < 26 || c >= utf8.RuneSelf { // most bytes stand for themselves
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

// gramRowBytes is how many bytes a row has in a block of so many units.
func gramRowBytes(units int) int { return (units + 7) / 8 }

// gramRows turns the sets of a block's units into its rows, one after the other.
func gramRows(sets []*gramSet) []byte {
	width := gramRowBytes(len(sets))
	rows := make([]byte, gramBuckets*width)
	for unit, set := range sets {
		at, bit := unit/8, byte(1)<<(unit%8)
		for i, word := range set {
			for ; word != 0; word &= word - 1 {
				rows[(i*64+bits.TrailingZeros64(word))*width+at] |= bit
			}
		}
	}
	return rows
}

// unitsIn yields the units whose bits are set in a row.
func unitsIn(row []byte, yield func(unit int)) {
	for i, b := range row {
		for ; b != 0; b &= b - 1 {
			yield(i*8 + bits.TrailingZeros8(b))
		}
	}
}

// and keeps in row what other has, too; both are of one length.
func and(row, other []byte) {
	i := 0
	for ; i+8 <= len(row); i += 8 {
		binary.NativeEndian.PutUint64(row[i:], binary.NativeEndian.Uint64(row[i:])&binary.NativeEndian.Uint64(other[i:]))
	}
	for ; i < len(row); i++ {
		row[i] &= other[i]
	}
}

// or adds to row what other has.
func or(row, other []byte) {
	for i := range row {
		row[i] |= other[i]
	}
}
