package recall

import (
	"cmp"
	"context"
	"strings"
	"unicode/utf8"

	"github.com/wasilibs/go-re2"

	"github.com/loci-memory/loci/chunker/pattern"
	"github.com/loci-memory/loci/db"
)

// expander builds an Expansion from the pieces of a text. It keeps only what the Expansion shows. TotalBytes is the
// size of the pieces so far.
type expander struct {
	Expansion
	offset, limit int // as the caller asked
	seen          strings.Builder
	before        byte // the byte before Offset
	number, shown int  // the number of lines so far; the bytes of the lines kept
}

// linesOf returns the expression that finds lines with a match; nil if the pattern is empty.
func linesOf(expression string) (*re2.Regexp, error) {
	if expression == "" {
		return nil, nil
	}
	if len(expression) > maxPatternBytes {
		return nil, db.Invalid("the pattern has %d bytes; it may have at most %d", len(expression), maxPatternBytes)
	}
	lines, err := pattern.Compile(expression)
	if err != nil {
		return nil, db.Invalid("the pattern is not a regular expression that RE2 knows: %v", err)
	}
	return lines, nil
}

// add adds the next piece of the text. If lines is nil, it keeps the bytes from Offset on, up to one character more
// than limit. Otherwise it keeps the lines that match.
func (e *expander) add(ctx context.Context, piece string, lines *re2.Regexp) error {
	begin := e.TotalBytes
	e.TotalBytes += len(piece)
	if begin <= e.offset && e.offset < e.TotalBytes {
		e.Offset = begin + len(db.Beginning(piece, e.offset-begin))
	}
	from := min(max(e.Offset-begin, 0), len(piece))
	if lines != nil {
		return e.addLines(ctx, piece, from, lines)
	}
	if from > 0 {
		e.before = piece[from-1]
	}
	if more := e.limit + utf8.UTFMax - e.seen.Len(); more > 0 {
		e.seen.WriteString(piece[from:min(from+more, len(piece))])
	}
	return nil
}

// addLines keeps the matching lines from byte from of the piece on, as many as the limit allows.
func (e *expander) addLines(ctx context.Context, piece string, from int, lines *re2.Regexp) error {
	if e.Lines == nil {
		e.Lines = []Line{}
	}
	if e.NextOffset != nil {
		return nil
	}
	begin := e.TotalBytes - len(piece)
	e.number += strings.Count(piece[:from], "\n")
	for offset := from; offset < len(piece); {
		if err := ctx.Err(); err != nil {
			return err
		}
		line, _, _ := strings.Cut(piece[offset:], "\n")
		if found := lines.FindStringIndex(line); found != nil {
			if len(e.Lines) == MaxExpandLines || e.shown > 0 && e.shown+len(line) > e.limit {
				next := begin + offset
				e.NextOffset = &next
				return nil
			}
			e.shown += len(line)
			e.Lines = append(e.Lines, Line{Number: e.number + 1, Offset: begin + offset, Match: begin + offset + found[0],
				Text: strings.Clone(db.Beginning(line, e.limit))})
		}
		e.number++
		offset += len(line) + 1
	}
	return nil
}

// cut makes the Expansion's text from the kept bytes. If the text is a range of messages, it ends with a line where
// possible.
func (e *expander) cut(isRange bool) {
	seen := e.seen.String()
	e.Text = db.Beginning(seen, e.limit)
	if isRange {
		e.InLine = e.Offset > 0 && e.before != '\n'
		if e.Offset+len(e.Text) < e.TotalBytes { // the next page then begins with a line, not behind its indentation
			e.Text = e.Text[:cmp.Or(strings.LastIndexByte(e.Text, '\n')+1, len(e.Text))]
		}
	}
	if e.Text == "" && seen != "" { // the first character alone is longer than the limit
		_, size := utf8.DecodeRuneInString(seen)
		e.Text = seen[:size]
	}
	if end := e.Offset + len(e.Text); end < e.TotalBytes {
		e.NextOffset = &end
	}
}
