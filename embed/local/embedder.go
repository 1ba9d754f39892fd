package local

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/endpoint"
)

// groupTexts is how many texts are embedded in the background before other work may go first.
const groupTexts = 8

// Texts is the embedder for work in the background. It embeds on few threads, which run when requests leave processors
// idle.
type Texts struct {
	encoder *Encoder
	gate    *gate
}

// NewTexts returns an embedder that uses up to the given number of threads.
func NewTexts(e *Encoder, threads int) *Texts {
	return &Texts{encoder: e.WithThreads(1).with(e.prompts.document), gate: newGate(threads)}
}

// Embed implements embed.Embedder. A text that does not suit the model is refused. Calls without embed.IsBulk go first;
// otherwise the earlier call does.
func (t *Texts) Embed(ctx context.Context, items []embed.Item) ([]embed.Vector, error) {
	items = notBlank(items)
	vectors := make([][]float32, len(items))
	place := t.gate.arrive(embed.IsBulk(ctx))
	var group sync.WaitGroup
	for from := 0; from < len(items); from += groupTexts {
		if t.gate.enter(ctx, place) != nil {
			break
		}
		to := min(from+groupTexts, len(items))
		group.Go(func() {
			defer t.gate.leave()
			giveWay()
			done, _ := t.encoder.Embed(ctx, textsOf(items[from:to])) // it fails only if ctx has ended
			copy(vectors[from:to], done)
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return t.encoder.answer(items, vectors)
}

// Queries is the embedder for searches. It embeds at once, on all threads.
type Queries struct{ encoder *Encoder }

// NewQueries returns an embedder for searches.
func NewQueries(e *Encoder) *Queries {
	return &Queries{e.WithThreads(runtime.GOMAXPROCS(0)).with(e.prompts.query)}
}

// Embed implements embed.Embedder. A text that does not suit the model is refused.
func (q *Queries) Embed(ctx context.Context, items []embed.Item) ([]embed.Vector, error) {
	items = notBlank(items)
	vectors, err := q.encoder.Embed(ctx, textsOf(items))
	if err != nil {
		return nil, err
	}
	return q.encoder.answer(items, vectors)
}

// answer returns the vectors with the IDs of their items, and a refusal for each item without a vector.
func (e *Encoder) answer(items []embed.Item, vectors [][]float32) ([]embed.Vector, error) {
	results, refused := make([]embed.Vector, 0, len(items)), []error(nil)
	for i, item := range items {
		if vectors[i] != nil {
			results = append(results, embed.Vector{ID: item.ID, Values: vectors[i]})
			continue
		}
		why := e.unsuited(e.cut(item.Text))
		refused = append(refused, &endpoint.RefusedError{ID: item.ID, Reason: why, Detail: why})
	}
	return results, errors.Join(refused...)
}

func notBlank(items []embed.Item) []embed.Item {
	return slices.DeleteFunc(slices.Clone(items), func(i embed.Item) bool { return strings.TrimSpace(i.Text) == "" })
}

func textsOf(items []embed.Item) []string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = item.Text
	}
	return texts
}
