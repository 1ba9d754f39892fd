package rank

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/embed/lexicon"
	"github.com/loci-memory/loci/embed/wordindex"
)

// IndexRows is the number of rows up to which an exact scan is at least as fast as an index.
const IndexRows = 50_000

// wideRows is the number of rows up to which checking the filter on every row is faster than Filter.Few.
const wideRows = 2_000

// MaxOwners is the most owners that a search looks up in an index on terms. A scope of more owners is scanned.
const MaxOwners = 5_000

// Search ranks the rows of one memory's table: by words (BM25), and by meaning if an embedding model answers. Set the
// fields before the first use; then it is safe for concurrent use.
type Search struct {
	Endpoint  *endpoint.Endpoint // nil: searches rank by words alone
	Reranker  *Reranker          // reorders the best hits of a search; nil: no reordering
	Table     string             // name; it has the columns key, lex and terms
	Vectors   string             // name of the table of the rows' vectors, with the columns space_id and embedding
	VectorKey string             // the column of Vectors with a row's key
	IndexRows int                // a scope with more rows is searched through the indexes
	WideRows  int                // in a scope with more rows, Filter.Few is called

	Words      *wordindex.Index // index of the rows' words; nil if there is none
	PlainTerms bool             // the terms in Table have no owner
	Passages   bool             // Table may have several rows with the same key, each with a passage of a text

	statistics lexicon.IDFCache
	compounds  compoundsCache
}

// NewSearch returns a search of a table. It uses the indexes for more than IndexRows rows.
func NewSearch(endpoint *endpoint.Endpoint, table, vectors, vectorKey string) *Search {
	return &Search{Endpoint: endpoint, Table: table, Vectors: vectors, VectorKey: vectorKey, IndexRows: IndexRows,
		WideRows: wideRows}
}

// VectorTable returns the table of the rows' vectors. columns are the rows' columns that it repeats. pending selects
// the number of rows that wait for a vector in the space $1.
func (s *Search) VectorTable(pending string, columns ...string) endpoint.Vectors {
	return endpoint.Vectors{Endpoint: s.Endpoint, Table: s.Vectors, Row: s.VectorKey, Columns: columns, Pending: pending,
		IndexRows: s.IndexRows}
}

// Filter says which rows a search may see, as conditions in SQL.
type Filter struct {
	Rows    string              // a condition on rows r of Search.Table
	Vectors string              // the same condition on rows v of Search.Vectors
	Args    pgx.StrictNamedArgs // arguments of both conditions, including @org
	Keys    wordindex.Ranges    // ranges with the keys of all rows that pass; nil if unknown

	// Few returns the keys of all rows that pass the filter, or nil if there are more than most (FewByWords or
	// FewByMeaning). Both arms of a search may call it at once. It is nil if no filter narrows the scope.
	Few func(most int) ([]int64, error)
	// Loose says that Few may return keys of other rows, too, and that it costs so little that it is called first.
	Loose bool
}

// Question is one search.
type Question struct {
	Org         db.Org
	Text        string
	Filters     []Filter // the best rows of each are ranked together
	Limit       int      // hits wanted for each filter; if words alone rank, few more rows are read
	Most        int      // most rows that each filter leaves; 0: all rows of the scope
	WordsOnly   bool
	MeaningOnly bool    // rank by words only if the endpoint does not answer
	Weight      float64 // weight of meaning in place of Endpoint.Weight; 0: Endpoint.Weight
	AsWritten   bool    // other spellings are not searched
	Guessed     bool    // Text is another spelling of what the caller asked for

	// Scope names the rows that the statistics cover, whatever else the filter narrows them to. The statistics of an
	// empty name are not cached.
	Scope string
	// Sample reads the statistics of the scope.
	Sample func(context.Context) (*lexicon.IDF, error)
	// Texts returns the newest texts of the scope, at most so many. Compound words are searched in them by their parts.
	// It is called only for scopes with texts in languages that have such words; nil: no parts are searched.
	Texts func(ctx context.Context, most int) ([]string, error)
	// Owners returns the keys of the rows' owners. They own the terms in Search.Table, unless these are plain (see
	// lexicon.Owned), and the rows in Search.Words.
	Owners func(context.Context) ([]int64, error)
}

