package files

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Grep finds the lines of an agent's attached files that match a pattern, and returns a page of them. All is searched as it was at one
// moment. Files the agent has open that are on the page count as used. ErrInvalid for a pattern, an include or a number of context lines
// that will not do.
func (s *Store) Grep(ctx context.Context, org db.Org, agentID string, q GrepQuery) (GrepResult, error) {
	pattern, err := Compile(q.Pattern, PatternOptions{CaseSensitive: q.CaseSensitive, Literal: q.Literal})
	if err != nil {
		return GrepResult{}, err
	}
	if err := CheckContext(q.ContextLines); err != nil {
		return GrepResult{}, err
	}
	g := &grep{store: s, org: org, agentID: agentID, pattern: pattern, q: q}
	searching, cancel := context.WithTimeout(ctx, grepPatience)
	defer cancel()
	err = pgx.BeginFunc(searching, s.db, func(tx pgx.Tx) error { return g.run(searching, tx) })
	if err != nil && searching.Err() != nil && ctx.Err() == nil {
		return GrepResult{}, db.Invalid("The search took longer than %v. Narrow it with include, or use a simpler pattern.", grepPatience)
	}
	if err != nil {
		return GrepResult{}, db.Error(err)
	}
	slices.SortStableFunc(g.result.Files, func(a, b FileCount) int { return b.Matches - a.Matches })
	if err := s.addPages(ctx, org, g.used, g.result.Matches); err != nil {
		return GrepResult{}, err
	}
	return g.result, s.use(ctx, org, agentID, g.used)
}

// grepPatience bounds one search (Letta: 30 s). It is over before its request's time is, so that the model is told what to do instead.
const grepPatience = 25 * time.Second

// grep is a search on its way.
type grep struct {
	store   *Store
	org     db.Org
	agentID string
	pattern *Pattern
	q       GrepQuery
	result  GrepResult
	page    []stretch // where the matches of the page are
	used    []string  // ids of the files on the page
}

// run searches in a transaction that sees one moment, which others may join.
func (g *grep) run(ctx context.Context, tx pgx.Tx) error {
	_, shared := g.store.db.(pgx.Tx)
	if !shared {
		if _, err := tx.Exec(ctx, `SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY`); err != nil {
			return err
		}
	}
	stretches, err := g.plan(ctx, tx)
	if err != nil {
		return err
	}
	if err := g.scan(ctx, tx, stretches, shared); err != nil {
		return err
	}
	return g.surround(ctx, tx)
}

// add adds what was found in a stretch; the stretches come in order. It says whether that is all that was asked for.
func (g *grep) add(in stretch, matches []Match) (enough bool) {
	if len(matches) == 0 {
		return false
	}
	if left := GrepCap - g.result.Total; len(matches) > left {
		g.result.Capped, matches = true, matches[:left]
	}
	for i, m := range matches {
		if n := g.result.Total + i; n < g.q.Offset || len(g.result.Matches) == GrepPage {
			continue
		}
		g.result.Matches = append(g.result.Matches, GrepMatch{FileName: in.file.Name, Line: m.Line, Text: m.Text})
		g.page = append(g.page, in)
		if n := len(g.used); n == 0 || g.used[n-1] != in.file.ID {
			g.used = append(g.used, in.file.ID)
		}
	}
	g.result.Total += len(matches)
	if n := len(g.result.Files); n > 0 && g.result.Files[n-1].FileName == in.file.Name {
		g.result.Files[n-1].Matches += len(matches)
	} else if len(matches) > 0 {
		g.result.Files = append(g.result.Files, FileCount{FileName: in.file.Name, Matches: len(matches)})
	}
	return g.result.Capped
}

// surround reads the lines around the matches of the page.
func (g *grep) surround(ctx context.Context, tx pgx.Tx) error {
	if g.q.ContextLines == 0 || len(g.page) == 0 {
		return nil
	}
	around := make([]stretch, len(g.page))
	for i, m := range g.result.Matches {
		around[i] = stretch{file: g.page[i].file, first: m.Line - g.q.ContextLines, end: m.Line + g.q.ContextLines + 1}
	}
	return readStretches(ctx, tx, g.org, byLines, around, func(i int, segments iter.Seq2[Segment, error]) error {
		m := &g.result.Matches[i]
		before, after, err := linesAround(segments, m.Line, g.q.ContextLines)
		m.Before, m.After = before, after
		return err
	})
}
