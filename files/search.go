package files

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/pgvector/pgvector-go"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
)

// meaningWeight is that of an embeddings endpoint's vectors against the words.
const meaningWeight = 1.0

// scope is the part of the chunks that a search may see.
type scope struct {
	org     db.Org
	folders []int64
	files   []int64 // nil is all of the folders
	empty   bool    // no file is in it, with text or without
	open    bool    // the agent has files open
}

func (c scope) args() pgx.StrictNamedArgs {
	return pgx.StrictNamedArgs{"org": c.org, "folders": c.folders, "files": c.files}
}

func (c scope) key() string { return fmt.Sprint(c.org, c.folders, c.files) }

// Search ranks the chunks of an agent's attached files by words, and by meaning where an embeddings endpoint answers,
// and returns the best. Files it has open that are among them count as used.
func (s *Store) Search(ctx context.Context, org db.Org, agentID string, q Query) (Results, error) {
	if strings.TrimSpace(q.Text) == "" {
		return Results{}, db.Invalid("Empty search query provided")
	}
	limit := min(max(q.Limit, 1), SearchMax)
	in, err := s.scope(ctx, org, agentID, q.Include)
	if err != nil || in.empty {
		return Results{Hits: []Hit{}, Ranking: ByWords}, err
	}
	idf, err := s.statistics(ctx, in)
	if err != nil {
		return Results{}, err
	}
	words, err := s.byWords(ctx, in, idf, q.Text, limit)
	if err != nil {
		return Results{}, err
	}
	out := Results{Ranking: ByWords, Attached: true}
	var meaning []embed.Hit
	if vector, err := s.o.Dense.Query(ctx, q.Text); err != nil {
		out.Note = fmt.Sprintf("%v, so this was ranked by words alone.", err)
	} else if vector != nil {
		out.Ranking = ByWordsAndMeaning
		if meaning, err = s.byMeaning(ctx, in, idf.Rows(), vector, limit); err != nil {
			return Results{}, err
		}
	}
	if out.Hits, err = s.hits(ctx, org, embed.Fuse(words, meaning, meaningWeight), limit); err != nil {
		return Results{}, err
	}
	if !in.open {
		return out, nil
	}
	return out, s.openSet(org, agentID).markUsed(ctx, hitFiles(out.Hits))
}

// hitFiles are the files of hits, the best last.
func hitFiles(hits []Hit) []string {
	var ids []string
	for _, h := range hits {
		if !slices.Contains(ids, h.FileID) {
			ids = append(ids, h.FileID)
		}
	}
	slices.Reverse(ids)
	return ids
}

// scope is what the agent has attached, narrowed to the file names that include fits.
func (s *Store) scope(ctx context.Context, org db.Org, agentID, include string) (scope, error) {
	type folder struct {
		Key  int64 `db:"folder_key"`
		Full bool  `db:"is_full"`
		Open bool  `db:"is_open"`
	}
	list, err := db.All[folder](ctx, s.db, `
		SELECT a.folder_key, EXISTS (SELECT FROM files f WHERE f.folder_key = a.folder_key AND f.replaces IS NULL) AS is_full,
		       EXISTS (SELECT FROM agent_files o WHERE o.org = $1 AND o.agent_id = $2 AND o.is_open) AS is_open
		FROM agent_folders a
		WHERE a.org = $1 AND a.agent_id = $2
		ORDER BY a.folder_key`, org, agentID)
	c := scope{org: org, empty: true}
	for _, f := range list {
		c.folders = append(c.folders, f.Key)
		c.empty, c.open = c.empty && !f.Full, f.Open
	}
	if err != nil || include == "" {
		return c, err
	}
	included, err := s.includedFiles(ctx, org, agentID, "", include)
	c.files, c.empty = []int64{}, len(included) == 0
	for _, f := range included {
		if f.Generation > 0 {
			c.files = append(c.files, f.Key)
		}
	}
	return c, err
}

