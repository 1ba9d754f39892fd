package rank

import (
	"context"
	"sync"
	"time"

	"github.com/loci-memory/loci/embed/lexicon"
)

// Bounds of the compound words that are kept in memory.
const (
	compoundTexts  = 5_000 // the newest of a scope, whose compound words are known
	cachedScopes   = 32
	compoundsLife  = 10 * time.Minute // of a scope with more rows than are sampled
	compoundsGrown = 20               // a scope that has grown by a twentieth is read again
)

// compoundsCache keeps the compound words of scopes. Its zero value is ready and safe for concurrent use.
type compoundsCache struct {
	mu     sync.Mutex
	scopes map[string]cachedCompounds
}

type cachedCompounds struct {
	*lexicon.Compounds
	read   time.Time
	rows   int
	sample uint64 // the sum of the statistics
}

// of returns the compound words of a question's scope, or nil if its texts are in languages without them. Those of a
// small scope are read again after each change, those of others from time to time.
func (c *compoundsCache) of(ctx context.Context, q Question, idf *lexicon.IDF) (*lexicon.Compounds, error) {
	if q.Texts == nil || !idf.HasCompounds() {
		return nil, nil //nolint:nilnil // as documented
	}
	known, sum := c.get(q.Scope), idf.Sum()
	fresh := known.sample == sum && idf.IsComplete() || !idf.IsComplete() && time.Since(known.read) < compoundsLife &&
		idf.Rows() <= known.rows+known.rows/compoundsGrown
	if known.Compounds != nil && fresh {
		return known.Compounds, nil
	}
	texts, err := q.Texts(ctx, compoundTexts)
	if err != nil {
		return nil, err
	}
	known = cachedCompounds{lexicon.NewCompounds(texts), time.Now(), idf.Rows(), sum}
	c.add(q.Scope, known)
	return known.Compounds, nil
}

func (c *compoundsCache) get(scope string) cachedCompounds {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.scopes[scope]
}

// add keeps the compound words of a scope that has a name, in place of those that were read first.
func (c *compoundsCache) add(scope string, known cachedCompounds) {
	if scope == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.scopes == nil {
		c.scopes = map[string]cachedCompounds{}
	}
	delete(c.scopes, scope)
	if len(c.scopes) >= cachedScopes {
		oldest := ""
		for name, k := range c.scopes {
			if oldest == "" || k.read.Before(c.scopes[oldest].read) {
				oldest = name
			}
		}
		delete(c.scopes, oldest)
	}
	c.scopes[scope] = known
}
