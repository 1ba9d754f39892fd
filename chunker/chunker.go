// Package chunker cuts a document's text into overlapping chunks sized for embedding.
//
// A chunk is its overlap, which repeats the end of the chunk before, and its body. The bodies of all chunks, joined, are the text, byte
// for byte. A body ends where the text does: at a heading, a block, a sentence, a line or a word, whichever of these its kind of text
// makes the best place that still fills the chunk. No rune is ever cut, and a body is larger than the size only where one rune is.
package chunker

import "strings"

// Default sizes, in tokens.
const (
	DefaultSizeTokens    = 300
	DefaultOverlapTokens = 50
)

// Options say how to cut. The zero value cuts prose at the default sizes.
type Options struct {
	Kind          Kind             // "" is Prose
	SizeTokens    int              // of a body at most; 0 or less is DefaultSizeTokens
	OverlapTokens int              // at most, on top of the body; 0 is DefaultOverlapTokens, negative is none; never above half the size
	Count         func(string) int // tokens of a text, 0 for ""; nil is Estimate. Called some ten times for each chunk
}

// A Chunk is a stretch of the text, with its place in it.
type Chunk struct {
	Text         string // a substring of the input: overlap, then body
	StartByte    int    // of Text in the input
	EndByte      int    // after the last byte of Text in the input
	OverlapBytes int    // leading bytes of Text that repeat the chunk before; 0 where a section of its own begins
	FirstLine    int    // of Text in the input, from 1; a line ends with '\n'
	LastLine     int    // inclusive
	// Heading is what the body stands under: for Markdown "Title > Section > Sub" where the body starts (a heading that opens the body
	// counts), for delimited Rows the header row, else "". At most 1,024 bytes.
	Heading string
}

// Split cuts text, which should be valid UTF-8. A text of nothing but white space has no chunks; of any other every byte is in a body.
// Time is linear in the text.
func Split(text string, o Options) []Chunk {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	s := newSplitter(text, o)
	var chunks []Chunk
	for line, from, overlap := 1, 0, 0; from < len(text); {
		heading := s.headingAt(from)
		to, ownSection := s.next(from)
		chunks = append(chunks, s.chunk(from, to, overlap, line, heading))
		line += strings.Count(text[from:to], "\n")
		overlap = 0
		if !ownSection {
			overlap = s.overlapBefore(from, to)
		}
		from = to
	}
	return chunks
}

// Lines counts the lines of a text as grep and sed do: "" has none, "a" and "a\n" have one, "a\n\n" has two.
func Lines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

// chunk describes the body [from, to), which starts in the given line, with the overlap before it.
func (s *splitter) chunk(from, to, overlap, line int, heading string) Chunk {
	start := from - overlap
	first := line - strings.Count(s.text[start:from], "\n")
	return Chunk{
		Text:         s.text[start:to],
		StartByte:    start,
		EndByte:      to,
		OverlapBytes: overlap,
		FirstLine:    first,
		LastLine:     first + Lines(s.text[start:to]) - 1,
		Heading:      heading,
	}
}
