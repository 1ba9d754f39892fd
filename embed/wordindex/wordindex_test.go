package wordindex_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/embed/lexicon"
	"github.com/loci-memory/loci/embed/rank"
	"github.com/loci-memory/loci/embed/wordindex"
)

// fixture has passages in archives, with only the rows that a search reads. They belong to an organization in the
// database that the package's tests share.
type fixture struct {
	testing.TB
	pool     *pgxpool.Pool
	org      db.Org
	index    *wordindex.Index
	archives []int64
	keys     []int64 // of the passages
	texts    int     // how many were made
}

func newFixture(t testing.TB, archives int) *fixture {
	t.Helper()
	pool, org := dbtest.Org(t)
	return fixtureOf(t, pool, org, archives)
}

func fixtureOf(t testing.TB, pool *pgxpool.Pool, org db.Org, archives int) *fixture {
	t.Helper()
	f := &fixture{TB: t, pool: pool, org: org, index: wordindex.New("passages", "passages", "archive_key", "key")}
	f.index.Wait = time.Minute // for the transactions of other tests
	for range archives {
		f.archives = append(f.archives, one[int64](f, `
			INSERT INTO archives (org, name) VALUES ($1, 'a') RETURNING key`, f.org))
	}
	return f
}

func one[T any](f *fixture, sql string, args ...any) T {
	f.Helper()
	got, err := db.One[T](f.Context(), f.pool, sql, args...)
	f.must(err)
	return got
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// insert adds passages to an archive on d, which may be a transaction.
func (f *fixture) insert(d db.DB, archive int64, texts ...string) {
	f.Helper()
	passages := make([]passage, len(texts))
	for i, text := range texts {
		passages[i].text = text
	}
	f.insertAll(d, archive, passages)
}

// passage is a text with its tags.
type passage struct {
	text string
	tags []string
}

func (f *fixture) insertAll(d db.DB, archive int64, passages []passage) {
	f.Helper()
	var batch pgx.Batch
	for _, p := range passages {
		f.texts++
		lex, sum := lexicon.Document(p.text), sha256.Sum256(fmt.Append(nil, f.texts))
		batch.Queue(`
			INSERT INTO passages (org, archive_key, text, sha256, lex, terms, tags) VALUES ($1, $2, $3, $4, $5, $6, $7)
			RETURNING key`, f.org, archive, p.text, sum[:], lex.Vector, lexicon.Owned(archive, lex.Terms), db.Tags(p.tags)).
			QueryRow(func(row pgx.Row) error {
				var key int64
				err := row.Scan(&key)
				f.keys = append(f.keys, key)
				return err
			})
	}
	f.must(d.SendBatch(f.Context(), &batch).Close())
}

// numbered returns count texts with the numbers from 0.
func numbered(format string, count int) []string {
	texts := make([]string, count)
	for i := range texts {
		texts[i] = fmt.Sprintf(format, i)
	}
	return texts
}

// rewrite gives a passage another text.
func (f *fixture) rewrite(key int64, text string) {
	f.Helper()
	lex := lexicon.Document(text)
	f.must(db.Tx(f.Context(), f.pool, func(tx pgx.Tx) error {
		if err := f.index.Note(f.Context(), tx, f.org, key); err != nil {
			return err
		}
		_, err := tx.Exec(f.Context(), `
			UPDATE passages SET text = $3, lex = $4, terms = '{}' WHERE org = $1 AND key = $2`,
			f.org, key, text, lex.Vector)
		return err
	}))
}

func (f *fixture) exec(sql string, args ...any) {
	f.Helper()
	_, err := f.pool.Exec(f.Context(), sql, args...)
	f.must(err)
}

func (f *fixture) update() int {
	f.Helper()
	n, err := f.index.Update(f.Context(), f.pool)
	f.must(err)
	return n
}

func (f *fixture) prune() int {
	f.Helper()
	n, err := f.index.PruneOrg(f.Context(), f.pool, f.org)
	f.must(err)
	return n
}

// search returns a search of the passages by words: through the index or, if it is nil, exact.
func (f *fixture) search(index *wordindex.Index) *rank.Search {
	search := rank.NewSearch(nil, "passages", "passage_vectors", "passage_key")
	search.Words, search.IndexRows = index, 1<<40
	return search
}

const wordsLimit = 10

func (f *fixture) question(archives []int64, where, text string) rank.Question {
	const scope = `r.org = @org AND r.archive_key = ANY (@archives)`
	return rank.Question{
		Org: f.org, Text: text, Limit: wordsLimit, WordsOnly: true,
		Filters: []rank.Filter{{Rows: scope + where,
			Args: pgx.StrictNamedArgs{"org": f.org, "archives": archives}}},
		Sample: func(ctx context.Context) (*lexicon.IDF, error) {
			terms, err := db.All[[]int64](ctx, f.pool, `
				SELECT terms FROM passages WHERE org = $1 AND archive_key = ANY ($2) ORDER BY key LIMIT 500`,
				f.org, archives)
			return lexicon.NewIDF(terms, len(f.keys)), err
		},
		Owners: func(context.Context) ([]int64, error) { return archives, nil },
	}
}

// rank ranks the passages of archives by words: through the index or, if it is nil, exactly.
func (f *fixture) rank(index *wordindex.Index, archives []int64, where, text string) []rank.Scored {
	f.Helper()
	ranking, err := f.search(index).Rank(f.Context(), f.pool, f.question(archives, where, text))
	f.must(err)
	return ranking.Rows
}

// Words of random texts. There are so few that many texts share them, and equal texts are frequent.
var vocabulary = strings.Fields("apple pear plum quince cherry walnut hazel almond fig date olive grape lemon lime")

func randomWords(random *rand.Rand, most int) string {
	words := make([]string, 1+random.IntN(most))
	for i := range words {
		words[i] = vocabulary[min(random.IntN(len(vocabulary)), random.IntN(len(vocabulary)))]
	}
	return strings.Join(words, " ")
}

var filters = []string{"", "", ` AND r.tags && '{half}'`, ` AND r.tags && '{tenth}'`, ` AND r.key % 97 = 0`}

// Whatever is inserted, changed, deleted, indexed and pruned, the index ranks like the rows themselves.
func TestTheIndexRanksAsTheRowsDo(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	answered := 0
	seeds := scale.Of(2, 6)
	for seed := range uint64(seeds) {
		random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // for a test
		f := newFixture(t, 2)
		f.index.FirstRows, f.index.NewRows, f.index.SegmentRows = 40, 10, 64+random.IntN(300)
		f.index.CachedBytes >>= 8 * (seed % 4) // the smallest cache has room for a few parts
		for step := range 40 {
			f.change(random)
			text := randomWords(random, 5)
			archives := f.archives[:1+random.IntN(2)]
			where := filters[random.IntN(len(filters))]
			want, got := f.rank(nil, archives, where, text), f.rank(f.index, archives, where, text)
			if len(got) > 2*wordsLimit { // with a filter, the index ranks more than a page needs, but not all
				want = want[:min(len(want), len(got))]
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d, step %d: %q where %q in %d archives (-rows +index):\n%s", seed, step, text, where,
					len(archives), diff)
			}
			if f.answers(archives, text) {
				answered++
			}
		}
	}
	if answered < 10*seeds {
		t.Errorf("the index answered %d of %d searches, want most", answered, 40*seeds)
	}
}

