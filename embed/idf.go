package embed

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/pgvector/pgvector-go"
)

// SampleRows is how many rows of a scope tell its idf well enough: ranking by 500 is as good as ranking by all.
const SampleRows = 500

// IDF knows how rare terms are among the rows of a scope, from a sample of them. It is immutable.
type IDF struct {
	having map[int32]int32 // term to the number of sampled rows that have it
	sample int
	rows   int
}

// Share is about what share of the scope's rows have at least one of the terms: the sum of their shares, at most 1.
func (f *IDF) Share(terms []int32) float64 {
	having := 0
	for _, id := range terms {
		having += int(f.having[id])
	}
	return min(float64(having)/float64(max(f.sample, 1)), 1)
}

// NewIDF counts the Terms of up to SampleRows rows drawn from a scope of the given number of rows. A sample may be empty, as in a
// scope without rows: then every term is equally rare.
func NewIDF(sample [][]int32, rows int) *IDF {
	f := &IDF{having: make(map[int32]int32), sample: len(sample), rows: max(rows, len(sample))}
	for _, terms := range sample {
		for _, id := range terms {
			f.having[id]++
		}
	}
	return f
}

// Rows is the size of the scope when it was sampled.
func (f *IDF) Rows() int { return f.rows }

// weight is BM25's idf within the sample, always above 0. Scaling the counts up to the scope's size was measured to rank worse: it
// sets the terms that the sample happens to lack too far above those it has once.
func (f *IDF) weight(id int32) float64 {
	having := float64(f.having[id])
	return math.Log(1 + (float64(f.sample)-having+0.5)/(having+0.5))
}

// Query is a search by words.
type Query struct {
	// Vector holds each term's idf times its count in the query; its inner product with a row's Lex.Vector is the row's BM25 score.
	// pgvector's <#> is the negative of that. At most MaxTerms terms; none if the query has only stop words.
	Vector pgvector.SparseVector
	// Rarest are the vector's indices, the rarest term in the scope first, the lower id first among equals. Never nil.
	Rarest []int32
}

// Query weighs the terms of a query.
func (f *IDF) Query(text string) Query {
	weights := counted(termIDs(text))
	for i, w := range weights {
		weights[i].value = w.value * float32(f.weight(w.id))
	}
	v := sparse(heaviest(weights))
	rarest := slices.Clone(v.Indices())
	slices.SortFunc(rarest, func(a, b int32) int {
		return cmp.Or(cmp.Compare(f.having[a], f.having[b]), cmp.Compare(a, b))
	})
	return Query{Vector: v, Rarest: rarest}
}

// IDFCache keeps the IDF of scopes for a while: they are good for many queries and cost one. Its zero value is ready and may be used
// from many goroutines; set the fields before the first use.
type IDFCache struct {
	Entries int              // how many scopes are kept, the oldest goes first; 0 means 1,024
	Live    time.Duration    // how long one is kept; 0 means a minute
	Now     func() time.Time // nil means time.Now

	mu      sync.Mutex
	entries map[string]cachedIDF
	loads   singleflight.Group
}

type cachedIDF struct {
	idf    *IDF
	loaded time.Time
}

// Get returns the IDF under a key, by load if it is not there or too old. Callers that come while one loads wait for it and share what
// it returns; an error is not kept. Where the caller that loads gives up, one that waits loads in its place.
func (c *IDFCache) Get(ctx context.Context, key string, load func(context.Context) (*IDF, error)) (*IDF, error) {
	for {
		if idf := c.fresh(key); idf != nil {
			return idf, nil
		}
		mine := false
		got, err, _ := c.loads.Do(key, func() (any, error) {
			mine = true
			return c.load(ctx, key, load)
		})
		if err == nil {
			return got.(*IDF), nil
		}
		if mine || ctx.Err() != nil || !canceled(err) {
			return nil, err
		}
	}
}

// canceled tells an error of the context under which it arose from one of the work.
func canceled(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func (c *IDFCache) load(ctx context.Context, key string, load func(context.Context) (*IDF, error)) (*IDF, error) {
	if idf := c.fresh(key); idf != nil { // another load ended between the look and this one
		return idf, nil
	}
	idf, err := load(ctx)
	if err != nil {
		return nil, err
	}
	c.keep(key, idf)
	return idf, nil
}

// fresh returns what is kept under key and not too old, or nil.
func (c *IDFCache) fresh(key string) *IDF {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, ok := c.entries[key]
	if !ok || c.now().Sub(entry.loaded) >= cmp.Or(c.Live, time.Minute) {
		return nil
	}
	return entry.idf
}

func (c *IDFCache) keep(key string, idf *IDF) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = make(map[string]cachedIDF)
	}
	delete(c.entries, key)
	if len(c.entries) >= cmp.Or(c.Entries, 1024) {
		delete(c.entries, c.oldest())
	}
	c.entries[key] = cachedIDF{idf: idf, loaded: c.now()}
}

func (c *IDFCache) oldest() string {
	var key string
	var loaded time.Time
	for k, entry := range c.entries {
		if loaded.IsZero() || entry.loaded.Before(loaded) {
			key, loaded = k, entry.loaded
		}
	}
	return key
}

func (c *IDFCache) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}
