package file

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/lexicon"
	"github.com/loci-memory/loci/embed/rank"
)

// Hit is a file that a search found.
type Hit struct {
	Entry
	Score       float64 `db:"score" json:"score"`
	WordsRank   int     `db:"words_rank" json:"words_rank" doc:"From 1; 0 if it shares no word with the query."`
	MeaningRank int     `db:"meaning_rank" json:"meaning_rank" doc:"From 1; 0 if it was not ranked by meaning."`

	Explanation *rank.HitExplanation `db:"-" json:"explain,omitempty" doc:"How it was ranked, with explain=true."`

	SearchedFor string `db:"-" json:"searched_for,omitempty"`

	Lines []HitLine `db:"-" json:"lines" doc:"Those that fit best, in the order of the file."`
	Text  string    `db:"content" json:"-"`

	// FirstLine and LastLine, from 1, are the part of the file that is nearest by meaning; 0 if the file was not ranked
	// by meaning.
	FirstLine int `db:"-" json:"-"`
	LastLine  int `db:"-" json:"-"`
}

// HitLine is a line of a file that a search found.
type HitLine struct {
	Line int    `json:"line" doc:"From 1."`
	Text string `json:"text"`
}

// maxHitLines is how many lines a hit shows.
const maxHitLines = 5

// Query asks for the files of a tree about Text.
type Query struct {
	Text      string
	Held      db.Held // which files hold; the others are left out
	Limit     int
	AsWritten bool // other spellings are not searched
	Explain   bool // hits and results say how they were ranked

	WordsOnly   bool    // do not ask the embeddings endpoint
	MeaningOnly bool    // rank by meaning alone; by words if the endpoint does not answer
	Weight      float64 // weight of meaning, see rank.Question
}

// Results are the files that a search found, best first.
type Results struct {
	Hits      []Hit
	ByMeaning bool
	rank.Remarks

	// SearchedFor is the query in another spelling, if some words of it are in no file and the hits are for that
	// spelling; else empty.
	SearchedFor string
	Explanation *rank.Explanation // set if Query.Explain
}

// Search finds the files of a tree by words, and also by meaning if an embedding model answers.
func (s *Store) Search(ctx context.Context, org db.Org, tree string, q Query) (Results, error) {
	t, err := s.Tree(ctx, org, tree)
	if err != nil {
		return Results{}, err
	}
	if strings.TrimSpace(q.Text) == "" {
		return Results{}, db.Invalid("query has no words; list the files instead")
	}
	if err := rank.CheckQuery(q.Text); err != nil {
		return Results{}, err
	}
	args := pgx.StrictNamedArgs{"org": org, "tree": t.Key}
	files := `r.org = @org AND r.tree_key = @tree AND r.deleted_at IS NULL` + q.Held.Where("r", args)
	vectors := `v.org = @org AND v.tree_key = @tree AND EXISTS (
		SELECT FROM memory_files r WHERE r.key = v.file_key AND ` + files + `)`
	question := rank.Question{Text: q.Text, Limit: q.Limit, WordsOnly: q.WordsOnly,
		MeaningOnly: q.MeaningOnly, Weight: q.Weight, AsWritten: q.AsWritten,
		Filters: []rank.Filter{{Rows: files, Vectors: vectors, Args: args}},
		Sample:  func(ctx context.Context) (*lexicon.IDF, error) { return s.sample(ctx, org, t) },
		Texts: func(ctx context.Context, most int) ([]string, error) {
			return db.All[string](ctx, s.db, `
				SELECT left(content, 65536) FROM memory_files WHERE org = $1 AND tree_key = $2 AND deleted_at IS NULL
				ORDER BY key DESC LIMIT $3`, org, t.Key, most)
		}}
	out, spelling, err := rank.Respelled(ctx, s.db, s.search, question,
		func(text string, guessed bool) (rank.Searched[Results], error) {
			q.Text, question.Text, question.Guessed = text, text, guessed
			return s.ranked(ctx, org, t, q, question)
		})
	out.SearchedFor = spelling
	for i := range out.Hits {
		out.Hits[i].SearchedFor = spelling
	}
	return out, err
}

// ranked runs one search.
func (s *Store) ranked(ctx context.Context, org db.Org, t Tree, q Query, question rank.Question) (
	out rank.Searched[Results], err error) {
	ranking, err := s.search.Rank(ctx, s.db, question)
	if err != nil {
		return out, err
	}
	rows := slices.Clone(ranking.Rows)
	if err := s.rerank(ctx, org, ranking, rows); err != nil {
		return out, err
	}
	scale := 0.0
	if len(rows) > 0 {
		scale = ranking.Calibrated(1, rows[0].Score)
	}
	ranking.Calibrate(rows)
	hits, err := rank.ReadHits[Hit](ctx, s.db, rank.HitQuery[Hit]{Org: org, Limit: q.Limit,
		Keep: confirm(ranking), SQL: `
		SELECT ` + db.Named(entryColumns) + `, f.content, ` + rank.HitColumns + `
		FROM ` + rank.HitTable + rank.KeyedRow("memory_files", "hit.key") + ` f
		WHERE f.deleted_at IS NULL
		ORDER BY hit.place`}, rows)
	// Drop files that ended after they were ranked.
	if !q.Held.All && q.Held.AsOf == nil {
		hits = slices.DeleteFunc(hits, func(h Hit) bool { return h.Ended })
	}
	if err == nil && ranking.ByMeaning {
		err = s.addNearest(ctx, org, t, ranking, hits)
	}
	for i := range hits {
		if hits[i].Lines = bestLines(q.Text, hits[i].Text); len(hits[i].Lines) == 0 {
			hits[i].Lines = hits[i].nearestLines()
		}
	}
	out.Ranking, out.Results = ranking, Results{Hits: hits, ByMeaning: ranking.ByMeaning,
		Remarks: ranking.Remarks(len(hits), len(hits) == q.Limit)}
	for _, h := range hits {
		out.Texts = append(out.Texts, h.Path+"\n"+h.Text)
	}
	if q.Explain {
		out.Results.explain(ranking, scale)
	}
	return out, err
}

