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

// OpenView is the part of an open file that an agent's prompt shows.
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

// Views renders what an agent has open, least recently used first: each file to the agent's limit, all together to
// their share of the window, or to what the limits say. Past that the least recently used views are shortened first,
// and say so.
func (s *Store) Views(ctx context.Context, org db.Org, agentID string, l Limits) ([]OpenView, error) {
	open, err := db.All[viewed](ctx, s.db, `
		SELECT f.key, f.id, d.name || '/' || f.name AS name, a.last_used_seq, a.pinned, a.first_line, a.line_count,
		       f.generation, f.lines, f.pages, f.media_type
		FROM agent_files a JOIN files f ON f.key = a.file_key JOIN folders d ON d.key = f.folder_key
		WHERE a.org = $1 AND f.org = $1 AND d.org = $1 AND a.agent_id = $2 AND a.is_open
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

// viewWithin renders a view that takes at most so many characters in a prompt, where some characters count more than
// once.
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
	if lines.Offset >= f.Lines { // a shorter text has replaced it since
		lines = LineRange{}
	}
	v, err := s.render(ctx, storedText{org, f.Key, f.Generation, f.Lines, f.Paging}, lines, limitChars)
	return OpenView{View: v, FileID: f.ID, FileName: f.Name}, err
}

// storedText identifies the text of a file in one generation.
type storedText struct {
	org        db.Org
	fileKey    int64
	generation int
	lines      int
	pages      Paging
}

func (s *Store) render(ctx context.Context, text storedText, lines LineRange, limitChars int) (View, error) {
	first, last := lines.Offset+1, 0
	if lines.Length != nil {
		last = lines.Offset + *lines.Length
	}
	return Render(s.segments(ctx, text, first), Excerpt{first, last, text.lines, text.pages, limitChars})
}

// laterSegments is how many segments are read at once after the first, in which most views end.
const laterSegments = 4

// segments yields the segments of a text from the one in which a line (1-based) begins.
func (s *Store) segments(ctx context.Context, text storedText, line int) iter.Seq2[grep.Segment, error] {
	return func(yield func(grep.Segment, error) bool) {
		for ordinal, limit := -1, 1; ; limit = laterSegments {
			batch, err := db.All[grep.Segment](ctx, s.db, `
				SELECT ordinal, first_line, lines, continues, text, 0 AS start_byte FROM file_segments
				WHERE org = @org AND file_key = @file AND generation = @generation AND ordinal > @ordinal
				  AND first_line + greatest(lines, 1) > @line
				ORDER BY ordinal
				LIMIT @limit`,
				pgx.StrictNamedArgs{"org": text.org, "file": text.fileKey, "generation": text.generation, "ordinal": ordinal,
					"line": line, "limit": limit})
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
