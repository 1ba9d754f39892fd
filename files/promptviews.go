package files

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"unicode/utf8"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files/grep"
	"github.com/loci-memory/loci/lru"
)

// OpenView is the part of an open file that an agent's prompt shows.
type OpenView struct {
	View
	FileID   string
	FileName string // folder/name
}

// Views renders the files that an agent has open, least recently used first. Each view stays within the limit of one
// file. All together stay within their share of the window, or the limit for all files; to keep it, the least recently
// used views are shortened first, and say so.
func (s *Store) Views(ctx context.Context, org db.Org, r Reach, l Limits) ([]OpenView, error) {
	open, err := s.openSet(org, r).files(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.readHeads(ctx, org, open); err != nil {
		return nil, err
	}
	views := make([]OpenView, len(open))
	for i, f := range open {
		if views[i], err = s.view(ctx, org, f, l.ViewChars); err != nil {
			return nil, err
		}
	}
	if err := s.limitAutomatic(ctx, org, views, l, open); err != nil {
		return nil, err
	}
	for i, chars := range s.shortened(open, views, l) {
		if views[i], err = s.viewWithin(ctx, org, open[i], viewLimit{chars, chars, utf8.RuneCountInString}); err != nil {
			return nil, err
		}
	}
	return views, nil
}

// limitAutomatic cuts the views of files that opened by themselves to their share of the window. The newest files are
// cut first, so that the other views stay the same.
func (s *Store) limitAutomatic(ctx context.Context, org db.Org, views []OpenView, l Limits, open []openFile) error {
	var order []int
	for i, f := range open {
		if f.Automatic {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(open[a].Key, open[b].Key) })
	leftTokens := l.automaticTokens()
	for _, i := range order {
		leftTokens -= markupTokens
		if s.promptTokens(views[i].Shown()) > leftTokens {
			within := viewLimit{utf8.RuneCountInString(views[i].Text), max(leftTokens, 0), s.promptTokens}
			var err error
			if views[i], err = s.viewWithin(ctx, org, open[i], within); err != nil {
				return err
			}
		}
		leftTokens -= s.promptTokens(views[i].Shown())
	}
	return nil
}

// promptTokens counts the tokens of a text in a prompt.
func (s *Store) promptTokens(text string) int {
	if s.o.PromptTokens == nil {
		return utf8.RuneCountInString(text) / charsPerToken
	}
	return s.o.PromptTokens(text)
}

// shortened maps the index of each view that must be cut to its allowed characters, so that all views together stay
// within the limits.
func (s *Store) shortened(open []openFile, views []OpenView, l Limits) map[int]int {
	if len(open) == 0 {
		return nil
	}
	budget, stub, bounded := l.openBudget(len(open))
	if !bounded {
		return nil
	}
	sizes := make([]lru.File, len(open))
	for i, f := range open {
		sizes[i] = lru.File{ID: f.ID, Seq: f.Seq, Pinned: f.Pinned, Chars: utf8.RuneCountInString(views[i].Shown())}
	}
	cut := map[int]int{}
	for id, chars := range lru.Fit(sizes, budget, stub) {
		cut[slices.IndexFunc(open, func(f openFile) bool { return f.ID == id })] = chars
	}
	return cut
}

// viewLimit limits a view: at most chars characters, and at most most by size, which measures the view in a prompt.
type viewLimit struct {
	chars, most int
	size        func(text string) int
}

// viewWithin renders a view within a limit.
func (s *Store) viewWithin(ctx context.Context, org db.Org, f openFile, l viewLimit) (OpenView, error) {
	for limit := l.chars; ; {
		v, err := s.view(ctx, org, f, limit)
		size := l.size(v.Shown())
		if err != nil || size <= l.most || limit == 0 {
			return v, err
		}
		limit = min(limit*l.most/size, limit-1)
	}
}

func (s *Store) view(ctx context.Context, org db.Org, f openFile, limitChars int) (OpenView, error) {
	v, err := s.render(ctx, org, f, f.excerpt(f.shown(), limitChars))
	return OpenView{View: v, FileID: f.ID, FileName: f.Name}, err
}

// shown returns the lines that are open. If a shorter text has replaced the file's text since, it returns all lines.
func (f openFile) shown() LineRange {
	if f.Offset >= f.Lines {
		return LineRange{}
	}
	return f.LineRange
}

// excerpt returns lines of an open file as a view of at most so many characters.
func (f openFile) excerpt(lines LineRange, limitChars int) Excerpt {
	e := Excerpt{First: lines.Offset + 1, Total: f.Lines, Pages: f.Paging, LimitChars: limitChars}
	if lines.Length != nil {
		e.Last = lines.Offset + *lines.Length
	}
	return e
}

func (s *Store) render(ctx context.Context, org db.Org, f openFile, e Excerpt) (View, error) {
	return Render(s.segments(ctx, org, f, e.First), e)
}

// segmentColumns are the columns of a readSegment from file_segments g. The statement's argument $1 is the
// organization.
const segmentColumns = `g.ordinal, g.first_line, g.lines, g.continues, g.text, 0 AS start_byte, NOT EXISTS (
	SELECT FROM file_segments n
	WHERE n.org = $1 AND n.file_key = g.file_key AND n.generation = g.generation AND n.ordinal = g.ordinal + 1) AS final`

// readHeads reads, for each open file, the segment in which its view begins. Most views also end there.
func (s *Store) readHeads(ctx context.Context, org db.Org, open []openFile) error {
	if len(open) == 0 {
		return nil
	}
	type head struct {
		readSegment
		Place int `db:"place"`
	}
	heads, err := db.All[head](ctx, s.db, `
		SELECT (f.place - 1)::integer AS place, `+segmentColumns+`
		FROM unnest($2::bigint[], $3::integer[], $4::integer[]) WITH ORDINALITY AS f (key, generation, line, place)
		CROSS JOIN LATERAL (
			SELECT * FROM file_segments g
			WHERE g.org = $1 AND g.file_key = f.key AND g.generation = f.generation
			  AND g.first_line + greatest(g.lines, 1) > f.line
			ORDER BY g.ordinal
			LIMIT 1
		) g`, org, mapped(open, func(f openFile) int64 { return f.Key }),
		mapped(open, func(f openFile) int { return f.Generation }),
		mapped(open, func(f openFile) int { return f.shown().Offset + 1 }))
	for i := range heads {
		open[heads[i].Place].head = &heads[i].readSegment
	}
	return err
}

// laterSegments is how many segments are read at once behind the first one.
const laterSegments = 4

// segments yields the segments of an open file, beginning with the one in which a line (from 1) begins. If the file's
// head was read, it begins with the head.
func (s *Store) segments(ctx context.Context, org db.Org, f openFile, line int) iter.Seq2[grep.Segment, error] {
	return func(yield func(grep.Segment, error) bool) {
		ordinal, limit := -1, 1
		if f.head != nil {
			if !yield(f.head.Segment, nil) || f.head.Final {
				return
			}
			ordinal, limit = f.head.Ordinal, laterSegments
		}
		for ; ; limit = laterSegments {
			batch, err := db.All[readSegment](ctx, s.db, `
				SELECT `+segmentColumns+`
				FROM file_segments g
				WHERE g.org = $1 AND g.file_key = $2 AND g.generation = $3 AND g.ordinal > $4
				  AND g.first_line + greatest(g.lines, 1) > $5
				ORDER BY g.ordinal
				LIMIT $6`, org, f.Key, f.Generation, ordinal, line, limit)
			if err != nil {
				yield(grep.Segment{}, err)
				return
			}
			for _, g := range batch {
				if !yield(g.Segment, nil) || g.Final {
					return
				}
				ordinal = g.Ordinal
			}
			if len(batch) < limit {
				return
			}
		}
	}
}