// If a filter names ranges of keys, the index ranks like the rows, whatever else is in the ranges.
func TestTheIndexRanksRangesOfKeysAsTheRowsDo(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 7)) //nolint:gosec // for a test
	f := newFixture(t, 2)
	f.index.FirstRows, f.index.NewRows, f.index.SegmentRows = 40, 10, 200
	for range 30 {
		f.change(random)
	}
	f.update()
	for range 40 {
		var all []wordindex.Range
		where := ` AND (false`
		for range random.IntN(6) {
			first := f.keys[random.IntN(len(f.keys))]
			r := wordindex.Range{First: first, Last: first + int64(random.IntN(40))}
			all = append(all, r)
			where += fmt.Sprintf(` OR r.key BETWEEN %d AND %d AND r.key %% 3 > 0`, r.First, r.Last)
		}
		text := randomWords(random, 4)
		q := f.question(f.archives, where+`)`, text)
		want, err := f.search(nil).Rank(t.Context(), f.pool, q)
		f.must(err)
		q.Filters[0].Keys = wordindex.NewRanges(all)
		got, err := f.search(f.index).Rank(t.Context(), f.pool, q)
		f.must(err)
		if diff := cmp.Diff(want.Rows, got.Rows); diff != "" {
			t.Fatalf("%q in %v (-rows +index):\n%s", text, all, diff)
		}
	}
}

// answers reports whether the index answers a question.
func (f *fixture) answers(archives []int64, text string) bool {
	f.Helper()
	lex := lexicon.Document(text)
	m, err := f.index.Match(f.Context(), f.pool, wordindex.Question{Org: f.org, Owners: archives, Terms: lex.Terms,
		Weights: lex.Vector.Values()})
	f.must(err)
	return m != nil
}

