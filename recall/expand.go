package recall

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/wasilibs/go-re2"

	"github.com/loci-memory/loci/db"
)

// Expansion is a stretch of a text that the log has only the beginning of, or of a message's.
type Expansion struct {
	ID         string `json:"id"`
	Offset     int    `json:"offset"`      // of Text, in bytes
	Text       string `json:"text"`        // the original bytes, whole characters
	NextOffset *int   `json:"next_offset"` // nil at the end
	TotalBytes int    `json:"total_bytes"`
	Lines      []Line `json:"lines,omitzero"` // those that a pattern fits, if one was given; Text is empty then
}

// Line is a line of an expanded text. Offsets are in bytes from the text's beginning.
type Line struct {
	Number int    `json:"line"`   // from 1
	Offset int    `json:"offset"` // of its beginning
	Match  int    `json:"match"`  // offset of what the pattern found first
	Text   string `json:"text"`   // its beginning, as much as fits
}

// Bounds of an expansion.
const (
	ExpandBytes    = 16_000 // where the caller does not say
	MaxExpandBytes = 1 << 20
	MaxExpandLines = 200
	maxPattern     = 1_000
)

// Expand returns the bytes of a clipped text, of a message as Text shows it, or of a stretch of the log such as "seq 120-188", from offset on: at most limit of them (0 is ExpandBytes)
// and one whole character at least. With a pattern, a regular expression of RE2, it returns the lines from offset on that it fits, as many
// as fit. ErrNotFound if the agent has no such text.
func (s *Store) Expand(ctx context.Context, org db.Org, agentID, id string, offset, limit int, pattern string) (Expansion, error) {
	if limit == 0 {
		limit = ExpandBytes
	}
	if limit < 1 || limit > MaxExpandBytes {
		return Expansion{}, db.Invalid("limit is %d; it must be from 1 to %d bytes", limit, MaxExpandBytes)
	}
	text, err := s.whole(ctx, org, agentID, id)
	if err != nil {
		return Expansion{}, err
	}
	if offset < 0 || offset > len(text) {
		return Expansion{}, db.Invalid("offset is %d; the text has %d bytes", offset, len(text))
	}
	for offset > 0 && offset < len(text) && !utf8.RuneStart(text[offset]) {
		offset--
	}
	e := Expansion{ID: id, Offset: offset, TotalBytes: len(text)}
	if pattern != "" {
		return e.matching(text, limit, pattern)
	}
	end := offset + len(beginning(text[offset:], limit))
	for end == offset && end < len(text) { // a character larger than the limit
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	e.Text = text[offset:end]
	if end < len(text) {
		e.NextOffset = &end
	}
	return e, nil
}

func (e Expansion) matching(text string, limit int, pattern string) (Expansion, error) {
	if len(pattern) > maxPattern {
		return Expansion{}, db.Invalid("the pattern has %d bytes; it may have at most %d", len(pattern), maxPattern)
	}
	fits, err := re2.Compile(pattern)
	if err != nil {
		return Expansion{}, db.Invalid("the pattern is not a regular expression that RE2 knows: %v", err)
	}
	e.Lines = []Line{}
	number := 1 + strings.Count(text[:e.Offset], "\n")
	shown := 0
	for at := e.Offset; at < len(text); number++ {
		line, _, _ := strings.Cut(text[at:], "\n")
		if found := fits.FindStringIndex(line); found != nil {
			if len(e.Lines) == MaxExpandLines || shown > 0 && shown+len(line) > limit {
				e.NextOffset = &at
				return e, nil
			}
			shown += len(line)
			e.Lines = append(e.Lines, Line{Number: number, Offset: at, Match: at + found[0], Text: beginning(line, limit)})
		}
		at += len(line) + 1
	}
	return e, nil
}
