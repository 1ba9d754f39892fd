package memoryfile

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
)

// Hit is a file that a search found.
type Hit struct {
	Entry
	Score float64   `db:"score" json:"score"`
	Lines []HitLine `db:"-" json:"lines" doc:"Those that fit best, in the order of the file."`
	Text  string    `db:"content" json:"-"`
}

// HitLine is a line of a file that a search found.
type HitLine struct {
	Line int    `json:"line" doc:"From 1."`
	Text string `json:"text"`
}

// maxHitLines is the most lines that a hit shows.
const maxHitLines = 5

// Query asks for the files of a tree that have some words.
type Query struct {
	Text  string
	Held  db.Held // what does not hold is left out
	Limit int
}

// Search finds the files of a tree by words, the best first.
func (s *Store) Search(ctx context.Context, org db.Org, tree string, q Query) ([]Hit, error) {
	t, err := s.Tree(ctx, org, tree)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(q.Text) == "" {
		return nil, db.Invalid("query has no words; list the files instead")
	}
	args := pgx.StrictNamedArgs{"org": org, "tree": t.Key}
	files := `r.org = @org AND r.tree_key = @tree AND r.deleted_at IS NULL` + q.Held.Where("r", args)
	ranking, err := s.search.Rank(ctx, s.db, embed.Question{Text: q.Text, Limit: q.Limit, WordsOnly: true,
		Filters: []embed.Filter{{Rows: files, Args: args}},
		Sample:  func(ctx context.Context) (*embed.IDF, error) { return s.sample(ctx, org, t) }})
	if err != nil {
		return nil, err
	}
	hits, err := embed.ReadHits[Hit](ctx, s.db, embed.HitQuery{Org: org, Limit: q.Limit, SQL: `
		SELECT ` + entryColumns + `, f.content, hit.score
		FROM ` + embed.HitTable + `
		JOIN memory_files f ON f.org = @org AND f.key = hit.key AND f.deleted_at IS NULL
		ORDER BY hit.place`}, ranking.Rows)
	if !q.Held.All && q.Held.AsOf == nil { // those that ended since they were ranked
		hits = slices.DeleteFunc(hits, func(h Hit) bool { return h.Ended })
	}
	for i := range hits {
		hits[i].Lines = bestLines(q.Text, hits[i].Text)
	}
	return hits, err
}

// sample reads the terms of the files of a tree.
func (s *Store) sample(ctx context.Context, org db.Org, t Tree) (*embed.IDF, error) {
	terms, err := db.All[[]int64](ctx, s.db, `
		SELECT terms FROM memory_files WHERE org = $1 AND tree_key = $2 AND deleted_at IS NULL
		ORDER BY key
		LIMIT $3`, org, t.Key, embed.SampleRows)
	return embed.NewIDF(terms, len(terms)), err
}

// bestLines returns the lines that have the most words of a query.
func bestLines(query, text string) []HitLine {
	terms := embed.TermIDs(query)
	type scored struct {
		HitLine
		score int
	}
	var all []scored
	for i, line := range Lines(text) {
		has := embed.TermIDs(line)
		score := 0
		for _, term := range slices.Compact(slices.Sorted(slices.Values(terms))) {
			if slices.Contains(has, term) {
				score++
			}
		}
		if score > 0 {
			all = append(all, scored{HitLine{i + 1, db.Beginning(line, 500)}, score})
		}
	}
	slices.SortStableFunc(all, func(a, b scored) int { return b.score - a.score })
	all = all[:min(len(all), maxHitLines)]
	slices.SortFunc(all, func(a, b scored) int { return a.Line - b.Line })
	lines := []HitLine{}
	for _, l := range all {
		lines = append(lines, l.HitLine)
	}
	return lines
}
