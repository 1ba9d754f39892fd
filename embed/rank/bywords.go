package rank

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/lexicon"
	"github.com/loci-memory/loci/embed/wordindex"
)

// byWords ranks by BM25. It scores the rows that the index of words names. If the index does not answer, it scores all
// rows or, in a large scope, first the rows with one of the query's rarest terms. It returns the hits of each filter.
// match is nil if the index does not answer.
func (s *Search) byWords(ctx context.Context, d db.DB, q Question, idf *lexicon.IDF, query lexicon.Query) (all [][]Hit,
	match *wordindex.Match, err error) {
	if len(query.Rarest) == 0 {
		return nil, nil, nil
	}
	q.Owners = once(q.Owners)
	if match, err = s.match(ctx, d, q, idf, query); err != nil {
		return nil, nil, err
	}
	defer match.Release()
	for _, f := range q.Filters {
		f.Args = with(f.Args, "q", query.Vector)
		var hits []Hit
		answered := false
		switch {
		case match != nil:
			hits, answered, err = s.matchedRows(ctx, d, q, f, match)
		case s.leavesFew(q):
			hits, err = scanIndex(ctx, d, wordindex.ByIndexes, s.wordsSQL(f.Rows), f.Args)
			hits, answered = related(hits), true
		default:
			hits, answered, err = s.fewByWords(ctx, d, idf, f)
		}
		if err == nil && !answered {
			hits, err = s.sharingWords(ctx, d, q, f, idf.CandidatesAbove(s.IndexRows, query))
		}
		if err != nil {
			return nil, nil, err
		}
		all = append(all, hits)
	}
	return all, match, nil
}

// once returns a function that calls fn the first time, and later returns the same result.
func once(fn func(context.Context) ([]int64, error)) func(context.Context) ([]int64, error) {
	if fn == nil {
		return nil
	}
	called, owners, err := false, []int64(nil), error(nil)
	return func(ctx context.Context) ([]int64, error) {
		if !called {
			called = true
			owners, err = fn(ctx)
		}
		return owners, err
	}
}

// maxListed is the most rows that a filter may leave to be read one by one if there is an index of words.
const maxListed = 500

// match reads the index of words. It returns nil if the index does not answer the question.
func (s *Search) match(ctx context.Context, d db.DB, q Question, idf *lexicon.IDF, query lexicon.Query) (
	*wordindex.Match, error) {
	few := s.leavesFew(q) && q.Most <= maxListed
	if s.Words == nil || q.Owners == nil || idf.Rows() < s.Words.FirstRows || few {
		return nil, nil //nolint:nilnil // as documented
	}
	owners, err := q.Owners(ctx)
	if err != nil || len(owners) > MaxOwners {
		return nil, err
	}
	return s.Words.Match(ctx, d, wordindex.Question{Org: q.Org, Owners: owners, Terms: query.Vector.Indices(),
		Weights: query.Vector.Values()})
}

// maxMatched is the most rows that a search through the index of words scores exactly for a filter.
const maxMatched = 4_000

// fewByWords scores the rows that Filter.Few returns. If Few returns nil, answered is false.
func (s *Search) fewByWords(ctx context.Context, d db.DB, idf *lexicon.IDF, f Filter) (hits []Hit, answered bool,
	err error) {
	few, err := s.few(idf.Rows(), f, FewByWords)
	if err != nil || few == nil {
		return nil, false, err
	}
	args, from := f.withFew(few), fewKeys+` few (key)`+KeyedRow(s.Table, "few.key")+` r`
	if f.Loose {
		args, from = with(f.Args, "few", few), from+` WHERE `+f.Rows
	}
	hits, err = scanIndex(ctx, d, wordindex.ByIndexes, s.nearest(from), args)
	return related(hits), true, err
}

// Filter.Few is called if fewer than one in rarelyLeft of the best rows pass the filter.
const rarelyLeft = 20

// spareRows is how many rows are ranked beyond the page's, in case some of them are no hits.
const spareRows = 50

