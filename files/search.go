package files

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/lexicon"
	"github.com/loci-memory/loci/embed/rank"
	"github.com/loci-memory/loci/embed/wordindex"
)

// Search finds chunks of an agent's attached files within a reach by words, and also by meaning if an embedding model
// answers. Chunks that overlap become one hit, at the place of the best. Open files among the hits count as used.
// ErrInvalid if the query is blank or too long.
func (s *Store) Search(ctx context.Context, org db.Org, r Reach, q Query) (Results, error) {
	if err := q.check(); err != nil {
		return Results{}, err
	}
	scope, err := s.searched(ctx, org, r, q)
	if err != nil {
		return Results{Hits: []Hit{}, Ranking: ByWords}, err
	}
	results, err := s.searchIn(ctx, scope, q)
	if err != nil || scope.empty {
		return results, err
	}
	return results, s.used(ctx, scope.use(r, results.Hits))
}

// SearchFolder finds chunks of a folder's files, as Search does. It ignores Include. ErrNotFound if there is no such
// folder.
func (s *Store) SearchFolder(ctx context.Context, org db.Org, folderID string, q Query) (Results, error) {
	if err := q.check(); err != nil {
		return Results{}, err
	}
	folder, err := s.Folder(ctx, org, folderID)
	if err != nil {
		return Results{}, err
	}
	folders := []int64{folder.Key}
	scope := searchedFiles{org: org, all: folders, folders: folders}
	args := pgx.StrictNamedArgs{"org": org, "folder": folder.Key}
	narrows, none, err := q.where(args)
	switch {
	case err != nil:
		return Results{}, err
	case none:
		return s.searchIn(ctx, scope, q)
	}
	found, err := db.All[namedFile](ctx, s.db, `
		SELECT f.key, f.name, f.folder_key, f.chunks, coalesce(f.first_chunk, 0) AS first_chunk,
		       coalesce(f.last_chunk, 0) AS last_chunk
		FROM files f WHERE f.org = @org AND f.folder_key = @folder AND f.replaces IS NULL AND `+narrows, args)
	scope.empty = len(found) == 0
	if err == nil {
		err = s.narrow(ctx, &scope, found)
	}
	if err != nil {
		return Results{}, err
	}
	return s.searchIn(ctx, scope, q)
}

// searchIn finds chunks of some files.
func (s *Store) searchIn(ctx context.Context, scope searchedFiles, q Query) (Results, error) {
	if scope.empty {
		return Results{Hits: []Hit{}, Ranking: ByWords}, nil
	}
	q.Limit = min(max(q.Limit, 1), SearchMax)
	question := s.question(scope, q.Text, rank.Depth(0, q.Offset, q.Limit))
	question.WordsOnly, question.MeaningOnly, question.AsWritten = q.WordsOnly, q.MeaningOnly, q.AsWritten
	question.Weight = q.Weight
	searched, spelling, err := rank.Respelled(ctx, s.db, s.search, question,
		func(text string, guessed bool) (rank.Searched[Results], error) {
			question.Text, question.Guessed = text, guessed
			return s.ranked(ctx, q, question)
		})
	searched.SearchedFor = spelling
	return searched, err
}

// ranked runs one search.
func (s *Store) ranked(ctx context.Context, q Query, question rank.Question) (
	searched rank.Searched[Results], err error) {
	ranking, err := s.search.Rank(ctx, s.db, question)
	if err != nil {
		return searched, err
	}
	r := Results{Ranking: ByWords, Attached: true}
	if ranking.ByMeaning {
		r.Ranking = ByWordsAndMeaning
	}
	r.Hits, r.More, err = s.mergedHits(ctx, question.Org, ranking, max(q.Offset, 0), q.Limit)
	r.Remarks = ranking.Remarks(len(r.Hits), r.More)
	for _, h := range r.Hits {
		searched.Texts = append(searched.Texts, h.searchable())
	}
	if q.Explain {
		r.explain(ranking)
	}
	searched.Results, searched.Ranking = r, ranking
	return searched, err
}

