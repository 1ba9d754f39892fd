package local

import (
	"bytes"
	"encoding/binary"
	"errors"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
)

// charsmap replaces characters as SentencePiece does, with a table that is compiled into a model: a trie of the texts
// to replace, in a double array, and their replacements.
type charsmap struct {
	trie    []uint32
	results []byte // replacements, each with a zero byte at its end; the trie has their offsets
}

func newCharsmap(compiled []byte) (*charsmap, error) {
	errBroken := errors.New("its precompiled_charsmap is broken: fetch it again")
	if len(compiled) < 4 {
		return nil, errBroken
	}
	size := binary.LittleEndian.Uint32(compiled)
	rest := compiled[4:]
	if size%4 != 0 || size == 0 || uint64(size) > uint64(len(rest)) {
		return nil, errBroken
	}
	c := &charsmap{trie: make([]uint32, size/4), results: rest[size:]}
	for i := range c.trie {
		c.trie[i] = binary.LittleEndian.Uint32(rest[4*i:])
	}
	return c, nil
}

// mostCluster is how many bytes of characters that belong together are replaced as one.
const mostCluster = 5

// replace replaces characters that belong together, like a letter and its accents; if they have no replacement, it
// replaces each alone.
func (c *charsmap) replace(text string) string {
	replaced := make([]byte, 0, len(text)+len(text)/8)
	for clusters := graphemes.FromString(text); clusters.Next(); {
		cluster := clusters.Value()
		if len(cluster) <= mostCluster {
			if result, found := c.find(cluster); found {
				replaced = append(replaced, result...)
				continue
			}
		}
		for len(cluster) > 0 {
			_, size := utf8.DecodeRuneInString(cluster)
			if result, found := c.find(cluster[:size]); found {
				replaced = append(replaced, result...)
			} else {
				replaced = append(replaced, cluster[:size]...)
			}
			cluster = cluster[size:]
		}
	}
	return string(replaced)
}

// find returns the replacement of the shortest prefix of key that the table has.
func (c *charsmap) find(key string) (result []byte, found bool) {
	node := c.unit(0).offset()
	for i := range len(key) {
		if key[i] == 0 {
			return nil, false
		}
		node ^= uint32(key[i])
		unit := c.unit(node)
		if unit.label() != uint32(key[i]) {
			return nil, false
		}
		node ^= unit.offset()
		if unit.hasLeaf() {
			return c.result(c.unit(node).value())
		}
	}
	return nil, false
}

func (c *charsmap) result(offset uint32) ([]byte, bool) {
	if uint64(offset) >= uint64(len(c.results)) {
		return nil, false
	}
	result := c.results[offset:]
	if end := bytes.IndexByte(result, 0); end >= 0 {
		result = result[:end]
	}
	return result, true
}

// doubleArrayUnit is an element of a double array in the format of the library Darts-clone.
type doubleArrayUnit uint32

// unit returns a unit. Beyond the end it returns one that no label leads to.
func (c *charsmap) unit(i uint32) doubleArrayUnit {
	if uint64(i) >= uint64(len(c.trie)) {
		return 1 << 31
	}
	return doubleArrayUnit(c.trie[i])
}

func (u doubleArrayUnit) hasLeaf() bool  { return u>>8&1 == 1 }
func (u doubleArrayUnit) value() uint32  { return uint32(u) & (1<<31 - 1) }
func (u doubleArrayUnit) label() uint32  { return uint32(u) & (1<<31 | 0xff) }
func (u doubleArrayUnit) offset() uint32 { return uint32(u) >> 10 << (uint32(u) & (1 << 9) >> 6) }
