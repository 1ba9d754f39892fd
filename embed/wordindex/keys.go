package wordindex

import (
	"encoding/binary"
	"slices"
)

// rowKeys are the keys of a segment's rows, ordered by row number: one byte with the width of each, eight bytes with
// the least key, then each key's distance from the least.
type rowKeys []byte

const rowKeysHead = 9

func packKeys(keys []int64) rowKeys {
	packed := make(rowKeys, rowKeysHead, rowKeysHead+4*len(keys))
	if len(keys) == 0 {
		return packed
	}
	least := slices.Min(keys)
	width, widest := 1, slices.Max(keys)-least
	for width < 8 && widest>>(8*width) > 0 {
		width++
	}
	packed[0] = byte(width)
	binary.LittleEndian.PutUint64(packed[1:], uint64(least)) //nolint:gosec // it is read as it is written
	for _, key := range keys {
		packed = append(packed, binary.LittleEndian.AppendUint64(nil, uint64(key-least))[:width]...) //nolint:gosec // >= 0
	}
	return packed
}

// len returns the number of keys, or 0 if k is no list of keys.
func (k rowKeys) len() int {
	if len(k) < rowKeysHead || k[0] == 0 || k[0] > 8 {
		return 0
	}
	return (len(k) - rowKeysHead) / int(k[0])
}

func (k rowKeys) at(row int) int64 {
	width := int(k[0])
	var distance [8]byte
	copy(distance[:width], k[rowKeysHead+row*width:])
	least := binary.LittleEndian.Uint64(k[1:])
	return int64(least + binary.LittleEndian.Uint64(distance[:])) //nolint:gosec // it is a key
}
