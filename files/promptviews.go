package files

import (
	"context"
	"iter"
	"slices"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files/grep"
	"github.com/loci-memory/loci/lru"
)

const (
	// OpenContentChars is the most that the contents of one Open have together, numbers and headers included.
	OpenContentChars = 50_000
	// segmentsRead are the segments of a view that are read at once, after the first: in that most views end.
	segmentsRead = 4
)

// OpenView is what an agent's prompt shows of a file that it has open.
type OpenView struct {
	View
	FileID   string
	FileName string // folder/name
}

// viewed is an open file with what its text takes to be read.
type viewed struct {
	openFile
	Generation int `db:"generation"`
	Lines      int `db:"lines"`
	Paging
}

// Views renders what an agent has open, least recently used first: each file to the agent's limit, all together to their share of the
// window, or to what the limits say. Past that the least recently used views are shortened first, and say so.
func (s *Store) Views(ctx context.Context, org db.Org, agentID string, l Limits) ([]OpenView, error) {
	open, err := db.All[viewed](ctx, s.db, `
		SELECT f.key, f.id, d.name || '/' || f.name AS name, a.last_used_seq, a.pinned, a.first_line, a.line_count, f.generation, f.lines,
		       f.pages, f.media_type
		FROM agent_files a JOIN files f ON f.key = a.file_key JOIN folders d ON d.key = f.folder_key
		WHERE a.org = $1 AND a.agent_id = $2 AND a.is_open
		ORDER BY a.last_used_seq, f.id`, org, agentID)
	if err != nil {
		return nil, err
	}
	views := make([]OpenView, len(open))
	for i, f := range open {
		if views[i], err = s.view(ctx, org, f, l.ViewChars); err != nil {
			return nil, err
		}
	}
	for i, chars := range s.shortened(open, views, l) {
		if views[i], err = s.viewWithin(ctx, org, open[i], chars); err != nil {
			return nil, err
		}
	}
	return views, nil
}

// promptChars counts the characters that a text takes in a prompt.
func (s *Store) promptChars(text string) int {
	if s.o.PromptChars == nil {
		return utf8.RuneCountInString(text)
	}
	return s.o.PromptChars(text)
}

// shortened returns which views must be cut, by index, and to how many characters, so that all fit the limits together.
func (s *Store) shortened(open []viewed, views []OpenView, l Limits) map[int]int {
	if len(open) == 0 {
		return nil
	}
	budget, stub, bounded := l.openBudget(len(open))
	if !bounded {
		return nil
	}
	sizes := make([]lru.File, len(open))
	for i, f := range open {
		sizes[i] = lru.File{ID: f.ID, Seq: f.Seq, Pinned: f.Pinned, Chars: s.promptChars(views[i].Text)}
	}
	cut := map[int]int{}
	for id, chars := range lru.Fit(sizes, budget, stub) {
		cut[slices.IndexFunc(open, func(f viewed) bool { return f.ID == id })] = chars
	}
	return cut
}

// viewWithin renders a view again so that it takes at most so many characters where it is shown, where some count more than once.
func (s *Store) viewWithin(ctx context.Context, org db.Org, f viewed, chars int) (OpenView, error) {
	for limit := chars; ; {
		v, err := s.view(ctx, org, f, limit)
		size := s.promptChars(v.Text)
		if err != nil || size <= chars || limit == 0 {
			return v, err
		}
		limit = min(limit*chars/size, limit-1)
	}
}

func (s *Store) view(ctx context.Context, org db.Org, f viewed, limitChars int) (OpenView, error) {
	lines := f.lines()
	if lines.Offset >= f.Lines { // the file has become shorter since
		lines = LineRange{}
	}
	v, err := s.render(ctx, org, f.Key, f.Generation, f.Lines, f.Paging, lines, limitChars)
	return OpenView{View: v, FileID: f.ID, FileName: f.Name}, err
}

func (s *Store) render(ctx context.Context, org db.Org, fileKey int64, generation, total int, pages Paging, lines LineRange,
	limitChars int) (View, error) {
	first, last := lines.Offset+1, 0
	if lines.Length != nil {
		last = lines.Offset + *lines.Length
	}
	return Render(s.segments(ctx, org, fileKey, generation, first), first, last, total, pages, limitChars)
}

// segments reads a text from the segment in which a line (1-based) begins: that one, and then a few at a time.
func (s *Store) segments(ctx context.Context, org db.Org, fileKey int64, generation, line int) iter.Seq2[grep.Segment, error] {
	return func(yield func(grep.Segment, error) bool) {
		for ordinal, limit := -1, 1; ; limit = segmentsRead {
			batch, err := db.All[grep.Segment](ctx, s.db, `
				SELECT ordinal, first_line, lines, continues, text, 0 AS start_byte FROM file_segments
				WHERE org = @org AND file_key = @file AND generation = @generation AND ordinal > @ordinal
				  AND first_line + greatest(lines, 1) > @line
				ORDER BY ordinal
				LIMIT @limit`,
				pgx.StrictNamedArgs{"org": org, "file": fileKey, "generation": generation, "ordinal": ordinal, "line": line,
					"limit": limit})
			if err != nil {
				yield(grep.Segment{}, err)
				return
			}
			for _, g := range batch {
				if !yield(g, nil) {
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
