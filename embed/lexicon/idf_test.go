package lexicon_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/embed/lexicon"
)

// sampled returns the terms of texts in the form that rows of one owner have.
func sampled(texts ...string) [][]int64 {
	var sample [][]int64
	for _, text := range texts {
		sample = append(sample, lexicon.Owned(7, lexicon.Document(text).Terms))
	}
	return sample
}

// inQuery returns the weight of a term in a query.
func inQuery(q lexicon.Query, term string) float64 {
	i, ok := slices.BinarySearch(q.Vector.Indices(), idOf(term))
	if !ok {
		return 0
	}
	return float64(q.Vector.Values()[i])
}

func TestRareTermsWeighMore(t *testing.T) {
	t.Parallel()
	idf := lexicon.NewIDF(sampled("red fox", "red car", "red house fox", "red"), 4000)
	q := idf.Query("unseen fox, red house")
	var got []float64
	for _, term := range []string{"red", "fox", "hous", "unseen"} {
		got = append(got, inQuery(q, term))
	}
	if got[0] <= 0 || !slices.IsSorted(got) || got[0] == got[1] || got[1] == got[2] || got[2] == got[3] {
		t.Errorf("red, fox, house, unseen: got %v, want them positive and ascending", got)
	}
	if want := math.Log(1 + (4-1+0.5)/(1+0.5)); math.Abs(got[2]-want) > 1e-6 {
		t.Errorf("in 1 of 4 rows: got %v, want %v", got[2], want)
	}
	if want := []int32{idOf("unseen"), idOf("hous"), idOf("fox"), idOf("red")}; !slices.Equal(q.Rarest, want) {
		t.Errorf("got rarest %v, want %v", q.Rarest, want)
	}
	if idf.Rows() != 4000 {
		t.Errorf("got %d rows, want 4000", idf.Rows())
	}
}

func TestColdScopeWeighsAllAlike(t *testing.T) {
	t.Parallel()
	q := lexicon.NewIDF(nil, 0).Query("fox car fox")
	if one := inQuery(q, "car"); one <= 0 || math.Abs(inQuery(q, "fox")-one) > 1e-6 {
		t.Errorf("got car %v, fox twice %v, want each term to count once", one, inQuery(q, "fox"))
	}
	if want := []int32{idOf("car"), idOf("fox")}; !cmp.Equal(slices.Sorted(slices.Values(want)), q.Rarest) {
		t.Errorf("got rarest %v, want %v by id", q.Rarest, want)
	}
}

func TestQueryOfStopWords(t *testing.T) {
	t.Parallel()
	idf := lexicon.NewIDF(sampled("fox"), 1)
	if q := idf.Query("what, will a?"); !q.Common || len(q.Rarest) != 2 {
		t.Errorf("got %v and %v, want What and Will as names", q.Vector, q.Rarest)
	}
	if q := idf.Query("a?"); q.Vector.String() != "{}/16777216" || q.Rarest == nil || len(q.Rarest) != 0 || !q.Common {
		t.Errorf("got %v and %#v, want nothing", q.Vector, q.Rarest)
	}
}

func TestTheCacheHoldsLargeScopesForAMinute(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, key string
		rows      int
		want      []int // loads by then: at once, again, after 59 s, after 60 s
	}{
		{"a large scope", "scope", lexicon.SampleRows + 1, []int{1, 1, 1, 2}},
		{"a small scope", "scope", lexicon.SampleRows, []int{1, 2, 3, 4}},
		{"a scope without a name", "", lexicon.SampleRows + 1, []int{1, 2, 3, 4}},
	} {
		synctest.Test(t, func(t *testing.T) {
			cache, loads := &lexicon.IDFCache{}, 0
			for i, pause := range []time.Duration{0, 0, 59 * time.Second, time.Second} {
				time.Sleep(pause)
				idf, err := cache.Get(t.Context(), c.key, func(context.Context) (*lexicon.IDF, error) {
					loads++
					return lexicon.NewIDF(nil, c.rows), nil
				})
				if err != nil || idf.Rows() != c.rows || loads != c.want[i] {
					t.Errorf("%s, time %d: got %d loads (%v), want %d", c.name, i, loads, err, c.want[i])
				}
			}
		})
	}
}

func TestTheCacheHoldsTheNewestScopes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cache, loads := &lexicon.IDFCache{}, 0
		get := func(key int) {
			time.Sleep(time.Millisecond)
			if _, err := cache.Get(t.Context(), fmt.Sprint(key), func(context.Context) (*lexicon.IDF, error) {
				loads++
				return lexicon.NewIDF(nil, lexicon.SampleRows+1), nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		for key := range 1025 { // one more than the cache holds
			get(key)
		}
		get(1)
		if loads != 1025 {
			t.Errorf("got %d loads, want the second scope cached", loads)
		}
		get(0)
		if loads != 1026 {
			t.Errorf("got %d loads, want the oldest scope loaded again", loads)
		}
	})
}

func TestCacheKeepsNoError(t *testing.T) {
	t.Parallel()
	cache := &lexicon.IDFCache{}
	broken := errors.New("broken")
	for range 2 {
		if _, err := cache.Get(t.Context(), "k", func(context.Context) (*lexicon.IDF, error) {
			return nil,
				broken
		}); !errors.Is(
			err,
			broken,
		) {
			t.Errorf("got %v, want the load's error", err)
		}
	}
	if idf, err := cache.Get(t.Context(), "k", func(context.Context) (*lexicon.IDF, error) {
		return lexicon.NewIDF(nil, 7),
			nil
	}); err != nil ||
		idf.Rows() != 7 {
		t.Errorf("got %v, %v, want it loaded", idf, err)
	}
}

func TestCacheLoadsOnceForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cache := &lexicon.IDFCache{}
		var loads atomic.Int64
		release := make(chan struct{})
		for i := range 64 {
			go func() {
				_, err := cache.Get(t.Context(), fmt.Sprint(i%4), func(context.Context) (*lexicon.IDF, error) {
					loads.Add(1)
					<-release
					return lexicon.NewIDF(nil, 0), nil
				})
				if err != nil {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		close(release)
		synctest.Wait()
		if loads.Load() != 4 {
			t.Errorf("4 scopes asked for 64 times at once: got %d loads, want 4", loads.Load())
		}
	})
}

// If a caller gives up, the others still get the result.
func TestCacheOutlivesACallerThatGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cache := &lexicon.IDFCache{}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, err := cache.Get(ctx, "k", func(ctx context.Context) (*lexicon.IDF, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the caller that gave up: got %v, want context.Canceled", err)
			}
		}()
		synctest.Wait()
		loads := atomic.Int64{}
		for range 8 {
			go func() {
				idf, err := cache.Get(t.Context(), "k", func(context.Context) (*lexicon.IDF, error) {
					loads.Add(1)
					return lexicon.NewIDF(nil, 7000), nil
				})
				if err != nil || idf.Rows() != 7000 {
					t.Errorf("a caller that waits: got %v, %v, want what one of them loads", idf, err)
				}
			}()
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		if loads.Load() != 1 {
			t.Errorf("8 callers that waited: got %d loads, want 1", loads.Load())
		}
	})
}
