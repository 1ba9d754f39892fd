package archival

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/lexicon"
	"github.com/loci-memory/loci/embed/rank"
)

// maxSearchedTags limits the tags of a search, because each costs time.
const maxSearchedTags = 1_000

// Search finds passages by words, and also by meaning if an embedding model answers. Without a text it returns the
// newest passages. ErrNotFound if the agent or the archive does not exist; ErrInvalid if the text is too long or there
// are too many tags.
func (s *Store) Search(ctx context.Context, org db.Org, q Query) (Results, error) {
	if err := rank.CheckQuery(q.Text); err != nil {
		return Results{}, err
	}
	q.Limit = min(max(q.Limit, 1), SearchMax)
	q.Text, q.Tags = db.Clean(q.Text), tagFilter(q.Tags)
	if len(q.Tags) > maxSearchedTags {
		return Results{}, db.Invalid("a search has %d tags; it may have at most %d", len(q.Tags), maxSearchedTags)
	}
	narrowed, err := read(q.Filter, q.Zone)
	if err != nil {
		return Results{}, err
	}
	searched, err := s.searched(ctx, org, q)
	searched.narrowed = narrowed
	if err != nil || searched.rows == 0 {
		return Results{Hits: []Hit{}, ByMeaning: s.endpoint != nil}, err
	}
	after, err := s.afterKey(ctx, org, q)
	if err != nil {
		return Results{}, err
	}
	filter := searched.filter(q)
	s.narrow(ctx, searched, q, &filter)
	if isBlank(q.Text) {
		hits, err := s.newest(ctx, q, filter, after)
		more := len(hits) > q.Limit
		return Results{Hits: hits[:min(len(hits), q.Limit)], More: more}, err
	}
	question := rank.Question{
		Org:       org,
		Text:      q.Text,
		Filters:   []rank.Filter{filter},
		Limit:     depth(q, after),
		AsWritten: q.AsWritten,

		WordsOnly:   q.WordsOnly,
		MeaningOnly: q.MeaningOnly,
		Weight:      q.Weight,

		Scope:  fmt.Sprint(org, searched.archives),
		Sample: func(ctx context.Context) (*lexicon.IDF, error) { return s.sample(ctx, searched) },
		Texts: func(ctx context.Context, most int) ([]string, error) {
			return db.All[string](ctx, s.db, `
				SELECT p.text FROM unnest($2::bigint[]) AS a (key) CROSS JOIN LATERAL (
					SELECT key, text FROM passages WHERE org = $1 AND archive_key = a.key
					ORDER BY happened_at DESC, key DESC LIMIT $3) p
				ORDER BY p.key DESC LIMIT $3`, org, searched.archives, most)
		},
		Owners: func(context.Context) ([]int64, error) { return searched.archives, nil },
	}
	out, spelling, err := rank.Respelled(ctx, s.db, s.search, question,
		func(text string, guessed bool) (rank.Searched[Results], error) {
			question.Text, question.Guessed = text, guessed
			return s.ranked(ctx, q, question, after)
		})
	out.SearchedFor = spelling
	return out, err
}

// depth returns how many hits a page needs: all that are ranked if they are ordered by time.
func depth(q Query, after int64) int {
	if q.ByTime {
		return rank.ArmRows
	}
	return rank.Depth(after, q.Offset, q.Limit)
}

// tagFilter cleans the tags of a filter and drops duplicates. An empty tag is kept, because it must find nothing.
func tagFilter(given []string) []string {
	tags := db.Tags(given)
	if slices.Contains(given, "") {
		tags = append(tags, "")
	}
	return tags
}

// ranked runs one search. If after is not 0, it returns only hits behind the passage with that key.
func (s *Store) ranked(ctx context.Context, q Query, question rank.Question, after int64) (
	out rank.Searched[Results], err error) {
	ranking, err := s.search.Rank(ctx, s.db, question)
	if err != nil {
		return out, err
	}
	err = ranking.RankByText(ctx, func(keys []int64) ([]rank.Text, error) {
		return db.All[rank.Text](ctx, s.db, `
			SELECT key, left(text, $3) AS text FROM passages WHERE org = $1 AND key = ANY ($2)`,
			question.Org, keys, rank.NearChars)
	})
	if err != nil {
		return out, err
	}
	rows := slices.Clone(ranking.Rows)
	ranking.Calibrate(rows)
	if q.ByTime {
		rows, err = s.newestFirst(ctx, question.Org, rows, after)
	} else {
		rows, err = rank.Behind(rows, after)
	}
	if err != nil {
		return out, err
	}
	hits, err := rank.ReadHits[Hit](ctx, s.db, rank.HitQuery[Hit]{Org: question.Org, Offset: q.Offset,
		Limit: q.Limit, Keep: confirm(ranking), SQL: `
		SELECT ` + db.Named(passageColumns) + `, ` + rank.HitColumns + `
		FROM ` + rank.HitTable + rank.KeyedRow("passages", "hit.key") + ` p` +
			rank.KeyedRow("archives", "p.archive_key") + ` c
		WHERE c.deleted_at IS NULL
		ORDER BY hit.place`}, rows)
	// Drop passages that ended after they were ranked.
	if !q.Held.All && q.Held.AsOf == nil {
		hits = slices.DeleteFunc(hits, func(h Hit) bool { return h.Ended })
	}
	out.Ranking = ranking
	more := len(rows) > max(q.Offset, 0)+q.Limit
	out.Results = Results{Hits: hits, ByMeaning: ranking.ByMeaning, More: more, Remarks: ranking.Remarks(len(hits), more)}
	for _, h := range hits {
		out.Texts = append(out.Texts, h.Text)
	}
	if q.Explain {
		out.Results.explain(ranking)
	}
	return out, err
}

