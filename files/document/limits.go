package document

import (
	"bytes"
	"io"
)

// MaxTextBytes is the most Markdown that a document may have.
const MaxTextBytes = 64 << 20

// Limits of one document. Beyond them it is an attack, or better uploaded in parts.
const (
	maxHandledBytes  = 256 << 20 // of text on its way there: the text of a cell within cells counts once for each
	maxUnpackedBytes = 256 << 20 // of all that is read from one archive
	maxEntries       = 10_000    // of an archive
	maxDirectoryMB   = 8         // read to find an archive's entries, in MiB
	maxRatio         = 600       // of an entry's bytes to its packed ones, where it has more than ratioFromBytes
	ratioFromBytes   = 32 << 20
	maxXMLTokens     = 10_000_000 // of all parts together
	maxXMLTokenBytes = 4 << 20    // of one tag, text or declaration
	maxXMLDepth      = 1000       // elements within each other
	maxLinkBytes     = 2048       // a longer link is shown by its text only
	maxColumns       = 16_384     // that a merged or repeated cell covers
)

// budget is the rest of a document's limits.
type budget struct {
	unpacked, handled int64
	tokens            int
}

func newBudget() *budget {
	return &budget{unpacked: maxUnpackedBytes, handled: maxHandledBytes, tokens: maxXMLTokens}
}

// handle takes n bytes of text from the budget and reports whether they were left. A caller drops text beyond it; the
// next token finds it spent.
func (b *budget) handle(n int) bool {
	b.handled -= int64(n)
	return b.handled >= 0
}

// spent returns an *UnreadableError once a limit is passed.
func (b *budget) spent() error {
	switch {
	case b.unpacked < 0:
		return unreadable("The document unpacks to more than %d MiB. Upload it in parts.", maxUnpackedBytes>>20)
	case b.handled < 0:
		return tooMuchText()
	case b.tokens < 0:
		return unreadable("The document has more than %d million XML elements. "+
			"Upload it in parts, or as plain text or CSV.", maxXMLTokens/1_000_000)
	}
	return nil
}

func tooMuchText() error {
	return unreadable("The document holds more than %d MiB of text. Upload it in parts.", MaxTextBytes>>20)
}

// LimitedBuffer fails with io.ErrShortWrite when more is written than is left.
type LimitedBuffer struct {
	Held      bytes.Buffer
	LeftBytes int // below 0 when it overflowed
}

// Write implements io.Writer.
func (b *LimitedBuffer) Write(p []byte) (int, error) {
	if b.LeftBytes -= len(p); b.LeftBytes < 0 {
		return 0, io.ErrShortWrite
	}
	return b.Held.Write(p)
}
