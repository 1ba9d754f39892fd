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

// wideRows is the number of rows up to which checking the filter on every row is faster than reading Filter.Few.
const wideRows = 2_000

// MaxOwners is the most owners whose terms a search looks up in an index; a scope of more is scanned.
const MaxOwners = 5_000

// Search ranks the rows of one memory's table: by words (BM25), and by meaning where an embedding model answers.
// Set the fields before the first use; it is then safe for concurrent use.
type Search struct {
	Endpoint  *endpoint.Endpoint // nil ranks by words alone
	Reranker  *Reranker          // judges the best rows; nil if none does
	Table     string             // has the columns key, lex and terms
	Vectors   string             // the table of the rows' vectors, with the columns space_id and embedding
	VectorKey string             // the column of Vectors that holds a row's key
	IndexRows int                // a scope of more rows is searched through the indexes
	WideRows  int                // Filter.Few is called in a scope of more rows

	Words      *wordindex.Index // of the rows' words; nil if they have none
	PlainTerms bool             // the terms in Table have no owner

	statistics lexicon.IDFCache
}

// NewSearch returns a search of a table that uses the indexes above IndexRows rows.
func NewSearch(endpoint *endpoint.Endpoint, table, vectors, vectorKey string) *Search {
	return &Search{Endpoint: endpoint, Table: table, Vectors: vectors, VectorKey: vectorKey, IndexRows: IndexRows,
		WideRows: wideRows}
}

// VectorTable returns the table of the rows' vectors, which repeats columns of the rows. pending selects the number of
// rows that wait for a vector in the space $1.
func (s *Search) VectorTable(pending string, columns ...string) endpoint.Vectors {
	return endpoint.Vectors{Endpoint: s.Endpoint, Table: s.Vectors, Row: s.VectorKey, Columns: columns, Pending: pending,
		IndexRows: s.IndexRows}
}

// Filter is what a search may see, as conditions in SQL.
type Filter struct {
	Rows    string              // a condition on rows r of Search.Table
	Vectors string              // the same condition on rows v of Search.Vectors
	Args    pgx.StrictNamedArgs // the arguments that each of the conditions has, @org among them
	Keys    wordindex.Ranges    // in which the keys of all rows are that it leaves; nil if nothing is known of them

	// Few returns the keys of all rows that pass the filter, or nil if they are more than most: FewByWords or
	// FewByMeaning. Both arms of a search may call it at once. It is nil if no filter narrows the scope.
	Few func(most int) ([]int64, error)
}

// Question is one search.
type Question struct {
	Org         db.Org
	Text        string
	Filters     []Filter // the best rows of each are ranked together
	Limit       int      // the hits that are wanted of each filter: where only words rank, few more are read
	Most        int      // rows that each filter leaves, at most; 0 is all of the scope
	WordsOnly   bool
	MeaningOnly bool    // but by words where the endpoint does not answer
	Weight      float64 // how much meaning counts, in place of Endpoint.Weight; 0 is that
	AsWritten   bool    // no other spellings are searched
	Guessed     bool    // Text is another spelling of what was asked for

	// Scope names the rows that the statistics are of, whatever else the filter narrows them to. Statistics of an empty
	// name are not cached.
	Scope string
	// Sample reads the statistics of the scope.
	Sample func(context.Context) (*lexicon.IDF, error)
	// Owners returns the keys of the rows' owners: of the terms in Search.Table, unless these are plain (see Owned), and
	// in Search.Words.
	Owners func(context.Context) ([]int64, error)
}

// Rank ranks the rows that a question may see. It calls the endpoint, and reads by words and by meaning at the same
// time, so d must not be a transaction.
func (s *Search) Rank(ctx context.Context, d db.DB, q Question) (Ranking, error) {
	started := time.Now()
	q.Text = db.Clean(q.Text)
	idf, err := s.statistics.Get(ctx, q.Scope, q.Sample)
	if err != nil {
		return Ranking{}, err
	}
	out := Ranking{Query: idf.Query(q.Text), text: q.Text, scope: idf}
	if s.Reranker != nil && !q.WordsOnly && !q.MeaningOnly {
		out.judged = &judgement{reranker: s.Reranker}
	}
	words, meaning, err := s.bothArms(ctx, d, q, idf, &out)
	if out.ByWords = !q.MeaningOnly || !out.ByMeaning; err == nil && out.ByWords && q.MeaningOnly {
		words, err = s.wordsArm(ctx, d, q, idf, &out)
	}
	if err != nil {
		return Ranking{}, err
	}
	out.BestWords = max(0, out.words.best)
	out.cut = out.words.first >= ArmRows || out.meaning.first >= MeaningRows && idf.Rows() > MeaningRows
	out.wordsConfidence, out.meaningConfidence = out.confidenceOfWords(), confidenceOfMeaning(meaning)
	out.Confidence = max(out.wordsConfidence, out.meaningConfidence)
	if q.Guessed {
		out.Confidence *= GuessedShare
	}
	out.Weights = out.weigh(meaning, idf.Rows(), cmp.Or(q.Weight, s.Endpoint.MeaningWeight()))
	out.Rows = Fuse(words, meaning, out.Weights)
	out.took = time.Since(started)
	return out, nil
}

