package files_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/files/grep"
)

// indexText updates the index and returns how many blocks it made.
func (fx *fixture) indexText() int {
	fx.t.Helper()
	n, err := fx.IndexText(fx.t.Context())
	if err != nil {
		fx.t.Fatalf("index: %v", err)
	}
	return n
}

// unindexed returns the same store, but its searches do not use the index.
func (fx *fixture) unindexed() *fixture {
	fx.t.Helper()
	store := fx.newStore(fx.pool, files.Options{})
	store.SetIndexChars(1 << 40)
	plain := *fx
	plain.Store = store
	return &plain
}

// storedFile is a file with nothing but the rows that a search reads.
type storedFile struct {
	key        int64
	id         string
	generation int
}

// store adds a file with a text, and nothing else.
func (fx *fixture) store(folder files.Folder, name, text string) storedFile {
	fx.t.Helper()
	var f storedFile
	if err := fx.pool.QueryRow(fx.t.Context(), `
		INSERT INTO files (org, folder_key, name, original_name, media_type, size_bytes, sha256)
		VALUES ($1, $2, $3, $3, 'text/plain', 0, '') RETURNING key, id`, fx.org, folder.Key, name).
		Scan(&f.key, &f.id); err != nil {
		fx.t.Fatal(err)
	}
	return fx.rewrite(f, text)
}

// rewrite replaces the text of a file.
func (fx *fixture) rewrite(f storedFile, text string) storedFile {
	fx.t.Helper()
	f.generation++
	var rows [][]any
	for g := range grep.Segments(text) {
		rows = append(rows, []any{f.key, f.generation, g.Ordinal, fx.org, g.FirstLine, g.Lines, g.Continues, g.Text})
	}
	columns := []string{"file_key", "generation", "ordinal", "org", "first_line", "lines", "continues", "text"}
	if err := pgx.BeginFunc(fx.t.Context(), fx.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(fx.t.Context(), `DELETE FROM file_segments WHERE file_key = $1`, f.key); err != nil {
			return err
		}
		if _, err := tx.CopyFrom(fx.t.Context(), pgx.Identifier{"file_segments"}, columns,
			pgx.CopyFromRows(rows)); err != nil {
			return err
		}
		_, err := tx.Exec(fx.t.Context(), `
			UPDATE files SET generation = $2, wanted_generation = $2, chars = $3 WHERE key = $1`, f.key, f.generation, len(text))
		return err
	}); err != nil {
		fx.t.Fatal(err)
	}
	return f
}

// indexWords are words in several cases and scripts. Some fold to ASCII letters.
var indexWords = []string{"sketch", "Storage", "handler", "\u212Aelvin", "me\u017Fsage", "日本語", "größer", "svc-7",
	"a.b(c)", "needle", "x"}

// randomText returns lines of words that patterns look for. Some lines are longer than a segment.
func randomText(random *rand.Rand) string {
	var b strings.Builder
	for range random.IntN(60) {
		for range random.IntN(8) {
			b.WriteString(indexWords[random.IntN(len(indexWords))])
			if random.IntN(2) == 0 {
				b.WriteByte(' ')
			}
		}
		if random.IntN(300) == 0 {
			b.WriteString(strings.Repeat("é", grep.SegmentBytes/2-random.IntN(8)) + "needle" +
				strings.Repeat("日", 2*grep.SegmentBytes/3))
		}
		b.WriteByte('\n')
	}
	if random.IntN(5) == 0 {
		b.WriteString(manyLines(random.IntN(6000)))
	}
	return b.String()
}

func randomPattern(random *rand.Rand) string {
	word := func() string { return indexWords[random.IntN(len(indexWords))] }
	switch random.IntN(6) {
	case 0:
		return word() + word()
	case 1:
		return "(" + word() + "|" + word() + ") ?" + word()
	case 2:
		return word() + ".*" + word()
	case 3:
		return fmt.Sprintf("line %d[0-9]", random.IntN(2000))
	case 4:
		return "[sS]torage|" + strings.ToUpper(word()) + "$"
	}
	return word()
}

// Text is indexed, and the index pruned, for all organizations. So these tests have their own database and run one
// after the other.
func TestIndexOfText(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *fixture)
	}{
		{"a search reads only what may match", grepReadsOnlyWhatMayMatch},
		{"the index is kept small", theIndexIsKeptSmall},
		{"two servers index once", twoServersIndexOnce},
		{"files are replaced while they are searched", filesAreReplacedDuringAGrep},
		{"a search finds the same with the index", grepFindsTheSameWithTheIndex},
	} {
		t.Run(test.name, func(t *testing.T) {
			fx := newFixtureIn(t, pool, files.Options{})
			fx.SetIndexChars(1)
			fx.indexText() // from the tests before
			test.run(t, fx)
		})
	}
}

