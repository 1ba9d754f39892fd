package endpoint

import (
	"container/list"
	"context"
	"crypto/sha256"
	"github.com/loci-memory/loci/embed"
	"sync"
)

// RecentTexts is how many vectors an embedder of searches keeps. With 384 numbers each, they take 7 MB.
const RecentTexts = 4096

// Recent is an Embedder that keeps the vectors of the latest texts: a search of tools embeds the same texts each time.
// It may be used from many goroutines.
type Recent struct {
	of    embed.Embedder
	limit int

	mu    sync.Mutex
	order list.List // values are *kept, the most recently used first
	kept  map[[sha256.Size]byte]*list.Element
}

type kept struct {
	key    [sha256.Size]byte
	values []float32 // never changed
}

// NewRecent returns an embedder that keeps up to limit vectors of another embedder.
func NewRecent(of embed.Embedder, limit int) *Recent {
	return &Recent{of: of, limit: limit, kept: map[[sha256.Size]byte]*list.Element{}}
}

// Embed implements embed.Embedder. It asks only for texts without a kept vector.
func (r *Recent) Embed(ctx context.Context, items []embed.Item) ([]embed.Vector, error) {
	found, missing := r.find(items)
	if len(missing) == 0 {
		return vectorsOf(items, found), nil
	}
	made, err := r.of.Embed(ctx, missing)
	if err != nil && len(Refusals(err)) == 0 {
		return nil, err
	}
	r.keep(missing, made)
	for _, v := range made {
		found[v.ID] = v.Values
	}
	return vectorsOf(items, found), err
}

// find returns the kept vectors by item ID, and the items without one.
func (r *Recent) find(items []embed.Item) (found map[int64][]float32, missing []embed.Item) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found = make(map[int64][]float32, len(items))
	for _, item := range items {
		if e := r.kept[sha256.Sum256([]byte(item.Text))]; e != nil {
			r.order.MoveToFront(e)
			found[item.ID] = e.Value.(*kept).values //nolint:forcetypeassert // it has no others
		} else {
			missing = append(missing, item)
		}
	}
	return found, missing
}

func (r *Recent) keep(items []embed.Item, vectors []embed.Vector) {
	texts := make(map[int64]string, len(items))
	for _, item := range items {
		texts[item.ID] = item.Text
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range vectors {
		key := sha256.Sum256([]byte(texts[v.ID]))
		if r.kept[key] != nil {
			continue // another call has added it
		}
		r.kept[key] = r.order.PushFront(&kept{key, v.Values})
		if r.order.Len() > r.limit {
			last := r.order.Remove(r.order.Back()).(*kept) //nolint:forcetypeassert // it has no others
			delete(r.kept, last.key)
		}
	}
}

// vectorsOf returns the vectors of the items that have one, in the items' order.
func vectorsOf(items []embed.Item, values map[int64][]float32) []embed.Vector {
	vectors := make([]embed.Vector, 0, len(items))
	for _, item := range items {
		if v := values[item.ID]; v != nil {
			vectors = append(vectors, embed.Vector{ID: item.ID, Values: v})
		}
	}
	return vectors
}
