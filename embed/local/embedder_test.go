package local_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/embed/local"
)

// suited returns more items than a group has. They suit the model; blank ones are in between.
func suited() (items []embed.Item) {
	for i, word := range strings.Fields("disk cable office lift moon sea tide clock train ticket") {
		items = append(items, embed.Item{ID: int64(10 + i), Text: "Where is the " + word + "?"},
			embed.Item{ID: 99, Text: " \n"})
	}
	return items
}

func TestEmbeddersGiveTheVectorsOfTheEncoder(t *testing.T) {
	t.Parallel()
	e := open(t)
	var want []embed.Vector
	for _, item := range suited() {
		if strings.TrimSpace(item.Text) != "" {
			want = append(want, embed.Vector{ID: item.ID, Values: embedAll(t, e, item.Text)[0]})
		}
	}
	for name, embedder := range map[string]embed.Embedder{"Texts on one thread": local.NewTexts(e, 1),
		"Texts on three threads": local.NewTexts(e, 3), "Queries": local.NewQueries(e)} {
		got, err := embedder.Embed(t.Context(), suited())
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestEmbeddersRefuseWhatDoesNotSuitTheModel(t *testing.T) {
	t.Parallel()
	e := open(t)
	items := []embed.Item{{ID: 1, Text: "3.14 42"}, {ID: 2, Text: "Как восстановить пароль?"}, {ID: 3, Text: "a clock"},
		{ID: 4, Text: "xqzkj wvbqx zzkqy"}}
	want := map[int64]string{1: "it has no letters", 2: "most of its letters are not Latin",
		4: "its words fall apart into single letters"}
	for name, embedder := range map[string]embed.Embedder{"Texts": local.NewTexts(e, 1), "Queries": local.NewQueries(e)} {
		vectors, err := embedder.Embed(t.Context(), items)
		got := map[int64]string{}
		for _, refused := range endpoint.Refusals(err) {
			got[refused.ID] = refused.Reason
		}
		if diff := cmp.Diff(want, got); diff != "" || len(vectors) != 1 || vectors[0].ID != 3 {
			t.Errorf("%s: %d vectors, refusals (-want +got):\n%s", name, len(vectors), diff)
		}
	}
}

func TestEmbeddersEndWithTheirContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e := open(t)
	for name, embedder := range map[string]embed.Embedder{"Texts": local.NewTexts(e, 1), "Queries": local.NewQueries(e)} {
		if got, err := embedder.Embed(ctx, suited()); !errors.Is(err, context.Canceled) || got != nil {
			t.Errorf("%s: got %d vectors, %v, want context.Canceled", name, len(got), err)
		}
	}
}

func TestOthersGoBeforeBulkAndOlderCallsFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := local.NewGate(1)
		if err := g.Enter(t.Context(), g.Arrive(false)); err != nil {
			t.Fatal(err)
		}
		var order []string
		ended := make(chan struct{})
		later, cancel := context.WithCancel(t.Context())
		wait := func(name string, ctx context.Context, p local.Place) {
			go func() {
				defer func() { ended <- struct{}{} }()
				if g.Enter(ctx, p) == nil {
					order = append(order, name)
					g.Leave()
				}
			}()
			synctest.Wait() // it waits now
		}
		oldBulk, newBulk, old, newer := g.Arrive(true), g.Arrive(true), g.Arrive(false), g.Arrive(false)
		wait("the newer bulk", t.Context(), newBulk)
		wait("the newer", t.Context(), newer)
		wait("one that ended", later, old)
		wait("the older bulk", t.Context(), oldBulk)
		wait("the older", t.Context(), old)
		cancel()
		<-ended
		g.Leave()
		for range 4 {
			<-ended
		}
		want := []string{"the older", "the newer", "the older bulk", "the newer bulk"}
		if !slices.Equal(order, want) {
			t.Errorf("got %q, want %q", order, want)
		}
	})
}