// explain adds to the results how they were ranked.
func (r *Results) explain(ranking rank.Ranking) {
	r.Explanation = ranking.Explanation()
	for i, h := range r.Hits {
		r.Hits[i].Explanation = ranking.ExplainHit(rank.Ranked{Key: h.ChunkKey, Text: h.ranked, Score: h.Score,
			Scale: h.scale, Gains: []rank.Added{{Of: "near", Value: h.Near}}})
	}
	if len(r.Hits) > 0 {
		r.Hits[0].Explanation.Search = r.Explanation
	}
}

// searchedFiles are the files that a search may see.
type searchedFiles struct {
	org     db.Org
	all     []int64          // attached folders
	folders []int64          // folders with these files
	files   []int64          // nil: all files of the folders
	keys    wordindex.Ranges // ranges of the chunks of the files
	most    int              // number of the files' chunks, plus one; 0 if files is nil
	empty   bool             // there is no file at all, not even one without text
	open    []string         // ids of the files that the agent has open, last used last
}

// use returns which open files the hits use. The file of the best hit is the last used.
func (f searchedFiles) use(r Reach, hits []Hit) use {
	used := slices.DeleteFunc(hitFiles(hits), func(id string) bool { return !slices.Contains(f.open, id) })
	return use{by(f.org, r), used, slices.Equal(used, f.open[len(f.open)-len(used):])}
}

// filter selects the files' chunks.
func (f searchedFiles) filter() rank.Filter {
	all := rank.Filter{
		Rows:    `r.org = @org AND r.folder_key = ANY (@folders)`,
		Vectors: `v.org = @org AND v.folder_key = ANY (@folders)`,
		Args:    pgx.StrictNamedArgs{"org": f.org, "folders": f.folders},
	}
	if f.files == nil {
		return all
	}
	return rank.Filter{
		Rows: `r.org = @org AND r.file_key = ANY (@files) AND r.folder_key + 0 = ANY (@folders)`,
		Vectors: all.Vectors + ` AND v.chunk_key IN (
			SELECT key FROM chunks WHERE org = @org AND file_key = ANY (@files))`,
		Args: pgx.StrictNamedArgs{"org": f.org, "folders": f.folders, "files": f.files},
		Keys: f.keys,
	}
}

// question asks for the files' chunks. Word statistics are those of all attached folders.
func (s *Store) question(scope searchedFiles, text string, limit int) rank.Question {
	return rank.Question{
		Org:     scope.org,
		Text:    text,
		Filters: []rank.Filter{scope.filter()},
		Limit:   limit,
		Most:    scope.most,
		Scope:   fmt.Sprint(scope.org, scope.all),
		Sample:  func(ctx context.Context) (*lexicon.IDF, error) { return s.sample(ctx, scope) },
		Texts: func(ctx context.Context, most int) ([]string, error) {
			return db.All[string](ctx, s.db, `
				SELECT c.text FROM unnest($2::bigint[]) AS f (key) CROSS JOIN LATERAL (
					SELECT key, text FROM chunks WHERE org = $1 AND folder_key = f.key ORDER BY key DESC LIMIT $3) c
				ORDER BY c.key DESC LIMIT $3`, scope.org, scope.all, most)
		},
		Owners: func(context.Context) ([]int64, error) { return scope.folders, nil },
	}
}

// hitFiles returns the ids of the hits' files, best last.
func hitFiles(hits []Hit) []string {
	var ids []string
	for _, h := range slices.Backward(hits) {
		ids = append(slices.DeleteFunc(ids, func(id string) bool { return id == h.FileID }), h.FileID)
	}
	return ids
}

