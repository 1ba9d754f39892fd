// Package grep finds the lines of stored files that match a pattern. It reads the segments of files, and owns the
// n-gram index that narrows a search: the tables gram_blocks and gram_units, and the column files.gram_generation.
//
// Each file uses only the files named before it:
//   - patterns: required.go ngram.go prefilter.go escapes.go hyphens.go pattern.go
//   - texts, and which parts are searched: segment.go match.go plan.go scan.go
//   - the index, and searches: index.go grep.go
package grep

import (
	"context"
	"iter"
	"runtime"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Limits of one search, as in Letta.
const (
	PageSize   = 20   // matches per page
	MaxMatches = 1000 // a search ends after so many matches
)

// maxDuration is the time limit of a search (Letta: 30 s). It is shorter than a request's limit, so that the caller
// gets an answer that says what to do instead.
const maxDuration = 25 * time.Second

// Searcher searches the files attached to agents, and maintains the index of their texts.
type Searcher struct {
	// IndexChars is the minimum number of a folder's characters that are indexed together. Less text is scanned without
	// the index.
	IndexChars int64

	helpers chan struct{} // one slot per additional connection that searches may take
}

// New returns a Searcher. All its searches together use one additional connection per further processor.
func New() *Searcher {
	return &Searcher{IndexChars: defaultIndexChars, helpers: make(chan struct{}, max(runtime.GOMAXPROCS(0)-1, 1))}
}

// Query asks for the lines in an agent's attached files that match a pattern.
type Query struct {
	Org          db.Org
	AgentID      string
	Users        db.UserScope // whose folders of the agent it searches
	Pattern      *Pattern
	Include      func(fullName string) bool // selects files by folder/name; nil: all files
	ContextLines int                        // lines shown before and after a match, see CheckContext
	Offset       int                        // number of matches to skip
}

// Count is the number of matches in a file.
type Count struct {
	FileName string
	Matches  int
}

// Result is one page of matches, ordered by file name, then by line. A search ends after MaxMatches matches; Capped
// then says that Total and the last count are lower bounds.
type Result struct {
	Attached int // number of attached files
	Searched int // number of included files with text
	Waiting  int // number of included files without text yet
	Total    int // number of matches
	Capped   bool
	Files    []Count // most matches first, then by name
	Matches  []Match // the page, at most PageSize
}

// search is one run of a query.
type search struct {
	*Searcher
	Query
	db     db.DB
	result Result
	spans  []span // span of each match of the page
	broken bool   // some of the files may have words that are broken by a hyphen
}

// Search returns a page of matches. It searches one snapshot of the database; within a transaction, that transaction's.
// ErrInvalid if the search takes too long.
func (s *Searcher) Search(ctx context.Context, d db.DB, q Query) (Result, error) {
	run := &search{Searcher: s, Query: q, db: d}
	bounded, cancel := context.WithTimeout(ctx, maxDuration)
	defer cancel()
	err := pgx.BeginFunc(bounded, d, func(tx pgx.Tx) error { return run.do(bounded, tx) })
	switch {
	case err != nil && bounded.Err() != nil && ctx.Err() == nil:
		return Result{}, db.Invalid("The search took longer than %v. Narrow it with include, or use a simpler pattern.",
			maxDuration)
	case err != nil:
		return Result{}, db.Error(err)
	}
	slices.SortStableFunc(run.result.Files, func(a, b Count) int { return b.Matches - a.Matches })
	return run.result, nil
}

func (s *search) do(ctx context.Context, tx pgx.Tx) error {
	_, shared := s.db.(pgx.Tx)
	if !shared {
		if _, err := tx.Exec(ctx, `SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY`); err != nil {
			return err
		}
	}
	spans, err := s.plan(ctx, tx)
	if err != nil {
		return err
	}
	if err := s.scan(ctx, tx, spans, shared); err != nil {
		return err
	}
	return s.readContext(ctx, tx)
}

// add adds the matches of a span to the result. Spans come in order. It reports whether the search has enough.
func (s *search) add(searched span, matches []Match) (enough bool) {
	if len(matches) == 0 {
		return false
	}
	if room := MaxMatches - s.result.Total; len(matches) > room {
		s.result.Capped, matches = true, matches[:room]
	}
	for i, m := range matches {
		if n := s.result.Total + i; n < s.Offset || len(s.result.Matches) == PageSize {
			continue
		}
		m.FileID, m.FileName = searched.file.ID, searched.file.Name
		s.result.Matches = append(s.result.Matches, m)
		s.spans = append(s.spans, searched)
	}
	s.result.Total += len(matches)
	if n := len(s.result.Files); n > 0 && s.result.Files[n-1].FileName == searched.file.Name {
		s.result.Files[n-1].Matches += len(matches)
	} else if len(matches) > 0 {
		s.result.Files = append(s.result.Files, Count{FileName: searched.file.Name, Matches: len(matches)})
	}
	return s.result.Capped
}

// readContext reads the lines around the matches of the page.
func (s *search) readContext(ctx context.Context, tx pgx.Tx) error {
	if s.ContextLines == 0 || len(s.spans) == 0 {
		return nil
	}
	around := make([]span, len(s.spans))
	for i, m := range s.result.Matches {
		around[i] = span{file: s.spans[i].file, first: m.Line - s.ContextLines, end: m.Line + s.ContextLines + 1}
	}
	read := segmentQuery{db: tx, org: s.Org, sql: byLines, spans: around}
	return read.each(ctx, func(i int, segments iter.Seq2[Segment, error]) error {
		m := &s.result.Matches[i]
		before, after, err := linesAround(segments, m.Line, s.ContextLines)
		m.Before, m.After = before, after
		return err
	})
}
