package files

import (
	"cmp"
	"context"
	"slices"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files/grep"
)

// GrepQuery asks for the lines that match a pattern in an agent's attached files. Matches are ordered by file name,
// then line.
type GrepQuery struct {
	Pattern       string
	Include       string // filter of folder/name, see CompileInclude; empty is all
	ContextLines  int
	Offset        int // matches to skip
	CaseSensitive bool
	Literal       bool
}

// GrepMatch is a matching line with the lines around it and its pages, which are zero if the file has none.
type GrepMatch struct {
	grep.Match
	Pages Pages
}

// FileCount is the number of matches in a file.
type FileCount = grep.Count

// GrepResult is a page of matches with their pages.
type GrepResult struct {
	grep.Result
	Matches []GrepMatch
}

// Bounds of one grep, as Letta's.
const (
	GrepPage = grep.PageSize
	GrepCap  = grep.MaxMatches
)

// Grep returns a page of the lines of an agent's attached files that match a pattern, all as of one moment. Open files
// on the page count as used. ErrInvalid for a pattern, an include or a number of context lines that is not valid, and
// for a search that takes too long.
func (s *Store) Grep(ctx context.Context, org db.Org, agentID string, q GrepQuery) (GrepResult, error) {
	pattern, err := grep.Compile(q.Pattern, grep.PatternOptions{CaseSensitive: q.CaseSensitive, Literal: q.Literal})
	if err = cmp.Or(err, grep.CheckContext(q.ContextLines)); err != nil {
		return GrepResult{}, err
	}
	query := grep.Query{Org: org, AgentID: agentID, Pattern: pattern, ContextLines: q.ContextLines, Offset: q.Offset}
	var invalid error
	if q.Include != "" {
		query.Include, invalid = CompileInclude(q.Include)
	}
	found, err := s.grep.Search(ctx, s.db, query)
	if err == nil && found.Searched+found.Waiting == 0 {
		err = invalid
	}
	if err != nil {
		return GrepResult{}, err
	}
	result := GrepResult{found, mapped(found.Matches, func(m grep.Match) GrepMatch { return GrepMatch{Match: m} })}
	fileIDs := slices.Compact(mapped(found.Matches, func(m grep.Match) string { return m.FileID }))
	if err := s.addPages(ctx, org, fileIDs, result.Matches); err != nil {
		return GrepResult{}, err
	}
	return result, s.used(ctx, use{user: user{org, agentID}, fileIDs: fileIDs})
}

// IndexText indexes new text for Grep, in all folders that have enough of it, and returns how many blocks of the index
// it made. Several servers may call it at once.
func (s *Store) IndexText(ctx context.Context) (blocks int, err error) {
	return s.grep.UpdateIndex(ctx, s.db)
}

// IndexWords indexes the words of new chunks, in the folders that have enough of them, and returns how many segments of
// that index it made. Several servers may call it at once.
func (s *Store) IndexWords(ctx context.Context) (segments int, err error) {
	return s.search.Words.Update(ctx, s.db)
}

// PruneWords makes the segments of the index of words anew that have deleted or erased chunks, and returns how many it
// made.
func (s *Store) PruneWords(ctx context.Context) (segments int, err error) {
	return s.search.Words.Prune(ctx, s.db)
}

// ReweighWords weighs the words of chunks anew that an older version of Loci weighed, and returns their number.
func (s *Store) ReweighWords(ctx context.Context) (rows int, err error) {
	return s.search.Reweigh(ctx, s.db, `
		SELECT r.key, 0::bigint AS owner, f.name || E'\n' || r.heading || E'\n' || r.text AS text
		FROM chunks r JOIN files f ON f.org = r.org AND f.key = r.file_key
		WHERE r.org = @org`)
}

// PruneIndex rebuilds the parts of Grep's index that mostly hold deleted text, and returns how many blocks it made.
func (s *Store) PruneIndex(ctx context.Context) (blocks int, err error) {
	return s.grep.PruneIndex(ctx, s.db)
}

// addPages sets the pages of matches.
func (s *Store) addPages(ctx context.Context, org db.Org, fileIDs []string, matches []GrepMatch) error {
	type file struct {
		Paging
		ID string `db:"id"`
	}
	paged, err := db.All[file](ctx, s.db, `
		SELECT id, pages, media_type FROM files WHERE org = $1 AND id = ANY ($2) AND pages IS NOT NULL`, org, fileIDs)
	for _, f := range paged {
		for i, m := range matches {
			if m.FileID == f.ID {
				matches[i].Pages = f.Of(m.Line, m.Line)
			}
		}
	}
	return err
}
