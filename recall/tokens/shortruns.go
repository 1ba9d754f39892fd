package tokens

import "sync/atomic"

// shortRuns remembers the cost of runs of letters or punctuation with at most eight bytes. The first array is for runs
// that do not follow a space, the second for runs that do. The index of an entry is the low bits of the run's key. The
// entry is the key with the cost in place of these bits; 0 is an empty entry.
var shortRuns [2][runSlots]atomic.Uint64

const (
	runBits  = 12
	runSlots = 1 << runBits
	runBytes = 8
	runMix   = 0x9e3779b97f4a7c15 // odd: different runs have different keys
)

// costOfRun returns the cost of text[from:end], remembered or computed by cost.
func costOfRun(text string, from, end int, cost func(run string, spaced bool) int) int {
	spaced := isSpaced(text, from)
	if end-from > runBytes {
		return cost(text[from:end], spaced)
	}
	table := &shortRuns[0]
	if spaced {
		table = &shortRuns[1]
	}
	key := runKey(text[from:], end-from)
	slot := &table[key%runSlots]
	if known := slot.Load(); known != 0 && known>>runBits == key>>runBits {
		return int(known % runSlots) // #nosec G115 -- it is below runSlots
	}
	n := cost(text[from:end], spaced)
	if 0 < n && n < runSlots {
		slot.Store(key>>runBits<<runBits | uint64(n)) // #nosec G115 -- it is positive
	}
	return n
}

// runKey returns a number for the first bytes of a text, at most eight and none of them 0. Different runs have
// different numbers.
func runKey(text string, length int) (key uint64) {
	if len(text) >= runBytes {
		key = word(text) << (8 * (runBytes - length))
	} else {
		for i := range length {
			key |= uint64(text[i]) << (8 * (runBytes - length + i))
		}
	}
	key *= runMix
	return key ^ key>>32
}
