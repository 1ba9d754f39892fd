package document

import (
	"bytes"
	"io"
)

// MaxTextBytes is the size limit of a document's Markdown.
const MaxTextBytes = 64 << 20

// Limits of one document. A document beyond them is an attack, or should be uploaded in parts.
const (
	maxHandledBytes  = 256 << 20 // text that is handled on the way; the text of a cell within cells counts once per level
	maxUnpackedBytes = 256 << 20 // all that is read from one archive
	maxEntries       = 10_000    // in an archive
	maxDirectoryMB   = 8         // MiB that are read to find an archive's entries
	maxRatio         = 600       // unpacked bytes per packed byte of an entry with more than ratioFromBytes
	ratioFromBytes   = 32 << 20
	maxXMLTokens     = 10_000_000 // in all parts together
	maxXMLTokenBytes = 4 << 20    // one tag, text or declaration
	maxXMLDepth      = 1000       // nested elements
	maxLinkBytes     = 2048       // bytes of a link; of a longer one only the text is shown
	maxColumns       = 16_384     // cells that one merged or repeated cell covers
)

// budget is what is left of a document's limits. All readers of a document share it, so it also collects what they
// leave out.
type budget struct {
	unpacked, handled int64
	tokens            int
	omitted           omissions // what the readers leave out
}

func newBudget() *budget {
	return &budget{unpacked: maxUnpackedBytes, handled: maxHandledBytes, tokens: maxXMLTokens}
}

// handle takes n bytes of text from the budget, and reports whether they were left. The caller drops text beyond the
// budget; at the next token the reader stops.
func (b *budget) handle(n int) bool {
	b.handled -= int64(n)
	return b.handled >= 0
}

// spent returns *UnreadableError once a limit is exceeded.
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
	LeftBytes int // below 0 after an overflow
}

// Write implements io.Writer.
func (b *LimitedBuffer) Write(p []byte) (int, error) {
	if b.LeftBytes -= len(p); b.LeftBytes < 0 {
		return 0, io.ErrShortWrite
	}
	return b.Held.Write(p)
}