// statistics are the idf of a scope. A small scope is read anew each time: it may grow by half with the next upload. So
// is one that was narrowed to some files: there are too many such scopes to keep.
func (s *Store) statistics(ctx context.Context, in scope) (*embed.IDF, error) {
	if in.files != nil {
		return s.sample(ctx, in)
	}
	idf, err := s.idf.Get(ctx, in.key(), func(ctx context.Context) (*embed.IDF, error) { return s.sample(ctx, in) })
	if err != nil || idf.Rows() > embed.SampleRows {
		return idf, err
	}
	return s.sample(ctx, in)
}

// sample reads the terms of embed.SampleRows rows, or of all if there are fewer, evenly spread over the scope's files
// by their numbers of chunks, so that the same scope always gives the same ones.
func (s *Store) sample(ctx context.Context, in scope) (*embed.IDF, error) {
	type file struct {
		Key        int64 `db:"key"`
		Generation int   `db:"generation"`
		Chunks     int   `db:"chunks"`
	}
	list, err := db.All[file](ctx, s.db, `
		SELECT key, generation, chunks FROM files
		WHERE org = @org AND folder_key = ANY (@folders) AND replaces IS NULL AND chunks > 0
		  AND (@files::bigint[] IS NULL OR key = ANY (@files))
		ORDER BY folder_key, key`, in.args())
	if err != nil {
		return nil, err
	}
	rows := 0
	for _, f := range list {
		rows += f.Chunks
	}
	var keys []int64
	var generations, ordinals []int
	before, n := 0, min(rows, embed.SampleRows)
	for _, f := range list {
		for len(keys) < n && len(keys)*rows/n < before+f.Chunks {
			ordinals = append(ordinals, len(keys)*rows/n-before)
			keys, generations = append(keys, f.Key), append(generations, f.Generation)
		}
		before += f.Chunks
	}
	terms, err := db.All[[]int32](ctx, s.db, `
		SELECT c.terms
		FROM unnest($2::bigint[], $3::integer[], $4::integer[]) AS p (file_key, generation, ordinal)
		JOIN chunks c ON c.file_key = p.file_key AND c.generation = p.generation AND c.ordinal = p.ordinal
		WHERE c.org = $1`, in.org, keys, generations, ordinals)
	return embed.NewIDF(terms, rows), err
}

// byWords ranks by BM25: over a large scope the rows that share the query's rarest terms, where these are few; else,
// and where they are too few, all of the scope.
func (s *Store) byWords(ctx context.Context, in scope, idf *embed.IDF, text string, limit int) ([]embed.Hit, error) {
	q := idf.Query(text)
	if len(q.Rarest) == 0 {
		return nil, nil
	}
	rarest := q.Rarest[:min(rarestTerms, len(q.Rarest))]
	if idf.Rows() > s.indexRows && idf.Share(rarest) <= indexShare {
		args := in.words(q)
		args["rarest"] = rarest
		hits, err := s.wordArm(ctx, wordsIndexed, args)
		if err != nil || len(hits) >= limit {
			return hits, err
		}
	}
	return s.wordArm(ctx, wordsExact, in.words(q))
}

const wordsExact = `
	SELECT id, -distance AS score FROM (
		SELECT key AS id, lex <#> @q AS distance FROM chunks
		WHERE org = @org AND folder_key = ANY (@folders) AND (@files::bigint[] IS NULL OR file_key = ANY (@files))
		ORDER BY distance, id
		LIMIT @limit
	) nearest`

// wordsIndexed reads the rows that have one of the terms through the GIN index on them.
const wordsIndexed = `
	SELECT id, -distance AS score FROM (
		SELECT key AS id, lex <#> @q AS distance FROM chunks
		WHERE terms && @rarest AND org = @org AND folder_key = ANY (@folders)
		  AND (@files::bigint[] IS NULL OR file_key = ANY (@files))
		ORDER BY distance, id
		LIMIT @limit
	) nearest`