// newestFirst returns ranked rows with the newest first, those behind the passage with the key after. That passage need
// not be among them.
func (s *Store) newestFirst(ctx context.Context, org db.Org, rows []rank.Scored, after int64) ([]rank.Scored, error) {
	scored := make(map[int64]rank.Scored, len(rows))
	keys := make([]int64, len(rows))
	for i, r := range rows {
		keys[i], scored[r.ID] = r.ID, r
	}
	ordered, err := db.All[int64](ctx, s.db, `
		SELECT p.key FROM passages p
		WHERE p.org = $1 AND p.key = ANY ($2) AND ($3 = 0 OR (p.happened_at, p.key) < (
			SELECT a.happened_at, a.key FROM passages a WHERE a.org = $1 AND a.key = $3))
		ORDER BY p.happened_at DESC, p.key DESC`, org, keys, after)
	behind := make([]rank.Scored, len(ordered))
	for i, key := range ordered {
		behind[i] = scored[key]
	}
	return behind, err
}

// explain adds to the results how they were ranked.
func (r *Results) explain(ranking rank.Ranking) {
	r.Explanation = ranking.Explanation()
	for i, h := range r.Hits {
		r.Hits[i].Explanation = ranking.ExplainHit(rank.Ranked{Key: h.Key, Text: h.Text, Score: h.Score,
			Scale: ranking.Calibrated(1, ranking.Rows[0].Score)})
	}
	if len(r.Hits) > 0 {
		r.Hits[0].Explanation.Search = r.Explanation
	}
}

// confirm returns a function that reports whether a ranked row is a hit.
func confirm(ranking rank.Ranking) func(*Hit) (bool, error) {
	return func(h *Hit) (bool, error) { return ranking.Confirm(h.Text, &h.WordsRank, h.MeaningRank), nil }
}

// afterKey returns the key of the passage q.After, or 0 if q.After is empty. ErrInvalid if that passage does not exist.
func (s *Store) afterKey(ctx context.Context, org db.Org, q Query) (int64, error) {
	if q.After == "" {
		return 0, nil
	}
	key, err := db.One[int64](ctx, s.db, `SELECT key FROM passages WHERE org = $1 AND id = $2`, org, uuidOf(q.After))
	if errors.Is(err, db.ErrNotFound) {
		return 0, db.Invalid("after: there is no passage %.80s", q.After)
	}
	return key, err
}

// searchedArchives are the archives that a query may see.
type searchedArchives struct {
	org      db.Org
	archives []int64
	rows     int // number of passages; for a large archive only a number that counts as large
	narrowed narrowed
}