// bothArms ranks by words and by meaning at the same time, each on a connection of its own, but by one of them alone
// where the question says so.
func (s *Search) bothArms(ctx context.Context, d db.DB, q Question, idf *lexicon.IDF, out *Ranking) (
	words, meaning []Hit, err error) {
	arms, ctx := errgroup.WithContext(ctx)
	if !q.MeaningOnly {
		arms.Go(func() (err error) {
			words, err = s.wordsArm(ctx, d, q, idf, out)
			return err
		})
	}
	if !q.WordsOnly {
		arms.Go(func() (err error) {
			meaning, err = s.meaningArm(ctx, d, q, out)
			return err
		})
	}
	return words, meaning, arms.Wait()
}

// wordsArm ranks by words, and notes in out what it found.
func (s *Search) wordsArm(ctx context.Context, d db.DB, q Question, idf *lexicon.IDF, out *Ranking) ([]Hit, error) {
	began := time.Now()
	found, match, err := s.byWords(ctx, d, q, idf, out.Query)
	out.words, out.match = armOf(found, began), match
	return slices.Concat(found...), err
}

// meaningArm ranks by meaning, and notes in out what it found.
func (s *Search) meaningArm(ctx context.Context, d db.DB, q Question, out *Ranking) ([]Hit, error) {
	began := time.Now()
	found, err := s.byMeaning(ctx, d, q, out)
	out.meaning = armOf(found, began)
	return slices.Concat(found...), err
}

// plenty is how many hits an index has to find; where it finds fewer, the exact query runs. It does not depend on the
// page, so that all pages are of the same ranking.
const plenty = MeaningRows

// byMeaning ranks by the inner product with the query's vector: through the space's index in a large scope, and exactly
// where the scope is small or the index finds fewer than plenty. It notes in out whether it ranked, and why not. The
// hits are those of each filter.
func (s *Search) byMeaning(ctx context.Context, d db.DB, q Question, out *Ranking) (all [][]Hit, err error) {
	vector, space, note := s.Endpoint.EmbedQuery(ctx, q.Text)
	if out.Note = note; vector == nil {
		return nil, nil
	}
	out.ByMeaning, out.Vector, out.Space = true, vector, space
	for _, f := range q.Filters {
		f.Args = with(f.Args, "q", *vector)
		hits, err := s.nearestMeanings(ctx, d, q, f, out)
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
		return scanIndex(ctx, d, wordindex.ByIndexes, s.fewMeaningsSQL(space, fewKeys), f.withFew(few))
	case s.leavesFew(q):
		return scanIndex(ctx, d, wordindex.ByIndexes, s.fewMeaningsSQL(space, s.keysSQL(f)), f.Args)
	case rows > s.IndexRows:
		hits, err = scanIndex(ctx, d, byVectorIndex, s.meaningSQL(space, f, "%s"), f.Args)
	}
	if err == nil && len(hits) < plenty {
		hits, err = db.All[Hit](ctx, d, s.meaningSQL(space, f, "(%s) + 0"), f.Args)
	}
	return hits, err
}

// The most rows that pass a filter and are read one by one, to be ranked by words and by meaning. Ranking more takes
// longer than checking the filter on what an index of all rows finds.
const (
	FewByWords   = 4_000
	FewByMeaning = maxFew
)

// few returns what Filter.Few does, and nil if the scope has at most WideRows rows.
func (s *Search) few(scope int, f Filter, most int) ([]int64, error) {
	if f.Few == nil || scope <= s.WideRows {
		return nil, nil
	}
	return f.Few(most)
}

// fewKeys is a table, for FROM, of the keys in the argument @few; keysSQL is one of the keys of the rows that pass a
// filter.
const fewKeys = `unnest(@few::bigint[])`

func (s *Search) keysSQL(f Filter) string {
	return `(SELECT r.key FROM ` + s.Table + ` r WHERE ` + f.Rows + ` OFFSET 0)`
}

