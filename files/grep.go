package files

import (
	"cmp"
	"context"
	"slices"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files/grep"
)

// GrepQuery asks for the lines in an agent's attached files that match a pattern. Matches are ordered by file name,
// then by line.
type GrepQuery struct {
	Pattern       string
	Include       string // filter for folder/name, see CompileInclude; empty: all files
	ContextLines  int
	Offset        int // number of matches to skip
	CaseSensitive bool
	Literal       bool
}

// GrepMatch is a matching line with the lines around it and its pages. Pages is zero if the file has no pages.
type GrepMatch struct {
	grep.Match
	Pages Pages
}

// FileCount is the number of matches in a file.
type FileCount = grep.Count

// GrepResult is one page of matches.
type GrepResult struct {
	grep.Result
	Matches []GrepMatch
}

// Limits of one grep, as in Letta.
const (
	GrepPage = grep.PageSize
	GrepCap  = grep.MaxMatches
)

// Grep returns a page of the lines in an agent's attached files that match a pattern, from one snapshot of the
// database. Open files on the page count as used. ErrInvalid if the pattern, the include or the number of context lines
// is not valid, or if the search takes too long.
func (s *Store) Grep(ctx context.Context, org db.Org, r Reach, q GrepQuery) (GrepResult, error) {
	pattern, err := grep.Compile(q.Pattern, grep.PatternOptions{CaseSensitive: q.CaseSensitive, Literal: q.Literal})
	if err = cmp.Or(err, grep.CheckContext(q.ContextLines)); err != nil {
		return GrepResult{}, err
	}
	query := grep.Query{Org: org, AgentID: r.AgentID, Users: r.Users, Pattern: pattern,
		ContextLines: q.ContextLines, Offset: q.Offset}
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
	return result, s.used(ctx, use{user: by(org, r), fileIDs: fileIDs})
}

// IndexText indexes new text for Grep in all folders with enough of it. It returns how many index blocks it made.
// Several servers may call it at once.
func (s *Store) IndexText(ctx context.Context) (blocks int, err error) {
	return s.grep.UpdateIndex(ctx, s.db)
}

// IndexWords indexes the words of new chunks in the folders with enough of them. It returns how many index segments it
// made. Several servers may call it at once.
func (s *Store) IndexWords(ctx context.Context) (segments int, err error) {
	return s.search.Words.Update(ctx, s.db)
}

// PruneWords rebuilds those segments of the index of words that have deleted or erased chunks. It returns how many it
// rebuilt.
func (s *Store) PruneWords(ctx context.Context) (segments int, err error) {
	return s.search.Words.Prune(ctx, s.db)
}

// ReweighWords computes the word weights of chunks again if an older version of Loci computed them. It returns the
// number of chunks.
func (s *Store) ReweighWords(ctx context.Context) (rows int, err error) {
	return s.search.Reweigh(ctx, s.db, `
		SELECT r.key, 0::bigint AS owner, f.name || E'\n' || r.heading || E'\n' || r.text AS text,
		       CASE WHEN f.language_given THEN f.language END AS language
		FROM chunks r JOIN files f ON f.org = r.org AND f.key = r.file_key
		WHERE r.org = @org`)
}

// PruneIndex rebuilds those blocks of Grep's index that mostly hold deleted text. It returns how many blocks it made.
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