// Rank ranks the rows that a question may see. It calls the endpoint, and reads by words and by meaning at the same
// time. So d must not be a transaction.
func (s *Search) Rank(ctx context.Context, d db.DB, q Question) (Ranking, error) {
	started := time.Now()
	q.Text = db.Clean(q.Text)
	idf, err := s.statistics.Get(ctx, q.Scope, q.Sample)
	if err != nil {
		return Ranking{}, err
	}
	compounds, err := s.compounds.of(ctx, q, idf)
	if err != nil {
		return Ranking{}, err
	}
	ranking := Ranking{Query: idf.QueryWith(q.Text, compounds), text: q.Text, scope: idf}
	if s.Reranker != nil && !q.WordsOnly && !q.MeaningOnly {
		ranking.judged = &judgement{reranker: s.Reranker}
	}
	words, meaning, err := s.bothArms(ctx, d, q, idf, &ranking)
	if ranking.ByWords = !q.MeaningOnly || !ranking.ByMeaning; err == nil && ranking.ByWords && q.MeaningOnly {
		words, err = s.wordsArm(ctx, d, q, idf, &ranking)
	}
	if err != nil {
		return Ranking{}, err
	}
	ranking.BestWords = max(0, ranking.words.best)
	ranking.cut = ranking.words.first >= ArmRows || ranking.meaning.first >= MeaningRows && idf.Rows() > MeaningRows
	ranking.wordsConfidence, ranking.meaningConfidence = ranking.confidenceOfWords(), confidenceOfMeaning(meaning)
	ranking.Confidence = max(ranking.wordsConfidence, ranking.meaningConfidence)
	if q.Guessed {
		ranking.Confidence *= GuessedShare
	}
	ranking.Weights = ranking.weigh(meaning, idf.Rows(), cmp.Or(q.Weight, s.Endpoint.MeaningWeight()))
	ranking.Rows = Fuse(words, meaning, ranking.Weights)
	ranking.took = time.Since(started)
	return ranking, nil
}

// bothArms ranks by words and by meaning at the same time, each on its own connection. If the question asks for one of
// them, it ranks only by that one.
func (s *Search) bothArms(ctx context.Context, d db.DB, q Question, idf *lexicon.IDF, ranking *Ranking) (
	words, meaning []Hit, err error) {
	arms, ctx := errgroup.WithContext(ctx)
	if !q.MeaningOnly {
		arms.Go(func() (err error) {
			words, err = s.wordsArm(ctx, d, q, idf, ranking)
			return err
		})
	}
	if !q.WordsOnly {
		arms.Go(func() (err error) {
			meaning, err = s.meaningArm(ctx, d, q, ranking)
			return err
		})
	}
	return words, meaning, arms.Wait()
}

// wordsArm ranks by words, and stores its result in out.
func (s *Search) wordsArm(ctx context.Context, d db.DB, q Question, idf *lexicon.IDF, out *Ranking) ([]Hit, error) {
	began := time.Now()
	found, match, err := s.byWords(ctx, d, q, idf, out.Query)
	out.words, out.match = armOf(found, began), match
	return slices.Concat(found...), err
}

// meaningArm ranks by meaning, and stores its result in out.
func (s *Search) meaningArm(ctx context.Context, d db.DB, q Question, out *Ranking) ([]Hit, error) {
	began := time.Now()
	found, err := s.byMeaning(ctx, d, q, out)
	out.meaning = armOf(found, began)
	return slices.Concat(found...), err
}

// plenty is how many hits an index must find; if it finds fewer, the exact query runs. It does not depend on the page,
// so that all pages come from the same ranking.
const plenty = MeaningRows

// byMeaning ranks by the inner product with the query's vector. It uses the space's index in a large scope, and the
// exact query in a small one or if the index finds fewer than plenty. It stores in ranking whether it ranked, and why
// not. It returns the hits of each filter.
func (s *Search) byMeaning(ctx context.Context, d db.DB, q Question, ranking *Ranking) (all [][]Hit, err error) {
	vector, space, note := s.Endpoint.EmbedQuery(ctx, q.Text)
	if ranking.Note = note; vector == nil {
		return nil, nil
	}
	ranking.ByMeaning, ranking.Vector, ranking.Space = true, vector, space
	for _, f := range q.Filters {
		f.Args = with(f.Args, "q", *vector)
		hits, err := s.nearestMeanings(ctx, d, q, f, ranking)
		if err != nil {
			return nil, err
		}
		all = append(all, hits)
	}
	return all, nil
}