// rerank lets the reranker, if there is one, order the best rows of a ranking.
func (s *Store) rerank(ctx context.Context, org db.Org, ranking rank.Ranking, rows []rank.Scored) error {
	if !ranking.Reranks() {
		return nil
	}
	var keys []int64
	for _, row := range rows[:min(len(rows), rank.RerankRows)] {
		keys = append(keys, row.ID)
	}
	texts, err := ranking.TextsOf(keys, func(keys []int64) ([]rank.Text, error) {
		return db.All[rank.Text](ctx, s.db, `
			SELECT key, left(path || E'\n' || content, $3) AS text FROM memory_files WHERE org = $1 AND key = ANY ($2)`,
			org, keys, rank.NearChars)
	})
	if err == nil {
		ranking.RerankTexts(ctx, rows, texts)
	}
	return err
}

// explain adds to the results how they were ranked. scale is that of a score in the ranking to one of a hit.
func (r *Results) explain(ranking rank.Ranking, scale float64) {
	r.Explanation = ranking.Explanation()
	for i, h := range r.Hits {
		r.Hits[i].Explanation = ranking.ExplainHit(rank.Ranked{Key: h.Key, Text: h.Path + "\n" + h.Text,
			Score: h.Score, Scale: scale})
	}
	if len(r.Hits) > 0 {
		r.Hits[0].Explanation.Search = r.Explanation
	}
}

// confirm returns a function that reports whether a ranked file is a hit.
func confirm(ranking rank.Ranking) func(*Hit) (bool, error) {
	return func(h *Hit) (bool, error) {
		return ranking.Confirm(h.Path+"\n"+h.Text, &h.WordsRank, h.MeaningRank), nil
	}
}

// addNearest adds to each hit the part of the file that is nearest to the query by meaning.
func (s *Store) addNearest(ctx context.Context, org db.Org, t Tree, r rank.Ranking, hits []Hit) error {
	type part struct {
		File  int64 `db:"file_key"`
		First int   `db:"first_line"`
		Last  int   `db:"last_line"`
	}
	keys := make([]int64, len(hits))
	for i, h := range hits {
		keys[i] = h.Key
	}
	parts, err := db.All[part](ctx, s.db, fmt.Sprintf(`
		SELECT DISTINCT ON (v.file_key) v.file_key, v.first_line, v.last_line
		FROM memory_file_vectors v
		WHERE v.org = @org AND v.tree_key = @tree AND v.file_key = ANY (@keys) AND v.space_id = @space
		ORDER BY v.file_key, v.embedding::halfvec(%d) <#> @q::halfvec(%[1]d), v.chunk`, r.Space.Dimension),
		pgx.StrictNamedArgs{"org": org, "tree": t.Key, "keys": keys, "space": r.Space.ID, "q": *r.Vector})
	for i := range hits {
		for _, p := range parts {
			if p.File == hits[i].Key {
				hits[i].FirstLine, hits[i].LastLine = p.First, p.Last
			}
		}
	}
	return err
}

// Nearest returns the part of the file that is nearest by meaning, and its first and last line, from 1. ok is false if
// the file was not ranked by meaning.
func (h Hit) Nearest() (part string, first, last int, ok bool) {
	lines := Lines(h.Text)
	first, last = h.FirstLine, min(h.LastLine, len(lines))
	if first < 1 || first > last { // or the file has another text since
		return "", 0, 0, false
	}
	return strings.Join(lines[first-1:last], "\n"), first, last, true
}

// nearestLines returns the first lines, without blank ones, of the part that is nearest by meaning.
func (h Hit) nearestLines() []HitLine {
	part, first, _, _ := h.Nearest()
	lines := []HitLine{}
	for i, line := range Lines(part) {
		if strings.TrimSpace(line) != "" && len(lines) < maxHitLines {
			lines = append(lines, HitLine{first + i, db.Beginning(line, 500)})
		}
	}
	return lines
}

// sample reads the terms of the files of a tree.
func (s *Store) sample(ctx context.Context, org db.Org, t Tree) (*lexicon.IDF, error) {
	terms, err := db.All[[]int64](ctx, s.db, `
		SELECT terms FROM memory_files WHERE org = $1 AND tree_key = $2 AND deleted_at IS NULL
		ORDER BY key
		LIMIT $3`, org, t.Key, lexicon.SampleRows)
	return lexicon.NewIDF(terms, len(terms)), err
}

// bestLines returns the lines with the most words of a query.
func bestLines(query, text string) []HitLine {
	count := lexicon.NewWanted(query).In(text)
	type scored struct {
		HitLine
		score int
	}
	var all []scored
	for i, line := range Lines(text) {
		if score := count(line); score > 0 {
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