func grepFindsTheSameWithTheIndex(t *testing.T, fx *fixture) {
	for seed := range uint64(scale.Of(2, 4)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed+1, 9))
			fx := newFixtureIn(t, fx.pool, files.Options{})
			fx.SetIndexChars(1)
			plain := fx.unindexed()
			folders := []files.Folder{fx.folder("b"), fx.folder("a")}
			agent := fx.agentWith(folders...)
			names := map[string]storedFile{}
			for round := range 4 {
				for range 12 {
					folder := folders[random.IntN(len(folders))]
					name := fmt.Sprintf("%d.%s", random.IntN(25), []string{"md", "txt"}[random.IntN(2)])
					key := folder.Name + "/" + name
					f, exists := names[key]
					switch {
					case exists && random.IntN(2) == 0:
						if err := fx.DeleteFile(t.Context(), fx.org, folder.ID, f.id); err != nil {
							t.Fatal(err)
						}
						delete(names, key)
					case exists:
						names[key] = fx.rewrite(f, randomText(random))
					default:
						names[key] = fx.store(folder, name, randomText(random))
					}
				}
				if round != 2 {
					fx.indexText()
				}
				if _, err := fx.PruneIndex(t.Context()); err != nil {
					t.Fatal(err)
				}
				for range 12 {
					q := files.GrepQuery{Pattern: randomPattern(random), CaseSensitive: random.IntN(2) == 0,
						ContextLines: random.IntN(4),
						Offset:       random.IntN(3) * 15, Include: []string{"", "", "*.md", "a/1*"}[random.IntN(4)]}
					want, got := plain.grep(agent, q), fx.grep(agent, q)
					if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
						t.Fatalf("round %d, %+v (-without +with the index):\n%s", round, q, diff)
					}
				}
			}
		})
	}
}

// counting is a pool that counts the segments that transactions read.
type counting struct {
	*pgxpool.Pool
	segments atomic.Int64
}

func (c *counting) Begin(ctx context.Context) (pgx.Tx, error) {
	tx, err := c.Pool.Begin(ctx)
	return &countingTx{tx, c}, err
}

type countingTx struct {
	pgx.Tx
	pool *counting
}

func (tx *countingTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	rows, err := tx.Tx.Query(ctx, sql, args...)
	if err == nil && strings.Contains(sql, "file_segments") {
		return &countingRows{rows, tx.pool}, nil
	}
	return rows, err
}

type countingRows struct {
	pgx.Rows
	pool *counting
}

func (r *countingRows) Next() bool {
	more := r.Rows.Next()
	if more {
		r.pool.segments.Add(1)
	}
	return more
}

func grepReadsOnlyWhatMayMatch(t *testing.T, fx *fixture) {
	folder := fx.folder("f")
	fx.store(folder, "large.txt", manyLines(50_000)+"a planted needle\n"+manyLines(50_000))
	for i := range 30 {
		fx.store(folder, fmt.Sprintf("%02d.txt", i), manyLines(1000)+fmt.Sprintf("number %d\n", i))
	}
	agent := fx.agentWith(folder)
	pool := &counting{Pool: fx.pool}
	store := fx.newStore(pool, files.Options{})
	store.SetIndexChars(1)
	other := *fx
	other.Store = store
	all := fx.rows("file_segments")
	reads := func(q files.GrepQuery, total int) int {
		t.Helper()
		pool.segments.Store(0)
		if got := other.grep(agent, q); got.Total != total {
			t.Errorf("%+v: %d matches, want %d", q, got.Total, total)
		}
		return int(pool.segments.Load())
	}
	if n := reads(files.GrepQuery{Pattern: "planted needle"}, 1); n < all {
		t.Errorf("without an index %d of %d segments were read", n, all)
	}
	if other.indexText() != 1 || other.indexText() != 0 {
		t.Errorf("the index is not made at once, and once")
	}
	for name, c := range map[string]struct {
		query       files.GrepQuery
		total, most int
	}{
		"a text":              {files.GrepQuery{Pattern: "planted needle"}, 1, 3},
		"in another case":     {files.GrepQuery{Pattern: "PLANTED needle"}, 1, 3},
		"one of two":          {files.GrepQuery{Pattern: "planted|number 17"}, 2, 12},
		"what is nowhere":     {files.GrepQuery{Pattern: "nowhere to be found"}, 0, 0},
		"what is not in here": {files.GrepQuery{Pattern: "planted needle", Include: "*0.txt"}, 0, 0},
	} {
		if n := reads(c.query, c.total); n > c.most {
			t.Errorf("%s: %d of %d segments were read, want at most %d", name, n, all, c.most)
		}
	}
	if n := reads(files.GrepQuery{Pattern: "line"}, files.GrepCap); n > 40 {
		t.Errorf("of more matches than are counted, %d of %d segments were read", n, all)
	}
	fx.store(folder, "new.txt", "a planted needle\n")
	if n := reads(files.GrepQuery{Pattern: "planted needle"}, 2); n > 5 {
		t.Errorf("with a file that is not in the index, %d of %d segments were read", n, all)
	}
}