// withFew returns the arguments of a statement that reads the rows with the given keys: @org, @q and @few.
func (f Filter) withFew(keys []int64) pgx.StrictNamedArgs {
	return pgx.StrictNamedArgs{"org": f.Args["org"], "q": f.Args["q"], "few": keys}
}

// leavesFew reports whether the filters leave so few rows that a search reads these one by one.
func (s *Search) leavesFew(q Question) bool { return q.Most > 0 && q.Most <= min(maxFew, s.IndexRows) }

// maxFew is the most rows that are read one by one: in a scope of 100,000, a twelfth, which takes as long as the
// indexes take for all.
const maxFew = 8_000

// fewMeaningsSQL orders rows by the distance of embedding from @q. It finds their vectors by their keys, which a table
// has.
func (s *Search) fewMeaningsSQL(space endpoint.Space, keys string) string {
	return fmt.Sprintf(`
		SELECT id, -distance AS score FROM (
			SELECT v.id, v.distance FROM %s few (key)
			CROSS JOIN LATERAL (
				SELECT v.%s AS id, v.embedding::halfvec(%d) <#> @q::halfvec(%[3]d) AS distance FROM %s v
				WHERE v.org = @org AND v.space_id + 0 = %d AND v.%[2]s = few.key
				OFFSET 0
			) v
			ORDER BY v.distance
			LIMIT %[6]d
		) nearest`, keys, s.VectorKey, space.Dimension, s.Vectors, space.ID, MeaningRows)
}

// meaningSQL orders by the distance of embedding from @q. An index of vectors answers only the plain form of the
// distance, with the space and the dimension as literals, as its own definition names them. Wrapped in another
// expression, no index has it.
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

// The settings under which Postgres answers a search through an index even where its statistics are of a time before
// the rows were loaded. A scan of an index of vectors continues until enough rows pass the filter.
const (
	// ByArrayIndex is for indexes of the elements of arrays.
	ByArrayIndex  = `SELECT set_config('enable_seqscan', 'off', true), set_config('enable_indexscan', 'off', true)`
	byVectorIndex = `
		SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
		       set_config('enable_sort', 'off', true), set_config('hnsw.iterative_scan', 'relaxed_order', true),
		       set_config('hnsw.ef_search', '100', true)`
)

// scanIndex reads the hits of a search under the settings of an index, in one round trip: in a transaction of its own,
// or as part of d's. The order of a vector search is nearly right; Fuse corrects it.
func scanIndex(ctx context.Context, d db.DB, settings, sql string, args pgx.StrictNamedArgs) (hits []Hit, err error) {
	var batch pgx.Batch
	batch.Queue(settings)
	batch.Queue(sql, args).Query(func(rows pgx.Rows) error {
		hits, err = pgx.CollectRows(rows, pgx.RowToStructByName[Hit])
		return err
	})
	return hits, db.Error(d.SendBatch(ctx, &batch).Close())
}

// HitTable and HitColumns are what a statement for ReadHits reads the rows' places from.
const (
	HitTable = `unnest(@keys::bigint[], @scores::float8[], @words::integer[], @meanings::integer[])
		WITH ORDINALITY AS hit (key, score, words_rank, meaning_rank, place)`
	HitColumns = `hit.score, hit.words_rank, hit.meaning_rank`
)

// KeyedRow is a join with the row of a table that has a key, of the organization @org. OFFSET makes Postgres read each
// row by its primary key. Without it, and with statistics that are older than the rows, Postgres compares each row with
// each hit.
func KeyedRow(table, key string) string {
	return ` CROSS JOIN LATERAL (SELECT * FROM ` + table + ` t WHERE t.org = @org AND t.key = ` + key + ` OFFSET 0)`
}

// Depth returns how many hits a page needs: its own, those before, and one that shows that there are more.
func Depth(after int64, offset, limit int) int {
	if after != 0 {
		return ArmRows
	}
	return min(max(offset, 0)+limit+1, ArmRows)
}

// Behind returns the rows of a ranking behind the one with a key, and all for the key 0. ErrInvalid if the ranking
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
	Offset int // hits that are left out; one below 0 counts as 0
	Limit  int
	Keep   func(*T) (bool, error) // may change a row, and reports whether it is a hit; nil keeps all
}

// ReadHits reads the best rows, at most Limit behind the first Offset. It passes over rows that were deleted since they
// were found, and over those that are no hits; Offset does not count these, so that no hit is on two pages.
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
