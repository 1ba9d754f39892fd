package wordindex

import "sync"

// cachedBytes is how many bytes of its segments an Index keeps in memory. 100,000 passages of source code take 25 MB.
const cachedBytes = 32 << 20

// part names a part of a segment: a bucket of its postings, or its keys.
type part struct {
	segment int64
	bucket  int32 // or one of the parts below
}

const (
	keysPart       = -1 // the keys of its rows
	vocabularyPart = -2
)

// partBytes is about how many bytes an entry of a cache takes besides its content.
const partBytes = 96

// cache has the parts of segments that were read last. Segments never change, and a segment that is made again has
// another key. So the cache is never wrong. Its zero value is ready and safe for concurrent use. Its methods take the
// most bytes that it may have.
type cache struct {
	mu     sync.Mutex
	recent map[part][]byte // added or used since older was replaced
	older  map[part][]byte
	bytes  int // of recent
}

// get returns a part. ok is false if the cache does not have it. If a segment lacks a bucket, its bytes are nil.
func (c *cache) get(p part, most int) (bytes []byte, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if bytes, ok = c.recent[p]; ok {
		return bytes, true
	}
	if bytes, ok = c.older[p]; ok {
		c.put(p, bytes, most)
	}
	return bytes, ok
}

func (c *cache) add(p part, bytes []byte, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(p, bytes, most)
}

// put adds a part. Once the recent parts have half of the bytes, the older ones are dropped. The caller holds c.mu.
func (c *cache) put(p part, bytes []byte, most int) {
	if c.recent == nil || c.bytes > most/2 {
		c.recent, c.older, c.bytes = map[part][]byte{}, c.recent, 0
	}
	if _, ok := c.recent[p]; !ok {
		c.bytes += len(bytes) + partBytes
	}
	c.recent[p] = bytes
}
