package archival

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
)

// meaningWeight is that of an embeddings endpoint's vectors against the words.
const meaningWeight = 1.0

// scope is the part of the passages that a search may see.
type scope struct {
	org      db.Org
	archives []int64
	rows     int // of a large archive, only that it is one
	q        Query
}

// Search finds passages: by words, and by meaning where an embeddings endpoint answers. ErrNotFound if the agent or the archive is not there.
func (s *Store) Search(ctx context.Context, org db.Org, q Query) (Results, error) {
	q.Limit = min(max(q.Limit, 1), SearchMax)
	q.Text, q.Tags = db.Clean(q.Text), db.Tags(q.Tags)
	in, err := s.scope(ctx, org, q)
	if err != nil || in.rows == 0 {
		return Results{Hits: []Hit{}, ByMeaning: s.dense != nil}, err // nothing lacks a ranking
	}
	if strings.TrimSpace(q.Text) == "" {
		return s.newest(ctx, in)
	}
	idf, err := s.statistics(ctx, in)
	if err != nil {
		return Results{}, err
	}
	words, err := s.byWords(ctx, in, idf, idf.Query(q.Text))
	if err != nil {
		return Results{}, err
	}
	out := Results{}
	meaning, err := s.byMeaning(ctx, in, &out)
	if err != nil {
		return Results{}, err
	}
	out.Hits, err = s.hits(ctx, in, embed.Fuse(words, meaning, meaningWeight))
	return out, err
}

// scope finds the archives that a query may see, and counts their passages.
func (s *Store) scope(ctx context.Context, org db.Org, q Query) (scope, error) {
	in := scope{org: org, q: q}
	switch {
	case q.AgentID != "":
		if err := s.knows(ctx, org, q.AgentID); err != nil {
			return scope{}, err
		}
	case q.ArchiveID != "":
		if _, err := s.Archive(ctx, org, q.ArchiveID); err != nil {
			return scope{}, err
		}
	}
	type row struct {
		Archive int64 `db:"key"`
		Rows    int   `db:"rows"`
	}
	all, err := db.All[row](ctx, s.db, `
		SELECT c.key, CASE WHEN c.key = ANY (@large) THEN @most ELSE
			(SELECT count(*) FROM (SELECT FROM passages p WHERE p.archive_key = c.key LIMIT @most) p) END AS rows
		FROM archives c
		WHERE c.org = @org AND c.deleted_at IS NULL AND CASE WHEN @agent <> '' THEN `+ofAgent+` ELSE @archive IN ('', c.id) END
		ORDER BY c.key`,
		pgx.StrictNamedArgs{"org": org, "agent": q.AgentID, "archive": q.ArchiveID, "most": s.indexRows + 1, "large": s.sizes.large()})
	in.archives = make([]int64, len(all))
	for i, r := range all {
		in.archives[i] = r.Archive
		in.rows += r.Rows
		if r.Rows > s.indexRows {
			s.sizes.note(r.Archive)
		}
	}
	return in, err
}

func (c scope) key() string { return fmt.Sprint(c.org, c.archives) }

// where is the scope as a condition on passages p; its arguments are those of args.
func (c scope) where() string { return c.within("p") }

// within is the scope as a condition on rows that tell of a passage what a query filters by.
func (c scope) within(row string) string {
	w := ` @.org = @org AND @.archive_key = ANY (@archives)`
	switch {
	case len(c.q.Tags) > 0 && c.q.Match == All:
		w += ` AND @.tags @> @tags`
	case len(c.q.Tags) > 0:
		w += ` AND @.tags && @tags`
	}
	if c.q.Start != nil {
		w += ` AND @.happened_at >= @start`
	}
	if c.q.End != nil {
		w += ` AND @.happened_at <= @end`
	}
	return strings.ReplaceAll(w, "@.", row+".")
}

func (c scope) args() pgx.StrictNamedArgs {
	args := pgx.StrictNamedArgs{"org": c.org, "archives": c.archives}
	if len(c.q.Tags) > 0 {
		args["tags"] = c.q.Tags
	}
	if c.q.Start != nil {
		args["start"] = *c.q.Start
	}
	if c.q.End != nil {
		args["end"] = *c.q.End
	}
	return args
}

func (s *Store) newest(ctx context.Context, in scope) (Results, error) {
	args := in.args()
	args["limit"] = in.q.Limit
	hits, err := db.All[Hit](ctx, s.db, `
		SELECT `+passageColumns+`, 0::float8 AS score, 0 AS words_rank, 0 AS meaning_rank
		FROM passages p JOIN archives c ON c.key = p.archive_key
		WHERE`+in.where()+`
		ORDER BY p.happened_at DESC, p.key DESC
		LIMIT @limit`, args)
	return Results{Hits: hits}, err
}

// statistics are the idf of a scope. A small scope is read anew each time: it may grow by half with the next passage.
func (s *Store) statistics(ctx context.Context, in scope) (*embed.IDF, error) {
	if in.rows <= embed.SampleRows {
		return s.sample(ctx, in)
	}
	return s.idf.Get(ctx, in.key(), func(ctx context.Context) (*embed.IDF, error) { return s.sample(ctx, in) })
}

