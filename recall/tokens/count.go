package tokens

import (
	"cmp"
	"crypto/sha256"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer"
	"github.com/tiktoken-go/tokenizer/codec"
)

// codecs maps encoding → function that reads its codec on first use. They are not asked of tokenizer.Get, which would
// link the vocabularies of older models, too.
var codecs = map[tokenizer.Encoding]func() *codec.Codec{
	tokenizer.O200kBase:  sync.OnceValue(codec.NewO200kBase),
	tokenizer.Cl100kBase: sync.OnceValue(codec.NewCl100kBase),
}

// rememberBytes is the shortest text with a count that is remembered.
const rememberBytes = 64

// known returns the remembered count of a text, or counts it and remembers the count.
func (c *Counter) known(encoding tokenizer.Encoding, text string, count func() int) int {
	if c == nil || len(text) < rememberBytes {
		return count()
	}
	key := counted{encoding, sha256.Sum256([]byte(text))}
	c.mu.Lock()
	n, ok := c.new[key]
	if !ok {
		if n, ok = c.old[key]; ok {
			c.put(key, n)
		}
	}
	c.mu.Unlock()
	if ok {
		return n
	}
	n = count()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(key, n)
	return n
}

// put remembers a count. The caller holds the lock.
func (c *Counter) put(key counted, n int) {
	if c.new == nil || len(c.new) >= remembered/2 {
		c.new, c.old = map[counted]int{}, c.new
	}
	c.new[key] = n
}

// A text is counted in pieces, because a tokenizer looks back and ahead: for a run of spaces and line ends its time
// grows with the square of the run's length. Each cut changes the count by one token at most.
const (
	pieceBytes = 32 << 10
	spaceBytes = 128 // in a run
)

func count(encoding tokenizer.Encoding, text string) (n int) {
	vocabulary := codecs[encoding]()
	for text != "" {
		piece := text[:cut(text)]
		text = text[len(piece):]
		if m, err := vocabulary.Count(piece); err == nil {
			n += m
		} else {
			n += Estimate(piece)
		}
	}
	return n
}

// cut returns where the first piece of a text ends: within a long run of spaces; or else before its last line end or
// space, because that belongs to what follows; or else between two characters.
func cut(text string) int {
	run, space := 0, 0 // start of the run of spaces; last space in the later half
	inRun := false
	for i, r := range text {
		switch {
		case !unicode.IsSpace(r):
			inRun = false
		case !inRun:
			inRun, run = true, i
		case i-run >= spaceBytes:
			return i
		}
		if inRun && i > pieceBytes/2 {
			space = i
		}
		if i+utf8.UTFMax > pieceBytes && i > 0 {
			return cmp.Or(space, i)
		}
	}
	return len(text)
}