// change changes something random in the rows or the index.
func (f *fixture) change(random *rand.Rand) {
	f.Helper()
	any := func() int64 { return f.keys[random.IntN(len(f.keys))] }
	switch n := random.IntN(10); {
	case n < 4 || len(f.keys) == 0:
		archive := random.IntN(len(f.archives))
		passages := make([]passage, random.IntN(150))
		for i := range passages {
			passages[i].tags = []string{"half", "tenth"}[:min(2, 20/(1+random.IntN(40)))]
			passages[i].text = randomWords(random, 30)
		}
		f.insertAll(f.pool, f.archives[archive], passages)
		f.index.Grew(f.org, f.archives[archive], 150)
	case n < 5:
		for range 5 {
			f.rewrite(any(), randomWords(random, 30))
		}
	case n < 6:
		from := random.IntN(len(f.keys))
		deleted := f.keys[from:min(from+random.IntN(60), len(f.keys))]
		f.exec(`DELETE FROM passages WHERE org = $1 AND key = ANY ($2)`, f.org, deleted)
	case n < 7:
		f.prune()
	case n < 8 && random.IntN(3) == 0: // the index may be deleted, also in part
		f.exec(`DELETE FROM word_segments WHERE org = $1 AND key % 3 = $2`, f.org, random.IntN(3))
	default:
		f.update()
	}
}

// A row is found even if its transaction ends after later rows were indexed.
func TestARowThatIsCommittedLateIsFound(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 1)
	f.index.FirstRows, f.index.NewRows, f.index.Wait = 10, 5, 0
	tx, err := f.pool.Begin(t.Context())
	f.must(err)
	f.insert(tx, f.archives[0], "the late quince")
	f.insert(f.pool, f.archives[0], numbered("plum %d", 30)...)
	f.index.Grew(f.org, f.archives[0], 30)
	if n := f.update(); n != 0 {
		t.Errorf("%d segments are made while an earlier row may still come, want 0", n)
	}
	f.must(tx.Commit(t.Context()))
	f.index.Wait = time.Minute
	f.index.Grew(f.org, f.archives[0], 30)
	if n := f.update(); n != 1 {
		t.Errorf("got %d segments, want 1", n)
	}
	if got := f.rank(f.index, f.archives, "", "quince"); len(got) != 1 || got[0].ID != f.keys[0] {
		t.Errorf("got %v, want the late row %d", got, f.keys[0])
	}
}

// Rows that are added in small steps end up in few segments. Deleted rows leave the index.
func TestSegmentsAreMergedAndPruned(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 1)
	f.index.FirstRows, f.index.NewRows, f.index.SegmentRows = 20, 10, 200
	for range 40 {
		f.insert(f.pool, f.archives[0], numbered("apple pear %d", 10)...)
		f.index.Grew(f.org, f.archives[0], 10)
		f.update()
	}
	if n := one[int](f, `SELECT count(*) FROM word_segments WHERE org = $1`, f.org); n > 6 {
		t.Errorf("400 rows in steps of 10 have %d segments of at most 200, want at most 6", n)
	}
	covered := one[int](f, `SELECT sum(rows) FROM word_segments WHERE org = $1`, f.org)
	if covered < 390 {
		t.Errorf("the segments have %d of 400 rows, want all but the last", covered)
	}
	f.exec(`DELETE FROM passages WHERE org = $1 AND key % 3 = 0`, f.org)
	if n := f.prune(); n == 0 {
		t.Error("no segment is made anew though a third of the rows is deleted")
	}
	if n := f.prune(); n != 0 {
		t.Errorf("%d segments are made anew again", n)
	}
	f.exec(`DELETE FROM passages WHERE org = $1`, f.org)
	f.exec(`DELETE FROM archives WHERE org = $1`, f.org)
	if n := one[int](f, `SELECT count(*) FROM word_postings WHERE org = $1`, f.org); n != 0 {
		t.Errorf("a deleted archive leaves %d rows of postings", n)
	}
}