// matchedRows scores the best rows of a match exactly: more rows if the filter leaves few of them. answered is false if
// it leaves too few.
func (s *Search) matchedRows(ctx context.Context, d db.DB, q Question, f Filter, match *wordindex.Match) (hits []Hit,
	answered bool, err error) {
	sql := s.nearest(s.Words.Matched(f.Rows))
	enough := ArmRows
	if q.WordsOnly || s.Endpoint == nil { // no other arm changes the order
		enough = min(q.Limit+spareRows, ArmRows)
	}
	if f.Loose {
		if f, err = f.byKeys(); err != nil {
			return nil, false, err
		}
	}
	for n := ArmRows; ; {
		keys, rest := match.Best(n, f.Keys)
		args := maps.Clone(f.Args)
		match.Args(args, keys)
		if hits, err = scanIndex(ctx, d, wordindex.ByIndexes, sql, args); err != nil {
			return nil, false, err
		}
		hits = related(hits)
		before := len(hits) // no row that is left out scores higher than these
		for before > 0 && hits[before-1].Score < rest {
			before--
		}
		switch {
		case rest == 0:
			return hits, true, nil
		case before >= enough:
			return hits[:before], true, nil
		}
		if f.Few != nil && len(hits)*rarelyLeft < n {
			if f, err = f.byKeys(); err != nil {
				return nil, false, err
			}
			if f.Keys != nil {
				continue
			}
		}
		more := n * enough / max(before, 1) * 5 / 4
		if n == maxMatched || more > 2*maxMatched {
			return hits, before >= plenty, nil
		}
		n = min(more, maxMatched)
	}
}

// byKeys returns the filter with Keys from Few, if these are few, and without Few. Loose keys are not read one by one.
func (f Filter) byKeys() (Filter, error) {
	most := FewByWords
	if f.Loose {
		most = FewByMeaning
	}
	few, err := f.Few(most)
	if f.Few = nil; few != nil {
		f.Keys = wordindex.Keys(few)
	}
	return f, err
}

// sharingWords scores the rows with one of the candidates. If there are no candidates, or too few hits, it scores all
// rows.
func (s *Search) sharingWords(ctx context.Context, d db.DB, q Question, f Filter, candidates []int32) (hits []Hit,
	err error) {
	terms, err := s.indexTerms(ctx, q, candidates)
	if err == nil && len(terms) > 0 {
		hits, err = scanIndex(ctx, d, ByArrayIndex, s.nearest(s.sharing(f)), with(f.Args, "terms", terms))
	}
	if hits = related(hits); err == nil && len(hits) < plenty {
		hits, err = db.All[Hit](ctx, d, s.wordsSQL(f.Rows), f.Args)
	}
	return related(hits), err
}

// sharing returns SQL for FROM: the rows r with one of the terms @terms that pass the filter. OFFSET keeps Postgres
// from reading them through an index other than the one on terms. The terms include their owners.
func (s *Search) sharing(f Filter) string {
	return `(SELECT * FROM ` + s.Table + ` r WHERE r.org = @org::oid AND r.terms && @terms OFFSET 0) r WHERE ` + f.Rows
}

func with(args pgx.StrictNamedArgs, name string, value any) pgx.StrictNamedArgs {
	args = maps.Clone(args)
	args[name] = value
	return args
}

// indexTerms returns the terms of each owner as the index has them, or none if there are more than MaxOwners.
func (s *Search) indexTerms(ctx context.Context, q Question, terms []int32) ([]int64, error) {
	if s.PlainTerms || q.Owners == nil || len(terms) == 0 {
		return lexicon.Owned(0, terms), nil
	}
	owners, err := q.Owners(ctx)
	if err != nil || len(owners) > MaxOwners {
		return nil, err
	}
	all := make([]int64, 0, len(owners)*len(terms))
	for _, owner := range owners {
		all = append(all, lexicon.Owned(owner, terms)...)
	}
	return all, nil
}

// related drops the rows without a word of the query.
func related(hits []Hit) []Hit {
	return slices.DeleteFunc(hits, func(h Hit) bool { return h.Score <= 0 })
}

func (s *Search) wordsSQL(condition string) string {
	return s.nearest(s.Table + ` r WHERE ` + condition)
}

// nearest returns SQL that selects the rows r with the highest scores. from is what follows FROM.
func (s *Search) nearest(from string) string {
	columns, group := `r.key AS id, r.lex <#> @q AS distance`, ``
	if s.Passages {
		columns, group = `r.key AS id, min(r.lex <#> @q) AS distance`, `GROUP BY r.key`
	}
	return fmt.Sprintf(`
		SELECT id, -distance AS score FROM (
			SELECT %s FROM %s
			%s
			ORDER BY distance, id
			LIMIT %d
		) nearest`, columns, from, group, ArmRows)
}
