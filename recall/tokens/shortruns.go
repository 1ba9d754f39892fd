package tokens

import "sync/atomic"

// shortRuns remembers what runs of at most eight bytes cost, of letters or of punctuation: first those that follow no
// space, then those that follow one. An entry is the run's key without its low bits, which are its index, and in their
// place the cost. An entry of 0 is empty.
var shortRuns [2][runSlots]atomic.Uint64

const (
	runBits  = 12
	runSlots = 1 << runBits
	runBytes = 8
	runMix   = 0x9e3779b97f4a7c15 // odd: different runs have different keys
)

// costOfRun returns what a run of a text costs, as cost counts it, or as was counted before.
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

// runKey returns a number for the first bytes of a text, at most eight, none of which is 0. No other run has the same.
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