func theIndexIsKeptSmall(t *testing.T, fx *fixture) {
	folder := fx.folder("f")
	var list []storedFile
	for i := range 8 {
		list = append(list, fx.store(folder, fmt.Sprintf("%d.txt", i), manyLines(100)))
		fx.indexText()
	}
	if n := fx.rows("gram_blocks"); n > 3 {
		t.Errorf("8 files, indexed one by one, are in %d blocks", n)
	}
	for _, f := range list[:7] {
		if err := fx.DeleteFile(t.Context(), fx.org, folder.ID, f.id); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := fx.PruneIndex(t.Context()); err != nil || n == 0 {
		t.Fatalf("nothing is pruned: %v", err)
	}
	if n := fx.rows("gram_units", "file_key NOT IN (SELECT key FROM files)"); n > 1 {
		t.Errorf("of 7 deleted files, %d are still in the index", n)
	}
	if got := fx.grep(fx.agentWith(folder), files.GrepQuery{Pattern: "line 77"}); got.Total != 1 {
		t.Errorf("the file that is left has %d matches", got.Total)
	}
	if err := fx.DeleteFolder(t.Context(), fx.org, folder.ID); err != nil {
		t.Fatal(err)
	}
	fx.work(files.Queues())
	fx.eventually("the index of a deleted folder is cleared away", func() bool {
		return fx.rows("gram_blocks")+fx.rows("gram_units") == 0
	})
}

func twoServersIndexOnce(t *testing.T, fx *fixture) {
	folder := fx.folder("f")
	for i := range 20 {
		fx.store(folder, fmt.Sprintf("%d.txt", i), manyLines(100))
	}
	var both errgroup.Group
	for range 4 {
		both.Go(func() error {
			_, err := fx.IndexText(t.Context())
			return err
		})
	}
	if err := both.Wait(); err != nil {
		t.Fatal(err)
	}
	if n := fx.rows("gram_units"); n != 20 {
		t.Errorf("20 files are %d times in the index", n)
	}
}

// A search that needs several connections does not wait for a connection that another search holds.
func TestManySearchesOfFewConnections(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	folder := fx.folder("f")
	for i := range 4 {
		fx.store(folder, fmt.Sprintf("%d.txt", i), manyLines(40_000)+"needle\n")
	}
	agent := fx.agentWith(folder)
	config := fx.pool.Config()
	config.MaxConns = 2
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	store := fx.newStore(pool, files.Options{})
	var searches errgroup.Group
	for range 8 {
		searches.Go(func() error {
			got, err := store.Grep(t.Context(), fx.org, files.Of(agent), files.GrepQuery{Pattern: "need.e"})
			if err == nil && got.Total != 4 {
				err = fmt.Errorf("%d matches, want 4", got.Total)
			}
			return err
		})
	}
	if err := searches.Wait(); err != nil {
		t.Error(err)
	}
}

// A search finds a file that is being replaced in its old or in its new version: never both, never neither.
func filesAreReplacedDuringAGrep(t *testing.T, fx *fixture) {
	fx.work(files.Queues())
	folder := fx.folder("f")
	text := func(i int) string { return fmt.Sprintf("the needle of version %d\n%s", i, manyLines(1000)) }
	fx.upload(folder, "a.txt", text(0))
	agent := fx.agentWith(folder)
	replaced := make(chan struct{})
	var search errgroup.Group
	search.Go(func() error {
		for {
			got, err := fx.Grep(t.Context(), fx.org, files.Of(agent), files.GrepQuery{Pattern: "needle of", ContextLines: 1})
			if err != nil || got.Total != 1 || len(got.Matches[0].After) != 1 {
				return errors.Join(fmt.Errorf("got %+v", got), err)
			}
			select {
			case <-replaced:
				return nil
			default:
			}
		}
	})
	for i := range 5 {
		fx.await(folder, fx.send(folder, "a.txt", text(i+1), files.Replace))
		fx.indexText()
	}
	close(replaced)
	if err := search.Wait(); err != nil {
		t.Error(err)
	}
}