// searched finds the archives that a query may see, and counts their passages.
func (s *Store) searched(ctx context.Context, org db.Org, q Query) (searchedArchives, error) {
	var err error
	if q.AgentID != "" {
		_, err = db.AgentKey(ctx, s.db, org, q.AgentID)
	}
	if err == nil && q.ArchiveID != "" {
		_, err = s.Archive(ctx, org, q.ArchiveID)
	}
	if err != nil {
		return searchedArchives{}, err
	}
	type row struct {
		Archive int64 `db:"key"`
		Rows    int   `db:"rows"`
	}
	args := pgx.StrictNamedArgs{"org": org, "archive": q.ArchiveID, "most": s.search.IndexRows + 1,
		"large": s.sizes.large()}
	from := `(SELECT * FROM archives c WHERE c.org = @org AND ` + q.Users.Where(`c.user_key`, args) + `) c`
	if q.AgentID != "" { // each is read by its key: an agent may have few of many archives
		args["agent"] = q.AgentID
		from = `(SELECT archive_key FROM agent_archives WHERE org = @org AND agent_id = @agent
			  AND ` + q.Users.Where(`user_key`, args) + ` OFFSET 0) a
			CROSS JOIN LATERAL (SELECT * FROM archives WHERE org = @org AND key = a.archive_key OFFSET 0) c`
	}
	list, err := db.All[row](ctx, s.db, `
		SELECT c.key, CASE WHEN c.key = ANY (@large) THEN @most ELSE
			(SELECT count(*) FROM (
				SELECT FROM passages p WHERE p.org = @org AND p.archive_key = c.key LIMIT @most) p) END AS rows
		FROM `+from+`
		WHERE c.org = @org AND c.deleted_at IS NULL AND @archive IN ('', c.id)
		ORDER BY c.key`, args)
	if err == nil && len(list) == 0 && q.ArchiveID != "" {
		if q.AgentID == "" { // it is another user's
			return searchedArchives{}, orNotFound(db.ErrNotFound, "Archive", q.ArchiveID)
		}
		return searchedArchives{}, db.NotFound("Agent %s does not have archive %s", q.AgentID, q.ArchiveID)
	}
	result := searchedArchives{org: org, archives: make([]int64, len(list))}
	for i, r := range list {
		result.archives[i] = r.Archive
		result.rows += r.Rows
		if r.Rows > s.search.IndexRows {
			s.sizes.addLarge(r.Archive)
		}
	}
	return result, err
}

// filter turns the query's tags, times, validity and filter into a filter on the archives' rows.
func (a searchedArchives) filter(q Query) rank.Filter {
	args := pgx.StrictNamedArgs{"org": a.org, "archives": a.archives}
	where := ""
	if len(q.Tags) > 0 {
		args["tags"] = q.Tags
		if where = ` AND $.tags && @tags`; q.Match == All {
			where = ` AND $.tags @> @tags`
		}
	}
	where += q.times("$", args)
	where += q.Held.Where("$", args)
	const archives = `$.org = @org AND $.archive_key = ANY (@archives)`
	return rank.Filter{
		Rows:    strings.ReplaceAll(archives+where, "$", "r") + a.narrowed.rows(args),
		Vectors: strings.ReplaceAll(archives+where, "$", "v") + a.narrowed.vectors(args),
		Args:    args,
	}
}

// times returns the condition that a passage happened between the query's Start and End, and adds its arguments to
// args.
func (q Query) times(row string, args pgx.StrictNamedArgs) (where string) {
	if q.Start != nil {
		args["start"] = *q.Start
		where += ` AND ` + row + `.happened_at >= @start`
	}
	if q.End != nil {
		args["end"] = *q.End
		where += ` AND ` + row + `.happened_at <= @end`
	}
	return where
}

// newest returns the newest passages, up to one more than the query's limit, so that the caller sees whether there are
// more.
func (s *Store) newest(ctx context.Context, q Query, f rank.Filter, after int64) ([]Hit, error) {
	f.Args = maps.Clone(f.Args)
	if len(q.Filter) > 0 && f.Few != nil { // else all passages are read in their order if few pass the filter
		few, err := f.Few(rank.FewByWords)
		if err != nil {
			return nil, err
		}
		if few != nil {
			f.Args["few"] = few
			f.Rows += ` AND r.key = ANY (@few)`
		}
	}
	f.Args["limit"], f.Args["offset"], f.Args["after"] = q.Limit+1, max(q.Offset, 0), after
	return db.All[Hit](ctx, s.db, `
		SELECT `+db.Named(passageColumns)+`, 0::float8 AS score, 0 AS words_rank, 0 AS meaning_rank
		FROM (
			SELECT * FROM passages r
			WHERE `+f.Rows+` AND (@after = 0 OR (r.happened_at, r.key) < (
				SELECT happened_at, key FROM passages WHERE org = @org AND key = @after))
			ORDER BY r.happened_at DESC, r.key DESC
			LIMIT @limit OFFSET @offset
		) p JOIN archives c ON c.org = @org AND c.key = p.archive_key
		ORDER BY p.happened_at DESC, p.key DESC`, f.Args)
}

// sample reads the terms of up to lexicon.SampleRows passages, spread evenly over the archives.
func (s *Store) sample(ctx context.Context, a searchedArchives) (*lexicon.IDF, error) {
	terms, err := db.All[[]int64](ctx, s.db, `
		WITH placed AS (
			SELECT key, row_number() OVER (ORDER BY key) - 1 AS n, count(*) OVER () AS rows
			FROM passages WHERE org = $1 AND archive_key = ANY ($2)
		)
		SELECT p.terms FROM placed JOIN passages p USING (key)
		WHERE p.org = $1 AND n % greatest(rows / $3, 1) = 0
		ORDER BY n
		LIMIT $3`, a.org, a.archives, lexicon.SampleRows)
	return lexicon.NewIDF(terms, a.rows), err
}
