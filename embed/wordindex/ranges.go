package wordindex

import (
	"cmp"
	"iter"
	"slices"
	"sort"
)

// Range is the keys from the first to the last, inclusive.
type Range struct{ First, Last int64 }

// Ranges are ascending ranges of keys that do not overlap; nil is all keys.
type Ranges []Range

// NewRanges returns the keys that are in one of the ranges, or no key if there is no range.
func NewRanges(ranges []Range) Ranges {
	all := slices.Clone(ranges)
	slices.SortFunc(all, func(a, b Range) int { return cmp.Compare(a.First, b.First) })
	joined := Ranges{}
	for _, r := range all {
		if n := len(joined); n > 0 && r.First <= joined[n-1].Last {
			joined[n-1].Last = max(joined[n-1].Last, r.Last)
		} else {
			joined = append(joined, r)
		}
	}
	return joined
}

// Keys returns ranges with exactly the given keys.
func Keys(keys []int64) Ranges {
	all := make([]Range, len(keys))
	for i, key := range keys {
		all[i] = Range{key, key}
	}
	return NewRanges(all)
}

// within yields the matched rows with keys in the ranges.
func (s *matched) within(ranges Ranges) iter.Seq[rowScore] {
	if ranges == nil {
		return slices.Values(s.rows)
	}
	return func(yield func(rowScore) bool) {
		next := 0 // the range that the next row may be in: rows are mostly ordered by key
		for _, r := range s.rows {
			key := s.keys.at(int(r.row))
			if next > 0 && key <= ranges[next-1].Last {
				next = sort.Search(next, func(i int) bool { return key <= ranges[i].Last })
			}
			for next < len(ranges) && ranges[next].Last < key {
				next++
			}
			if next < len(ranges) && ranges[next].First <= key && !yield(r) {
				return
			}
		}
	}
}