// After pruning, the index no longer has the words of an erased row.
func TestErasedWordsLeaveTheIndex(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 1)
	f.index.FirstRows = 10
	f.insert(f.pool, f.archives[0], numbered("plum %d", 20)...)
	f.insert(f.pool, f.archives[0], "secret quince")
	f.index.Grew(f.org, f.archives[0], f.index.NewRows)
	f.update()
	bytes := func() int {
		return one[int](f, `SELECT sum(length(postings)) FROM word_postings WHERE org = $1`, f.org)
	}
	before := bytes()
	f.must(db.Tx(t.Context(), f.pool, func(tx pgx.Tx) error {
		if err := f.index.Note(t.Context(), tx, f.org, f.keys[20]); err != nil {
			return err
		}
		return db.Exec(t.Context(), tx, `DELETE FROM passages WHERE org = $1 AND key = $2`, f.org, f.keys[20])
	}))
	if got := f.rank(f.index, f.archives, "", "quince"); len(got) != 0 {
		t.Errorf("an erased row is found: %v", got)
	}
	if n := f.prune(); n != 1 {
		t.Errorf("%d segments are made anew, want 1", n)
	}
	if after := bytes(); after >= before {
		t.Errorf("the postings have %d bytes after the erasure, and had %d", after, before)
	}
	if n := one[int](f, `SELECT count(*) FROM word_changes WHERE org = $1`, f.org); n != 0 {
		t.Errorf("%d changes are still noted", n)
	}
}

// Pruning makes segments again for every organization.
func TestPruningTakesInEveryOrganization(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	var f *fixture
	for range 2 {
		f = fixtureOf(t, pool, dbtest.NewOrg(t, pool), 1)
		f.index.FirstRows = 10
		f.insert(pool, f.archives[0], numbered("plum %d", 20)...)
		f.index.Grew(f.org, f.archives[0], f.index.NewRows)
		f.update()
		f.exec(`DELETE FROM passages WHERE org = $1 AND key % 3 = 0`, f.org)
	}
	for _, want := range []int{2, 0} {
		if n, err := f.index.Prune(t.Context(), pool); n != want || err != nil {
			t.Errorf("%d segments are made anew (%v), want %d", n, err, want)
		}
	}
}

// A match knows which words segments have. Those words are not treated as misspelt.
func TestAMatchKnowsTheTermsThatSegmentsHave(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 1)
	f.index.FirstRows = 10
	f.insert(f.pool, f.archives[0], append(slices.Repeat([]string{"plum"}, 19), "pear")...)
	f.index.Grew(f.org, f.archives[0], f.index.NewRows)
	f.update()
	query := lexicon.Document("plum pear quince")
	for range 2 { // read from the tables, then from memory
		m, err := f.index.Match(t.Context(), f.pool, wordindex.Question{Org: f.org, Owners: f.archives,
			Terms: query.Terms, Weights: query.Vector.Values()})
		f.must(err)
		for word, want := range map[string]bool{"plum": true, "pear": true, "quince": false} {
			if got := m.Has(lexicon.Document(word).Terms[0]); got != want {
				t.Errorf("Has(%s) = %v with 19 rows of plum and one of pear, want %v", word, got, want)
			}
		}
	}
}

// Misspelt words are looked up in the vocabularies of segments, and in the rows without a segment.
func TestMisspeltWordsAreLookedUpInTheIndex(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 1)
	f.index.FirstRows = 10
	f.insert(f.pool, f.archives[0], numbered("The budget of offsite %d and the orchard of plums", 40)...)
	f.index.Grew(f.org, f.archives[0], f.index.NewRows)
	if f.update() == 0 {
		t.Fatal("no segment was made")
	}
	f.exec(`UPDATE passages SET terms = '{}' WHERE org = $1`, f.org) // a search without the index looks them up here
	f.insert(f.pool, f.archives[0], "A concerto for the saxophone")
	f.checkSpellings(f.pool, f.index, 0, map[string]string{
		"bugdet": "budget", "the concreto": "the concerto", "offsight orchrad": "offsight orchard", "budget": "",
		"concerto": "", "zzyzxq": "",
	})
}

// If a filter leaves few rows, misspelt words are looked up in them, without any index.
func TestMisspeltWordsAreLookedUpInFewRows(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 1)
	f.insert(f.pool, f.archives[0], numbered("The budget of offsite %d and the orchard of plums", 40)...)
	plans := dbtest.NewPlans(t, f.pool)
	f.checkSpellings(plans, nil, 40, map[string]string{
		"bugdet": "budget", "offsight orchrad": "offsight orchard", "budget": "", "zzyzxq": "",
	})
	if plan := plans.Take("WITH sharing"); plan == "" || strings.Contains(plan, "passages_terms") {
		t.Errorf("the rows are found by the index of their terms:\n%s", plan)
	}
}

