// Package chunker cuts a document's text into overlapping chunks sized for embedding.
//
// A chunk is an overlap, which repeats the end of the chunk before, and a body. Joined, the bodies of all chunks are
// the text, byte for byte. A body ends at a heading, a block, a sentence, a line or a word: at the best of these, for
// its kind of text, that still fills the chunk. No rune is cut. A body is larger than the size only if it is a single
// rune.
//
// Each file uses only the files named before it:
//   - places to cut, kinds of text, sizes in tokens: boundary.go kind.go estimate.go
//   - the outline of each kind of text: outline.go question.go code.go markdown.go rows.go
//   - cutting: cut.go splitter.go chunker.go
package chunker

import "strings"

// Default sizes, in tokens.
const (
	DefaultSizeTokens    = 300
	DefaultOverlapTokens = 50
)

// Options configure Split. The zero value cuts prose at the default sizes.
type Options struct {
	Kind       Kind // empty means Prose
	SizeTokens int  // limit of a body; 0 or less means DefaultSizeTokens
	// OverlapTokens limits an overlap, which comes on top of the body and is at most half of SizeTokens. 0 means
	// DefaultOverlapTokens; a negative number means no overlap.
	OverlapTokens int
	Count         func(string) int // counts tokens, about ten times per chunk; 0 for ""; nil means Estimate
}

// A Chunk is a part of the text.
type Chunk struct {
	Text         string // a substring of the input: overlap, then body
	StartByte    int    // of Text in the input
	EndByte      int    // end of Text in the input, exclusive
	OverlapBytes int    // leading bytes of Text that repeat the chunk before; 0 where a top-level section begins
	FirstLine    int    // first line of Text in the input, from 1; a line ends with '\n'
	LastLine     int    // inclusive
	// Heading is, for Markdown, the path of headings at the body's start, "Title > Section > Sub", including a heading
	// that opens the body. For delimited Rows it is the header row; otherwise it is empty. It has at most 1,024 bytes.
	Heading string
}

// Split cuts a text in linear time. The text should be valid UTF-8. A text of white space has no chunks; in any other
// text, every byte is in a body.
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

// Lines counts lines as grep and sed do: "" has none, "a" and "a\n" have one, "a\n\n" has two.
func Lines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

// chunk returns the chunk with the body [from, to) and the overlap bytes before it. line is the number of the line
// where the body starts.
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