// sample reads the terms of some embed.SampleRows passages, evenly spread over the scope, or of all if there are fewer.
func (s *Store) sample(ctx context.Context, in scope) (*embed.IDF, error) {
	terms, err := db.All[[]int64](ctx, s.db, `
		WITH placed AS (
			SELECT key, row_number() OVER (ORDER BY key) - 1 AS n, count(*) OVER () AS rows
			FROM passages WHERE org = $1 AND archive_key = ANY ($2)
		)
		SELECT p.terms FROM placed JOIN passages p USING (key)
		WHERE n % greatest(rows / $3, 1) = 0
		ORDER BY n
		LIMIT $3`, in.org, in.archives, embed.SampleRows)
	return embed.NewIDF(embed.Words(terms), in.rows), err
}

// mostOwned is how many terms one query asks the index for.
const mostOwned = 40_000

// byWords ranks by BM25: over a large scope the rows that share the query's rarest terms, where these are few; else, and where they are
// too few, all of the scope.
func (s *Store) byWords(ctx context.Context, in scope, idf *embed.IDF, q embed.Query) ([]embed.Hit, error) {
	if len(q.Rarest) == 0 {
		return nil, nil
	}
	if terms := s.candidateTerms(in, idf, q); len(terms) > 0 {
		hits, err := s.wordArm(ctx, in, q, terms)
		if err != nil || len(hits) >= in.q.Limit {
			return hits, err
		}
	}
	return s.wordArm(ctx, in, q, nil)
}

// candidateTerms are the terms by which the index finds the candidates of a large scope; none where all of it is to be read.
func (s *Store) candidateTerms(in scope, idf *embed.IDF, q embed.Query) []int64 {
	if in.rows <= s.indexRows {
		return nil
	}
	words := idf.Candidates(q)
	if len(words)*len(in.archives) > mostOwned {
		return nil
	}
	var terms []int64
	for _, archive := range in.archives {
		terms = append(terms, embed.Owned(archive, words)...)
	}
	return terms
}

func (s *Store) wordArm(ctx context.Context, in scope, q embed.Query, terms []int64) ([]embed.Hit, error) {
	sql, args := in.wordSQL(q, terms)
	hits, err := db.All[embed.Hit](ctx, s.db, sql, args)
	return slices.DeleteFunc(hits, func(h embed.Hit) bool { return h.Score <= 0 }), err
}

// byMeaning ranks by the inner product with the query's vector. It tells out whether it did, and why not if it should have.
func (s *Store) byMeaning(ctx context.Context, in scope, out *Results) ([]embed.Hit, error) {
	q, note := s.dense.Question(ctx, in.q.Text)
	if out.Note = note; q == nil {
		return nil, nil
	}
	out.ByMeaning = true
	return s.nearest(in, q).Read(ctx, s.db, in.rows > s.indexRows, in.q.Limit)
}

// nearest ranks the scope by meaning.
func (s *Store) nearest(in scope, q any) embed.Nearest {
	space, _ := s.dense.Space()
	args := in.args()
	args["q"] = q
	return embed.Nearest{Table: vectorTable, Key: "passage_key", Space: space, Where: in.within("v"), Args: args}
}

// wordSQL ranks a scope by words, or those of its rows that have one of the terms.
func (c scope) wordSQL(q embed.Query, terms []int64) (string, pgx.StrictNamedArgs) {
	args, where := c.args(), c.where()
	args["q"], args["limit"] = q.Vector, embed.ArmRows
	if len(terms) > 0 { // they name the archive already: its other entries are not to be read beside
		args["terms"] = terms
		where = strings.Replace(where, "p.archive_key =", "p.archive_key + 0 =", 1) + ` AND p.terms && @terms`
	}
	return `
		SELECT id, -distance AS score FROM (
			SELECT p.key AS id, p.lex <#> @q AS distance FROM passages p
			WHERE` + where + `
			ORDER BY distance, id
			LIMIT @limit
		) nearest`, args
}

// hits reads the best passages, as many as were asked for; those that were deleted since they were found are passed over.
func (s *Store) hits(ctx context.Context, in scope, ranked []embed.Scored) ([]Hit, error) {
	hits := make([]Hit, 0, in.q.Limit)
	for len(ranked) > 0 && len(hits) < in.q.Limit {
		n := min(in.q.Limit-len(hits), len(ranked))
		keys := make([]int64, n)
		for i, r := range ranked[:n] {
			keys[i] = r.ID
		}
		rows, err := db.All[Passage](ctx, s.db, `
			SELECT `+passageColumns+` FROM unnest($2::bigint[]) WITH ORDINALITY AS wanted (key, place)
			JOIN passages p ON p.key = wanted.key JOIN archives c ON c.key = p.archive_key AND c.deleted_at IS NULL
			WHERE p.org = $1
			ORDER BY wanted.place`, in.org, keys)
		if err != nil {
			return nil, err
		}
		for _, p := range rows {
			r := ranked[slices.Index(keys, p.Key)]
			hits = append(hits, Hit{Passage: p, Score: r.Score, WordsRank: r.WordsRank, MeaningRank: r.MeaningRank})
		}
		ranked = ranked[n:]
	}
	return hits, nil
}