// checkSpellings checks which spelling is searched in place of each text; "" is the text itself. The scope claims
// 10,000 rows. Filters leave at most most of them; 0 is all.
func (f *fixture) checkSpellings(d db.DB, index *wordindex.Index, most int, spellings map[string]string) {
	f.Helper()
	for text, want := range spellings {
		q := f.question(f.archives, "", text)
		q.Most, q.Scope, q.Sample = most, "", func(context.Context) (*lexicon.IDF, error) {
			return lexicon.NewIDF([][]int64{{1}}, 10_000), nil
		}
		search := f.search(index)
		_, got, err := rank.Respelled(f.Context(), d, search, q,
			func(text string, _ bool) (rank.Searched[struct{}], error) {
				q.Text = text
				ranking, err := search.Rank(f.Context(), f.pool, q)
				found := rank.Searched[struct{}]{Ranking: ranking}
				for _, row := range ranking.Rows {
					found.Texts = append(found.Texts, one[string](f, `SELECT text FROM passages WHERE org = $1 AND key = $2`,
						f.org, row.ID))
				}
				return found, err
			})
		if err != nil || got != want {
			f.Errorf("%q is searched as %q (%v), want %q", text, got, err, want)
		}
	}
}

// The vocabularies of a match's segments count each term's rows correctly. If a segment was deleted, they say so.
func TestAMatchCountsTheRowsOfTerms(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 2)
	f.index.FirstRows, f.index.NewRows, f.index.SegmentRows = 10, 1, 30
	random, want, queried := rand.New(rand.NewPCG(3, 3)), map[int32]int{}, map[int32]bool{}
	for i := range 200 {
		text := fmt.Sprintf("w%d w%d w%d", random.IntN(20), random.IntN(400), random.IntN(400))
		f.insert(f.pool, f.archives[i%2], text)
		for _, term := range lexicon.Document(text).Terms {
			want[term]++
			queried[term], queried[term+1], queried[max(0, term-1)] = true, true, true
		}
	}
	queried[0], queried[lexicon.Lexicon-1] = true, true
	for _, archive := range f.archives {
		f.index.Grew(f.org, archive, f.index.NewRows)
	}
	if n := f.update(); n < 6 {
		t.Fatalf("%d segments were made, want several of 30 rows", n)
	}
	terms := slices.Collect(maps.Keys(queried))
	m, err := f.index.Match(t.Context(), f.pool, wordindex.Question{Org: f.org, Owners: f.archives,
		Terms: terms[:3], Weights: []float32{1, 1, 1}})
	f.must(err)
	for range 2 { // read from the tables, then from memory
		got, ok, err := f.index.Count(t.Context(), f.pool, m, terms)
		if diff := cmp.Diff(want, got); err != nil || !ok || diff != "" {
			t.Fatalf("ok %v (%v), counts differ (-want +got):\n%s", ok, err, diff)
		}
	}
	f.exec(`DELETE FROM word_segments WHERE org = $1 AND key = (SELECT min(key) FROM word_segments WHERE org = $1)`, f.org)
	restarted := wordindex.New("passages", "passages", "archive_key", "key") // it remembers nothing
	if got, ok, err := restarted.Count(t.Context(), f.pool, m, terms); err != nil || ok {
		t.Errorf("of a segment that is gone got %v, ok %v (%v), want that it is not whole", got, ok, err)
	}
}

// A damaged segment gives an error, not a wrong answer.
func TestADamagedSegmentIsAnError(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 1)
	f.index.FirstRows = 10
	f.insert(f.pool, f.archives[0], slices.Repeat([]string{"plum"}, 20)...)
	f.index.Grew(f.org, f.archives[0], f.index.NewRows)
	f.update()
	whole := one[[]byte](f, `SELECT postings FROM word_postings WHERE org = $1`, f.org)
	lex := lexicon.Document("plum")
	for n := range whole {
		for _, damaged := range [][]byte{whole[:n], slices.Concat(whole[:n], []byte{whole[n] + 7}, whole[n+1:])} {
			f.exec(`UPDATE word_postings SET postings = $2 WHERE org = $1`, f.org, damaged)
			restarted := wordindex.New("passages", "passages", "archive_key", "key") // it remembers nothing
			_, err := restarted.Match(t.Context(), f.pool, wordindex.Question{Org: f.org, Owners: f.archives,
				Terms: lex.Terms, Weights: lex.Vector.Values()})
			if len(damaged) < len(whole) && err == nil {
				t.Errorf("%d of %d bytes: got no error", n, len(whole))
			}
		}
	}
}