// searched returns the files within a reach. If the query has an Include or a filter, it returns only those that both
// accept.
func (s *Store) searched(ctx context.Context, org db.Org, r Reach, q Query) (searchedFiles, error) {
	args := pgx.StrictNamedArgs{"org": org, "agent": r.AgentID}
	opened, sees := r.opened(args), r.Users.Where("a.user_key", args)
	type folder struct {
		Key  int64    `db:"folder_key"`
		Full bool     `db:"is_full"`
		Open []string `db:"open"`
	}
	list, err := db.All[folder](ctx, s.db, `
		SELECT a.folder_key, EXISTS (
		           SELECT FROM files f WHERE f.org = @org AND f.folder_key = a.folder_key AND f.replaces IS NULL) AS is_full,
		       ARRAY(
		           SELECT f.id FROM agent_files o JOIN files f ON f.org = o.org AND f.key = o.file_key
		           WHERE o.org = @org AND f.org = @org AND o.agent_id = @agent AND o.is_open AND `+opened+`
		           ORDER BY o.last_used_seq, f.id) AS open
		FROM agent_folders a
		WHERE a.org = @org AND a.agent_id = @agent AND `+sees+`
		ORDER BY a.folder_key`, args)
	c := searchedFiles{org: org, empty: true}
	for _, f := range list {
		c.all = append(c.all, f.Key)
		c.empty, c.open = c.empty && !f.Full, f.Open
	}
	c.folders = c.all
	if err != nil || q.Include == "" && len(q.Filter) == 0 {
		return c, err
	}
	included, err := s.includedFiles(ctx, org, r, ListQuery{Include: q.Include, Narrowing: q.Narrowing})
	c.empty = len(included) == 0
	if err == nil {
		err = s.narrow(ctx, &c, included)
	}
	return c, err
}

// manyFiles: with so many files it is worth checking whether they are all files of their folders.
const manyFiles = 200

// narrow limits a search to files. If these are all files of their folders, it limits the search to the folders.
func (s *Store) narrow(ctx context.Context, c *searchedFiles, included []namedFile) error {
	included = slices.DeleteFunc(included, func(f namedFile) bool { return f.Chunks == 0 })
	c.folders = []int64{}
	for _, f := range included {
		if !slices.Contains(c.folders, f.Folder) {
			c.folders = append(c.folders, f.Folder)
		}
	}
	slices.Sort(c.folders)
	if len(included) >= manyFiles {
		all, err := db.One[int](ctx, s.db, `
			SELECT count(*) FROM files WHERE org = $1 AND folder_key = ANY ($2) AND replaces IS NULL AND chunks > 0`,
			c.org, c.folders)
		if err != nil || all == len(included) {
			return err
		}
	}
	c.files, c.most = mapped(included, func(f namedFile) int64 { return f.Key }), 1
	keys := make([]wordindex.Range, len(included))
	for i, f := range included {
		c.most += f.Chunks
		keys[i] = wordindex.Range{First: f.FirstChunk, Last: f.LastChunk}
	}
	c.keys = wordindex.NewRanges(keys)
	return nil
}

// sample reads the terms of up to lexicon.SampleRows chunks, spread evenly over the chunks of the folders' files. The
// same files always give the same sample.
func (s *Store) sample(ctx context.Context, scope searchedFiles) (*lexicon.IDF, error) {
	type file struct {
		Key        int64 `db:"key"`
		Generation int   `db:"generation"`
		Chunks     int   `db:"chunks"`
	}
	list, err := db.All[file](ctx, s.db, `
		SELECT key, generation, chunks FROM files
		WHERE org = $1 AND folder_key = ANY ($2) AND replaces IS NULL AND chunks > 0
		ORDER BY folder_key, key`, scope.org, scope.all)
	if err != nil {
		return nil, err
	}
	rows := 0
	for _, f := range list {
		rows += f.Chunks
	}
	var keys []int64
	var generations, ordinals []int
	before, n := 0, min(rows, lexicon.SampleRows)
	for _, f := range list {
		for len(keys) < n && len(keys)*rows/n < before+f.Chunks {
			ordinals = append(ordinals, len(keys)*rows/n-before)
			keys, generations = append(keys, f.Key), append(generations, f.Generation)
		}
		before += f.Chunks
	}
	terms, err := db.All[[]int64](ctx, s.db, `
		SELECT c.terms
		FROM unnest($2::bigint[], $3::integer[], $4::integer[]) AS p (file_key, generation, ordinal)
		JOIN chunks c ON c.file_key = p.file_key AND c.generation = p.generation AND c.ordinal = p.ordinal
		WHERE c.org = $1`, scope.org, keys, generations, ordinals)
	return lexicon.NewIDF(terms, rows), err
}