// nearestMeanings ranks the rows that a filter leaves, in the space of r.
func (s *Search) nearestMeanings(ctx context.Context, d db.DB, q Question, f Filter, r *Ranking) (hits []Hit,
	err error) {
	space, rows := r.Space, r.scope.Rows()
	few, err := s.few(rows, f, FewByMeaning)
	switch {
	case err != nil:
		return nil, err
	case few != nil:
		args, passes := f.withFew(few), ""
		if f.Loose {
			args, passes = with(f.Args, "few", few), s.passing(f)
		}
		return scanIndex(ctx, d, wordindex.ByIndexes, s.fewMeaningsSQL(space, fewKeys, passes), args)
	case s.leavesFew(q):
		return scanIndex(ctx, d, wordindex.ByIndexes, s.fewMeaningsSQL(space, s.keysSQL(f), ""), f.Args)
	case rows > s.IndexRows:
		hits, err = scanIndex(ctx, d, byVectorIndex, s.meaningSQL(space, f, "%s"), f.Args)
	}
	if err == nil && len(hits) < plenty {
		hits, err = db.All[Hit](ctx, d, s.meaningSQL(space, f, "(%s) + 0"), f.Args)
	}
	return hits, err
}

// Most rows that pass a filter and are read one by one, to be ranked by words and by meaning. For more rows it is
// faster to check the filter on the hits of an index of all rows.
const (
	FewByWords   = 4_000
	FewByMeaning = maxFew
)

// few returns the result of Filter.Few, or nil if the scope has at most WideRows rows.
func (s *Search) few(scope int, f Filter, most int) ([]int64, error) {
	if f.Few == nil || scope <= s.WideRows {
		return nil, nil
	}
	return f.Few(most)
}

// fewKeys is SQL for FROM: a table of the keys in the argument @few. keysSQL returns the same for the keys of the rows
// that pass a filter.
const fewKeys = `unnest(@few::bigint[])`

func (s *Search) keysSQL(f Filter) string {
	return `(SELECT r.key FROM ` + s.Table + ` r WHERE ` + f.Rows + ` OFFSET 0)`
}

// withFew returns the arguments of a statement that reads the rows with the given keys: @org, @q and @few.
func (f Filter) withFew(keys []int64) pgx.StrictNamedArgs {
	return pgx.StrictNamedArgs{"org": f.Args["org"], "q": f.Args["q"], "few": keys}
}

// leavesFew reports whether the filters leave so few rows that a search reads them one by one.
func (s *Search) leavesFew(q Question) bool { return q.Most > 0 && q.Most <= min(maxFew, s.IndexRows) }

// maxFew is the most rows that are read one by one. Reading a twelfth of a scope of 100,000 rows takes as long as the
// indexes take for the whole scope.
const maxFew = 8_000

// passing returns a condition on rows with the key nearest.id, beginning with WHERE: that they pass the filter. It is
// checked for one row after the other.
func (s *Search) passing(f Filter) string {
	return `WHERE (SELECT true FROM ` + s.Table + ` r WHERE r.org = @org AND r.key = nearest.id AND ` + f.Rows + `)`
}

// fewMeaningsSQL orders rows by the distance of embedding from @q. It finds their vectors by their keys, which keys,
// SQL for FROM, has. passes is empty or a condition, beginning with WHERE.
func (s *Search) fewMeaningsSQL(space endpoint.Space, keys, passes string) string {
	return fmt.Sprintf(`
		SELECT id, -distance AS score FROM (
			SELECT v.id, v.distance FROM %s few (key)
			CROSS JOIN LATERAL (
				SELECT v.%s AS id, v.embedding::halfvec(%d) <#> @q::halfvec(%[3]d) AS distance FROM %s v
				WHERE v.org = @org AND v.space_id + 0 = %d AND v.%[2]s = few.key
				OFFSET 0
			) v
			ORDER BY v.distance
			OFFSET 0
		) nearest %[6]s
		LIMIT %[7]d`, keys, s.VectorKey, space.Dimension, s.Vectors, space.ID, passes, MeaningRows)
}

// meaningSQL orders rows by the distance of embedding from @q. An index of vectors answers only the plain form of the
// distance, with the space and the dimension as literals, as in the index's definition. For any other expression no
// index is used.
func (s *Search) meaningSQL(space endpoint.Space, f Filter, form string) string {
	distance := fmt.Sprintf(form, fmt.Sprintf("v.embedding::halfvec(%d) <#> @q::halfvec(%[1]d)", space.Dimension))
	return fmt.Sprintf(`
		SELECT id, -distance AS score FROM (
			SELECT v.%s AS id, %s AS distance FROM %s v
			WHERE v.space_id = %d AND %s
			ORDER BY distance
			LIMIT %d
		) nearest`, s.VectorKey, distance, s.Vectors, space.ID, f.Vectors, MeaningRows)
}

