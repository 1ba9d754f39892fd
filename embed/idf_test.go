package embed_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/embed"
)

// sampled are the terms of texts.
func sampled(texts ...string) [][]int32 {
	var sample [][]int32
	for _, text := range texts {
		sample = append(sample, embed.Document(text).Terms)
	}
	return sample
}

// inQuery is the weight of a term in a query.
func inQuery(q embed.Query, term string) float64 {
	i, ok := slices.BinarySearch(q.Vector.Indices(), idOf(term))
	if !ok {
		return 0
	}
	return float64(q.Vector.Values()[i])
}

func TestRareTermsWeighMore(t *testing.T) {
	t.Parallel()
	idf := embed.NewIDF(sampled("red fox", "red car", "red house fox", "red"), 4000)
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
	q := embed.NewIDF(nil, 0).Query("fox car fox")
	if one := inQuery(q, "car"); one <= 0 || math.Abs(inQuery(q, "fox")-2*one) > 1e-6 {
		t.Errorf("got car %v, fox twice %v, want one weight for each occurrence", one, inQuery(q, "fox"))
	}
	if want := []int32{idOf("car"), idOf("fox")}; !cmp.Equal(slices.Sorted(slices.Values(want)), q.Rarest) {
		t.Errorf("got rarest %v, want %v by id", q.Rarest, want)
	}
}

func TestQueryOfStopWords(t *testing.T) {
	t.Parallel()
	q := embed.NewIDF(sampled("fox"), 1).Query("what is it?")
	if q.Vector.String() != "{}/16777216" || q.Rarest == nil || len(q.Rarest) != 0 {
		t.Errorf("got %v and %#v, want nothing", q.Vector, q.Rarest)
	}
}

// clock is a time that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func TestCacheKeepsForItsTime(t *testing.T) {
	t.Parallel()
	c := &clock{now: testNow}
	cache := &embed.IDFCache{Live: time.Minute, Now: c.Now}
	loads := 0
	get := func() *embed.IDF {
		idf, err := cache.Get(t.Context(), "scope", func(context.Context) (*embed.IDF, error) {
			loads++
			return embed.NewIDF(nil, loads), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return idf
	}
	for _, step := range []struct {
		move time.Duration
		want int
	}{{0, 1}, {59 * time.Second, 1}, {time.Second, 2}, {time.Hour, 3}, {0, 3}} {
		c.move(step.move)
		if got := get().Rows(); got != step.want {
			t.Errorf("%v later: got load %d, want %d", step.move, got, step.want)
		}
	}
}

func TestCacheKeepsTheNewestScopes(t *testing.T) {
	t.Parallel()
	c := &clock{now: testNow}
	cache := &embed.IDFCache{Entries: 3, Live: time.Hour, Now: c.Now}
	var loaded []string
	get := func(key string) {
		c.move(time.Second)
		if _, err := cache.Get(t.Context(), key, func(context.Context) (*embed.IDF, error) {
			loaded = append(loaded, key)
			return embed.NewIDF(nil, 0), nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"a", "b", "c", "a", "d", "b", "c", "d", "a"} {
		get(key)
	}
	if want := []string{"a", "b", "c", "d", "a"}; !slices.Equal(loaded, want) {
		t.Errorf("got loads of %v, want %v", loaded, want)
	}
}

func TestCacheKeepsNoError(t *testing.T) {
	t.Parallel()
	cache := &embed.IDFCache{}
	broken := errors.New("broken")
	for range 2 {
		if _, err := cache.Get(t.Context(), "k", func(context.Context) (*embed.IDF, error) { return nil, broken }); !errors.Is(err, broken) {
			t.Errorf("got %v, want the load's error", err)
		}
	}
	if idf, err := cache.Get(t.Context(), "k", func(context.Context) (*embed.IDF, error) { return embed.NewIDF(nil, 7), nil }); err != nil || idf.Rows() != 7 {
		t.Errorf("got %v, %v, want it loaded", idf, err)
	}
}

func TestCacheLoadsOnceForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cache := &embed.IDFCache{}
		var loads atomic.Int64
		release := make(chan struct{})
		for i := range 64 {
			go func() {
				_, err := cache.Get(t.Context(), fmt.Sprint(i%4), func(context.Context) (*embed.IDF, error) {
					loads.Add(1)
					<-release
					return embed.NewIDF(nil, 0), nil
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

// A caller that gives up takes nobody with it.
func TestCacheOutlivesACallerThatGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cache := &embed.IDFCache{}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, err := cache.Get(ctx, "k", func(ctx context.Context) (*embed.IDF, error) {
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
				idf, err := cache.Get(t.Context(), "k", func(context.Context) (*embed.IDF, error) {
					loads.Add(1)
					return embed.NewIDF(nil, 7), nil
				})
				if err != nil || idf.Rows() != 7 {
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
