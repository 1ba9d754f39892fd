package grep

import (
	"context"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// SegmentBytes is the maximum size of a segment.
const SegmentBytes = 64 << 10

// Segment is a part of a text: whole lines, or a part of one line that is longer than SegmentBytes. Joined in order,
// the segments of a text are the text.
type Segment struct {
	Ordinal   int    // number among the text's segments, from 0
	FirstLine int    // line on which it starts, from 1
	Lines     int    // number of line ends, plus 1 for a last line without one
	StartByte int    // position in the text, from 0
	Continues bool   // it starts within a line that began in an earlier segment
	Text      string // never cut within a character
}

// Segments splits a text. An empty text has no segments.
func Segments(text string) iter.Seq[Segment] {
	return func(yield func(Segment) bool) {
		s := Segment{FirstLine: 1}
		for s.StartByte < len(text) {
			rest := text[s.StartByte:]
			s.Text = rest[:segmentEnd(rest, s.Continues)]
			s.Lines = strings.Count(s.Text, "\n")
			whole := strings.HasSuffix(s.Text, "\n")
			if !whole && len(s.Text) == len(rest) {
				s.Lines++
			}
			if !yield(s) {
				return
			}
			s = Segment{Ordinal: s.Ordinal + 1, FirstLine: s.FirstLine + s.Lines,
				StartByte: s.StartByte + len(s.Text), Continues: !whole}
		}
	}
}

// segmentEnd returns the length of the first segment of rest. It takes the remainder of a line that began before rest,
// else as many whole lines as fit, else as much of one line as fits.
func segmentEnd(rest string, continues bool) int {
	head := rest[:min(len(rest), SegmentBytes)]
	if continues {
		if end := strings.IndexByte(head, '\n'); end >= 0 {
			return end + 1
		}
	} else if len(head) == len(rest) {
		return len(rest)
	} else if end := strings.LastIndexByte(head, '\n'); end >= 0 {
		return end + 1
	}
	return runeBoundary(rest, len(head))
}

// runeBoundary returns the last position in s, at most n, that is not within a character. In invalid UTF-8 it returns
// n.
func runeBoundary(s string, n int) int {
	for i := n; i > n-utf8.UTFMax && 0 < i && i < len(s); i-- {
		if utf8.RuneStart(s[i]) {
			return i
		}
	}
	return n
}

// segmentQuery reads the segments of spans with one of the statements below.
type segmentQuery struct {
	db    db.DB
	org   db.Org
	sql   string
	spans []span
}

// byOrdinals selects segments by their ordinals in spans. byLines selects segments that contain a line of a span, from
// first to before stop.
const (
	byOrdinals = segmentsSQL + ` AND g.ordinal >= n.first AND g.ordinal < n.stop ORDER BY n.ord, g.ordinal`
	byLines    = segmentsSQL + `
		AND g.first_line < n.stop AND g.first_line + greatest(g.lines, 1) > n.first ORDER BY n.ord, g.ordinal`
	segmentsSQL = `
		SELECT n.ord - 1, g.ordinal, g.first_line, g.lines, g.continues, g.text
		FROM unnest($2::bigint[], $3::int[], $4::int[], $5::int[]) WITH ORDINALITY AS n (key, generation, first, stop, ord)
		JOIN file_segments g ON g.org = $1 AND g.file_key = n.key AND g.generation = n.generation`
)

// each calls fn with the segments of each span, in order, until fn returns an error. It skips a span without segments.
func (q segmentQuery) each(ctx context.Context, fn func(i int, segments iter.Seq2[Segment, error]) error) error {
	keys, generations := make([]int64, len(q.spans)), make([]int, len(q.spans))
	firsts, ends := make([]int, len(q.spans)), make([]int, len(q.spans))
	for i, s := range q.spans {
		keys[i], generations[i], firsts[i], ends[i] = s.file.Key, s.file.Generation, s.first, s.end
	}
	rows, err := q.db.Query(ctx, q.sql, q.org, keys, generations, firsts, ends)
	if err != nil {
		return err
	}
	defer rows.Close()
	stream := segmentStream{rows: rows}
	for stream.next(); stream.err == nil && stream.span >= 0; {
		i := stream.span
		if err := fn(i, stream.of(i)); err != nil {
			return err
		}
		for stream.err == nil && stream.span == i { // fn may leave segments unread
			stream.next()
		}
	}
	return stream.err
}

// segmentStream reads the segments of one span after the other.
type segmentStream struct {
	rows    pgx.Rows
	span    int // index of the current segment's span; -1 at the end
	segment Segment
	err     error
}

func (s *segmentStream) next() {
	if !s.rows.Next() {
		s.span, s.err = -1, s.rows.Err()
		return
	}
	g := &s.segment
	s.err = s.rows.Scan(&s.span, &g.Ordinal, &g.FirstLine, &g.Lines, &g.Continues, &g.Text)
}

// of yields the segments of one span, from the current segment on.
func (s *segmentStream) of(span int) iter.Seq2[Segment, error] {
	return func(yield func(Segment, error) bool) {
		for s.err == nil && s.span == span {
			if !yield(s.segment, nil) {
				return
			}
			s.next()
		}
		if s.err != nil {
			yield(Segment{}, s.err)
		}
	}
}