// Settings that make Postgres answer a search through an index even if its statistics are older than the rows. A scan
// of an index of vectors continues until enough rows pass the filter.
const (
	// ByArrayIndex is for indexes on the elements of arrays.
	ByArrayIndex  = `SELECT set_config('enable_seqscan', 'off', true), set_config('enable_indexscan', 'off', true)`
	byVectorIndex = `
		SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
		       set_config('enable_sort', 'off', true), set_config('hnsw.iterative_scan', 'relaxed_order', true),
		       set_config('hnsw.ef_search', '100', true)`
)

// scanIndex reads the hits of a search with the settings for an index, in one round trip: in its own transaction, or as
// part of d's. The order of a vector search is only nearly right; Fuse corrects it.
func scanIndex(ctx context.Context, d db.DB, settings, sql string, args pgx.StrictNamedArgs) (hits []Hit, err error) {
	var batch pgx.Batch
	batch.Queue(settings)
	batch.Queue(sql, args).Query(func(rows pgx.Rows) error {
		hits, err = pgx.CollectRows(rows, pgx.RowToStructByName[Hit])
		return err
	})
	return hits, db.Error(d.SendBatch(ctx, &batch).Close())
}

// A statement for ReadHits reads the rows' places from HitTable and HitColumns.
const (
	HitTable = `unnest(@keys::bigint[], @scores::float8[], @words::integer[], @meanings::integer[])
		WITH ORDINALITY AS hit (key, score, words_rank, meaning_rank, place)`
	HitColumns = `hit.score, hit.words_rank, hit.meaning_rank`
)

// KeyedRow returns SQL that joins the row of a table that has a key, in the organization @org. OFFSET makes Postgres
// read each row by its primary key. Without it, and with statistics that are older than the rows, Postgres compares
// each row with each hit.
func KeyedRow(table, key string) string {
	return ` CROSS JOIN LATERAL (SELECT * FROM ` + table + ` t WHERE t.org = @org AND t.key = ` + key + ` OFFSET 0)`
}

// Depth returns how many hits a page needs: the page's own, the hits on earlier pages, and one more that shows whether
// there is a next page.
func Depth(after int64, offset, limit int) int {
	if after != 0 {
		return ArmRows
	}
	return min(max(offset, 0)+limit+1, ArmRows)
}

// Behind returns the rows of a ranking after the row with the given key, or all for key 0. ErrInvalid if the ranking
// lacks the row.
func Behind(ranked []Scored, key int64) ([]Scored, error) {
	if key == 0 {
		return ranked, nil
	}
	i := slices.IndexFunc(ranked, func(r Scored) bool { return r.ID == key })
	if i < 0 {
		return nil, db.Invalid("after names nothing that this search finds: give the id of the last result of the page " +
			"before, and the same query and filters")
	}
	return ranked[i+1:], nil
}

// HitQuery reads the rows of a ranking.
type HitQuery[T any] struct {
	SQL    string // selects from HitTable and each KeyedRow of the memory's tables, in the order of hit.place
	Org    db.Org
	Offset int // hits to leave out; below 0 counts as 0
	Limit  int
	Keep   func(*T) (bool, error) // reports whether a row is a hit, and may change it; nil keeps all
}

// ReadHits reads the best rows: at most Limit after the first Offset. It skips rows that were deleted in the meantime,
// and rows that are no hits. Offset does not count these, so no hit is on two pages.
func ReadHits[T any](ctx context.Context, d db.DB, q HitQuery[T], ranked []Scored) ([]T, error) {
	hits, offset := []T{}, max(q.Offset, 0)
	for wanted := offset + q.Limit; len(ranked) > 0 && len(hits) < wanted; {
		n := min(wanted-len(hits), len(ranked))
		keys, scores, words, meanings := make([]int64, n), make([]float64, n), make([]int, n), make([]int, n)
		for i, r := range ranked[:n] {
			keys[i], scores[i], words[i], meanings[i] = r.ID, r.Score, r.WordsRank, r.MeaningRank
		}
		rows, err := db.All[T](ctx, d, q.SQL, pgx.StrictNamedArgs{"org": q.Org, "keys": keys, "scores": scores,
			"words": words, "meanings": meanings})
		if err != nil {
			return nil, err
		}
		if rows, err = q.kept(rows); err != nil {
			return nil, err
		}
		hits, ranked = append(hits, rows...), ranked[n:]
	}
	return hits[min(offset, len(hits)):], nil
}

// kept returns the rows that are hits.
func (q HitQuery[T]) kept(rows []T) (hits []T, err error) {
	if q.Keep == nil {
		return rows, nil
	}
	for i := range rows {
		keeps, err := q.Keep(&rows[i])
		if err != nil {
			return nil, err
		}
		if keeps {
			hits = append(hits, rows[i])
		}
	}
	return hits, nil
}
