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
	total   int     // files in it
	waiting int     // of them, without text yet
}

func (c scope) args() pgx.StrictNamedArgs {
	return pgx.StrictNamedArgs{"org": c.org, "folders": c.folders, "files": c.files}
}

func (c scope) key() string { return fmt.Sprint(c.org, c.folders, c.files) }

// Search ranks the chunks of an agent's attached files by words, and by meaning where an embeddings endpoint answers, and returns the
// best. Files it has open that are among them count as used.
func (s *Store) Search(ctx context.Context, org db.Org, agentID string, q Query) (Results, error) {
	if strings.TrimSpace(q.Text) == "" {
		return Results{}, db.Invalid("Empty search query provided")
	}
	limit := min(max(q.Limit, 1), SearchMax)
	in, err := s.scope(ctx, org, agentID, q.Include)
	if err != nil || in.total == 0 {
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
	out := Results{Ranking: ByWords, Attached: in.total, Waiting: in.waiting}
	var meaning []embed.Hit
	if vector, err := s.o.Dense.query(ctx, q.Text); err != nil {
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
	return out, s.use(ctx, org, agentID, hitFiles(out.Hits))
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
	c := scope{org: org}
	var err error
	if c.folders, err = db.All[int64](ctx, s.db, `
		SELECT folder_key FROM agent_folders WHERE org = $1 AND agent_id = $2 ORDER BY folder_key`, org, agentID); err != nil {
		return scope{}, err
	}
	if include == "" {
		type counts struct {
			Total   int `db:"total"`
			Waiting int `db:"waiting"`
		}
		n, err := db.One[counts](ctx, s.db, `
			SELECT count(*) AS total, count(*) FILTER (WHERE generation = 0) AS waiting FROM files
			WHERE org = $1 AND folder_key = ANY ($2) AND replaces IS NULL`, org, c.folders)
		c.total, c.waiting = n.Total, n.Waiting
		return c, err
	}
	texts, err := s.texts(ctx, org, agentID, include)
	c.files = make([]int64, len(texts.ready))
	for i, t := range texts.ready {
		c.files[i] = t.Key
	}
	c.total, c.waiting = len(c.files)+texts.waiting, texts.waiting
	return c, err
}

// statistics are the idf of a scope. A small scope is read anew each time: it may grow by half with the next upload. So is one that was
// narrowed to some files: there are too many such scopes to keep.
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

// sample reads the terms of embed.SampleRows rows, or of all if there are fewer, evenly spread over the scope's files by their numbers of
// chunks, so that the same scope always gives the same ones.
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

// byWords ranks by BM25: exact over a small scope; over a large one, the rows that share the query's rarest terms, and exact again if
// those are too few.
func (s *Store) byWords(ctx context.Context, in scope, idf *embed.IDF, text string, limit int) ([]embed.Hit, error) {
	q := idf.Query(text)
	if len(q.Rarest) == 0 {
		return nil, nil
	}
	if idf.Rows() > s.indexRows {
		hits, err := s.wordArm(ctx, wordsIndexed, in, q)
		if err != nil || len(hits) >= limit {
			return hits, err
		}
	}
	return s.wordArm(ctx, wordsExact, in, q)
}

const wordsExact = `
	SELECT key AS id, -(lex <#> @q) AS score FROM chunks
	WHERE org = @org AND folder_key = ANY (@folders) AND (@files::bigint[] IS NULL OR file_key = ANY (@files))
	ORDER BY lex <#> @q, key
	LIMIT @limit`

// wordsIndexed reads the rows that have one of the terms through the GIN index on them.
const wordsIndexed = `
	WITH found AS MATERIALIZED (
		SELECT key, lex FROM chunks
		WHERE terms && @rarest AND org = @org AND folder_key = ANY (@folders)
		  AND (@files::bigint[] IS NULL OR file_key = ANY (@files))
	)
	SELECT key AS id, -(lex <#> @q) AS score FROM found ORDER BY lex <#> @q, key LIMIT @limit`

// rarestTerms is how many of a query's terms choose the candidates of a large scope.
const rarestTerms = 3

func (s *Store) wordArm(ctx context.Context, sql string, in scope, q embed.Query) ([]embed.Hit, error) {
	args := in.args()
	args["q"], args["limit"] = q.Vector, embed.ArmRows
	if sql == wordsIndexed {
		args["rarest"] = q.Rarest[:min(rarestTerms, len(q.Rarest))]
	}
	hits, err := db.All[embed.Hit](ctx, s.db, sql, args)
	return slices.DeleteFunc(hits, func(h embed.Hit) bool { return h.Score <= 0 }), err
}

// byMeaning ranks by the inner product with the query's vector: exact over a small scope, through the space's index over a large one, and
// exact again if that finds too few.
func (s *Store) byMeaning(ctx context.Context, in scope, rows int, vector []float32, limit int) ([]embed.Hit, error) {
	space, ok := s.o.Dense.Space()
	if !ok || len(vector) != space.Dimension {
		return nil, nil
	}
	q := embed.Half(vector)
	if rows > s.indexRows {
		hits, err := s.nearIndexed(ctx, in, space, q)
		if err != nil || len(hits) >= limit {
			return hits, err
		}
	}
	return s.near(ctx, s.db, nearestSQL(space, true), in, q)
}

// nearestSQL is the one form of a vector search: the space and its dimension are literal, as the space's partial index names them. The
// exact form orders by an expression that no index has.
func nearestSQL(space embed.Space, exact bool) string {
	distance := fmt.Sprintf("embedding::halfvec(%d) <#> @q::halfvec(%[1]d)", space.Dimension)
	order := distance
	if exact {
		order = "(" + distance + ") + 0"
	}
	return fmt.Sprintf(`
		SELECT chunk_key AS id, -(%s) AS score FROM chunk_vectors
		WHERE space_id = %d AND org = @org AND folder_key = ANY (@folders)
		  AND (@files::bigint[] IS NULL OR chunk_key IN (SELECT key FROM chunks WHERE org = @org AND file_key = ANY (@files)))
		ORDER BY %s
		LIMIT @limit`, distance, space.ID, order)
}

// nearIndexed reads through the space's index, going on along it until enough rows are of the scope. The order it yields is nearly
// right; embed.Fuse puts it right.
func (s *Store) nearIndexed(ctx context.Context, in scope, space embed.Space, q pgvector.HalfVector) (hits []embed.Hit, err error) {
	err = pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL hnsw.iterative_scan = relaxed_order; SET LOCAL hnsw.ef_search = 200`); err != nil {
			return err
		}
		hits, err = s.near(ctx, tx, nearestSQL(space, false), in, q)
		return err
	})
	return hits, err
}

func (s *Store) near(ctx context.Context, d db.DB, sql string, in scope, q pgvector.HalfVector) ([]embed.Hit, error) {
	args := in.args()
	args["q"], args["limit"] = q, embed.ArmRows
	return db.All[embed.Hit](ctx, d, sql, args)
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
