package wordindex

import (
	"cmp"
	"encoding/binary"
	"errors"
	"iter"
	"math/bits"
	"slices"
)

// A posting is a term's weight in a row of a segment: the term in the upper 32 bits, the number of the row in the next
// 16, its impact in the lower 16. So sorted postings are ordered by term.
type posting uint64

// impactStep is the weight of an impact of 1. BM25's weights are below 2.2. With steps this small, nearly all orders
// stay right, so that few rows more than wanted are scored exactly.
const impactStep = 2.2 / (1<<16 - 1)

func newPosting(term int32, row int, weight float32) posting {
	impact := min(max(uint64(float64(weight)/impactStep+0.5), 1), 1<<16-1)
	return posting(uint64(uint32(term))<<32 | uint64(row)<<16 | impact) //nolint:gosec // rows have 16 bits
}

func (p posting) term() uint32   { return uint32(p >> 32) }
func (p posting) row() int       { return int(p >> 16 & (1<<16 - 1)) }
func (p posting) impact() uint16 { return uint16(p & (1<<16 - 1)) } //nolint:gosec // 16 bits

const (
	termBits       = 24
	bucketPostings = 256 // postings of a bucket, on average
)

// shiftFor returns how many bits a term is shifted right to get the number of its bucket, in a segment of n postings.
func shiftFor(n int) int { return max(termBits-bits.Len(uint(n/bucketPostings)), 0) } //nolint:gosec // not negative

// buckets yields the buckets of sorted postings, each with its number. A bucket begins with varints: the number of its
// terms; then for each term its distance from the term before, the number of its postings, and the length in bytes of
// its rows' distances. Then follow for each term these distances as varints, the first from -1, and the impacts, two
// bytes each.
func buckets(sorted []posting, shift int) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		for len(sorted) > 0 {
			number := sorted[0].term() >> shift
			end, _ := slices.BinarySearchFunc(sorted, number+1, func(p posting, n uint32) int {
				return cmp.Compare(p.term()>>shift, n)
			})
			if !yield(int(number), encoded(sorted[:end])) {
				return
			}
			sorted = sorted[end:]
		}
	}
}

// encoded returns the bytes of a bucket.
func encoded(bucket []posting) []byte {
	var head, body []byte
	terms, last := uint64(0), uint32(0)
	for len(bucket) > 0 {
		term := bucket[0].term()
		end, _ := slices.BinarySearchFunc(bucket, term+1, func(p posting, t uint32) int { return cmp.Compare(p.term(), t) })
		from, row := len(body), -1
		for _, p := range bucket[:end] {
			body = binary.AppendUvarint(body, uint64(p.row()-row)) //nolint:gosec // rows ascend
			row = p.row()
		}
		head = binary.AppendUvarint(head, uint64(term-last))
		head = binary.AppendUvarint(head, uint64(end))            //nolint:gosec // not negative
		head = binary.AppendUvarint(head, uint64(len(body)-from)) //nolint:gosec // not negative
		for _, p := range bucket[:end] {
			body = binary.LittleEndian.AppendUint16(body, p.impact())
		}
		terms, last, bucket = terms+1, term, bucket[end:]
	}
	return slices.Concat(binary.AppendUvarint(nil, terms), head, body)
}

var errDamaged = errors.New("a segment of the index of words is damaged: delete the rows of word_segments, " +
	"and they are made again")

// addScores adds a term's weights to the scores of a segment's rows, and returns how many rows have the term.
func addScores(scores []float32, bucket []byte, term int32, weight float32) (having int, err error) {
	input := reader{rest: bucket}
	wanted, current := uint64(uint32(term)), uint64(0) //nolint:gosec // not negative
	var before, rows, distances uint64                 // bytes of the terms before it, and its own
	for n := input.uvarint(); n > 0 && !input.bad; n-- {
		current += input.uvarint()
		count, size := input.uvarint(), input.uvarint()
		switch {
		case current < wanted:
			before += size + 2*count
		case current == wanted:
			rows, distances = count, size
		}
	}
	all := uint64(len(input.rest))
	if input.bad || before > all || rows > uint64(len(scores)) || distances > all || before+distances+2*rows > all {
		return 0, errDamaged
	}
	input.rest = input.rest[before:]
	return int(rows), input.addTo(scores, input.rest[distances:distances+2*rows], weight*impactStep)
}

// reader reads a bucket. bad is true once it has read past the end.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) uvarint() uint64 {
	if len(r.rest) > 0 && r.rest[0] < 0x80 {
		v := r.rest[0]
		r.rest = r.rest[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// addTo reads the distances of rows, and adds impacts, in the given steps, to the rows' scores.
func (r *reader) addTo(scores []float32, impacts []byte, step float32) error {
	row := -1
	for ; len(impacts) > 1; impacts = impacts[2:] {
		row += int(r.uvarint()) //nolint:gosec // a number too large is no row
		if row < 0 || row >= len(scores) || r.bad {
			return errDamaged
		}
		scores[row] += step * float32(binary.LittleEndian.Uint16(impacts))
	}
	return nil
}
