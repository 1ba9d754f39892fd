package wordindex

import (
	"encoding/binary"
	"maps"
	"slices"
	"sync"
)

// rowKeys are the keys of a segment's rows, by the rows' numbers: one byte with the width of each, eight bytes with the
// least key, then the distance of each from the least.
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

// len returns the number of keys; 0 of what is no list of keys.
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

// maxCachedKeys is how many bytes a keyCache holds: the keys of some millions of rows.
const maxCachedKeys = 8 << 20

// keyCache holds the keys of the rows of segments, which never change. It is emptied when it is full. Its zero value is
// ready and safe for concurrent use.
type keyCache struct {
	mu    sync.Mutex
	of    map[scope]map[int64]rowKeys // by owner and segment
	bytes int
}

// known returns the keys of the rows of owners' segments, as far as the cache has them, by segment.
func (c *keyCache) known(owners []scope) map[int64]rowKeys {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := map[int64]rowKeys{}
	for _, owner := range owners {
		maps.Copy(known, c.of[owner])
	}
	return known
}

func (c *keyCache) add(owner scope, segment int64, keys rowKeys) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bytes+len(keys) > maxCachedKeys || c.of == nil {
		c.of, c.bytes = map[scope]map[int64]rowKeys{}, 0
	}
	if c.of[owner] == nil {
		c.of[owner] = map[int64]rowKeys{}
	}
	if c.of[owner][segment] == nil {
		c.of[owner][segment] = keys
		c.bytes += len(keys)
	}
}