const (
	rarestTerms = 3    // of a query, that choose the candidates of a large scope
	indexShare  = 0.15 // of the scope's rows that the candidates may be: more are read faster one after the other
)

func (c scope) words(q embed.Query) pgx.StrictNamedArgs {
	args := c.args()
	args["q"], args["limit"] = q.Vector, embed.ArmRows
	return args
}

func (s *Store) wordArm(ctx context.Context, sql string, args pgx.StrictNamedArgs) ([]embed.Hit, error) {
	hits, err := db.All[embed.Hit](ctx, s.db, sql, args)
	return slices.DeleteFunc(hits, func(h embed.Hit) bool { return h.Score <= 0 }), err
}

// byMeaning ranks by the inner product with the query's vector: exact over a small scope, through the space's index
// over a large one, and exact again if that finds too few.
func (s *Store) byMeaning(ctx context.Context, in scope, rows int, vector []float32, limit int) ([]embed.Hit, error) {
	space, ok := s.o.Dense.Space()
	if !ok || len(vector) != space.Dimension {
		return nil, nil
	}
	q := embed.Half(vector)
	if rows > s.indexRows {
		hits, err := embed.Along(ctx, s.db, nearestSQL(space, false), in.nearest(q))
		if err != nil || len(hits) >= limit {
			return hits, err
		}
	}
	return db.All[embed.Hit](ctx, s.db, nearestSQL(space, true), in.nearest(q))
}

// nearestSQL ranks a scope by meaning.
func nearestSQL(space embed.Space, exact bool) string {
	return fmt.Sprintf(`
		SELECT id, -distance AS score FROM (
			SELECT chunk_key AS id, %s AS distance FROM chunk_vectors
			WHERE space_id = %d AND org = @org AND folder_key = ANY (@folders)
			  AND (@files::bigint[] IS NULL OR chunk_key IN (SELECT key FROM chunks WHERE org = @org AND file_key = ANY (@files)))
			ORDER BY distance
			LIMIT @limit
		) nearest`, space.Distance(exact), space.ID)
}

func (c scope) nearest(q pgvector.HalfVector) pgx.StrictNamedArgs {
	args := c.args()
	args["q"], args["limit"] = q, embed.ArmRows
	return args
}

// hits reads the best chunks, limit of them if so many are still there, in their order.
func (s *Store) hits(ctx context.Context, org db.Org, best []embed.Scored, limit int) ([]Hit, error) {
	hits := []Hit{}
	for len(best) > 0 && len(hits) < limit {
		n := min(limit-len(hits), len(best))
		found, err := s.chunksOf(ctx, org, best[:n])
		if err != nil {
			return nil, err
		}
		hits, best = append(hits, found...), best[n:]
	}
	return hits, nil
}

// chunksOf reads chunks in the order given, without those that were deleted since they were found.
func (s *Store) chunksOf(ctx context.Context, org db.Org, best []embed.Scored) ([]Hit, error) {
	keys := make([]int64, len(best))
	for i, b := range best {
		keys[i] = b.ID
	}
	rows, err := db.All[Hit](ctx, s.db, `
		SELECT c.key, f.id AS file_id, d.name || '/' || f.name AS file_name, c.ordinal, c.first_line, c.last_line,
		       c.first_page, c.last_page, f.media_type, c.heading, c.text
		FROM chunks c JOIN files f ON f.key = c.file_key JOIN folders d ON d.key = c.folder_key AND d.org = c.org
		WHERE c.org = $1 AND c.key = ANY ($2)`, org, keys)
	if err != nil {
		return nil, err
	}
	hits := make([]Hit, 0, len(best))
	for _, b := range best {
		if at := slices.IndexFunc(rows, func(h Hit) bool { return h.ChunkKey == b.ID }); at >= 0 {
			h := rows[at]
			h.Score, h.WordsRank, h.MeaningRank = b.Score, b.WordsRank, b.MeaningRank
			hits = append(hits, h)
		}
	}
	return hits, nil
}
