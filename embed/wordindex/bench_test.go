package wordindex_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/embed/lexicon"
	"github.com/loci-memory/loci/embed/rank"
	"github.com/loci-memory/loci/embed/wordindex"
)

const (
	benchRows  = 100_000
	benchBytes = 800 // of a passage
)

// BenchmarkRank ranks 100,000 passages of Go's own source by five words, in turn with and without the index of words.
// It reports the medians and the 90th percentiles of the times.
func BenchmarkRank(b *testing.B) {
	f := newFixture(b, 1)
	texts := sourcePassages(b)
	f.load(texts)
	f.index.Grew(f.org, f.archives[0], len(texts))
	b.Logf("%d segments of %d rows", f.update(), len(texts))
	times := map[string][]float64{}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // for a benchmark
	ways := map[string]*rank.Search{}
	for way, index := range map[string]*wordindex.Index{"segments": f.index, "rows": nil} {
		ways[way] = rank.NewSearch(nil, "passages", "passage_vectors", "passage_key")
		ways[way].Words = index
	}
	for b.Loop() {
		words := strings.Fields(texts[random.IntN(len(texts))])
		random.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
		for way, search := range ways {
			began := time.Now()
			f.rankWith(search, strings.Join(words[:min(5, len(words))], " "))
			times[way] = append(times[way], float64(time.Since(began).Microseconds())/1000)
		}
	}
	for way, all := range times {
		slices.Sort(all)
		b.ReportMetric(all[len(all)/2], "ms-median-"+way)
		b.ReportMetric(all[len(all)*9/10], "ms-90%-"+way)
	}
}

func (f *fixture) rankWith(search *rank.Search, text string) {
	f.Helper()
	const scope = `r.org = @org AND r.archive_key = ANY (@archives)`
	_, err := search.Rank(f.Context(), f.pool, rank.Question{
		Org: f.org, Text: text, Limit: 10, WordsOnly: true, Scope: "bench",
		Filters: []rank.Filter{{Rows: scope,
			Args: pgx.StrictNamedArgs{"org": f.org, "archives": f.archives}}},
		Sample: func(ctx context.Context) (*lexicon.IDF, error) {
			terms, err := db.All[[]int64](ctx, f.pool, `
				SELECT terms FROM passages WHERE org = $1 AND key % 200 = 0 LIMIT 500`, f.org)
			return lexicon.NewIDF(terms, benchRows), err
		},
		Owners: func(context.Context) ([]int64, error) { return f.archives, nil },
	})
	f.must(err)
}

// sourcePassages returns passages of Go's source code.
func sourcePassages(b *testing.B) (texts []string) {
	b.Helper()
	root, err := exec.CommandContext(b.Context(), "go", "env", "GOROOT").Output() // -trimpath hides it
	if err != nil {
		b.Fatal(err)
	}
	source := filepath.Join(strings.TrimSpace(string(root)), "src")
	err = filepath.WalkDir(source, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || e.IsDir() {
			return err
		}
		if len(texts) >= benchRows {
			return fs.SkipAll
		}
		source, err := os.ReadFile(path)
		for ; len(source) > 0 && len(texts) < benchRows; source = source[min(benchBytes, len(source)):] {
			texts = append(texts, strings.ToValidUTF8(string(source[:min(benchBytes, len(source))]), ""))
		}
		return err
	})
	if err != nil || len(texts) < benchRows {
		b.Fatalf("%d passages of %d, %v", len(texts), benchRows, err)
	}
	return texts
}

// load copies passages into the archive.
func (f *fixture) load(texts []string) {
	f.Helper()
	_, err := f.pool.CopyFrom(f.Context(), pgx.Identifier{"passages"},
		[]string{"org", "archive_key", "text", "sha256", "lex", "terms"},
		pgx.CopyFromSlice(len(texts), func(i int) ([]any, error) {
			lex, sum := lexicon.Document(texts[i]), sha256.Sum256(fmt.Append(nil, i))
			return []any{f.org, f.archives[0], texts[i], sum[:], lex.Vector, lexicon.Owned(f.archives[0], lex.Terms)}, nil
		}))
	f.must(err)
	_, err = dbtest.Owner(f, f.pool).Exec(f.Context(), `VACUUM ANALYZE passages`)
	f.must(err)
}
