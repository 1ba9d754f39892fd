package wordindex

import (
	"cmp"
	"iter"
	"slices"
	"sort"
)

// Range is the keys from the first to the last, inclusive.
type Range struct{ First, Last int64 }

// Ranges are ranges of keys, ascending, of which none overlaps another; nil is all keys.
type Ranges []Range

// NewRanges returns the keys that are in one of the ranges; none if there is no range.
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

// Keys returns the ranges of single keys.
func Keys(keys []int64) Ranges {
	all := make([]Range, len(keys))
	for i, key := range keys {
		all[i] = Range{key, key}
	}
	return NewRanges(all)
}

// within yields those of the matched rows whose keys are in the ranges.
func (s *matched) within(ranges Ranges) iter.Seq[rowScore] {
	if ranges == nil {
		return slices.Values(s.rows)
	}
	return func(yield func(rowScore) bool) {
		at := 0 // the range that the next row may be in: rows are mostly in the order of their keys
		for _, r := range s.rows {
			key := s.keys.at(int(r.row))
			if at > 0 && key <= ranges[at-1].Last {
				at = sort.Search(at, func(i int) bool { return key <= ranges[i].Last })
			}
			for at < len(ranges) && ranges[at].Last < key {
				at++
			}
			if at < len(ranges) && ranges[at].First <= key && !yield(r) {
				return
			}
		}
	}
}
