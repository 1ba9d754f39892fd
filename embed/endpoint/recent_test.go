package endpoint_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/embed/endpoint"
)

func TestRecentAsksOnlyForTextsThatItDoesNotKeep(t *testing.T) {
	t.Parallel()
	fake := embedtest.New(t, 8)
	fake.Refuse = "forbidden"
	all := fake.Endpoint(t).Embedder
	recent := endpoint.NewRecent(all, 3)
	items := func(texts ...string) (items []embed.Item) {
		for i, text := range texts {
			items = append(items, embed.Item{ID: int64(7 * (i + 1)), Text: text})
		}
		return items
	}
	for _, step := range []struct {
		name   string
		texts  []string
		refuse int
		asks   bool
	}{
		{"new texts are asked for", []string{"a", "b", "c"}, 0, true},
		{"texts that are kept are not", []string{"c", "a", "b", "a"}, 0, false},
		{"a text more drops the one used longest ago", []string{"d"}, 0, true},
		{"the others stay", []string{"b", "a", "d"}, 0, false},
		{"the dropped one is asked for again", []string{"a", "c"}, 0, true},
		{"a refusal is no vector", []string{"a", "forbidden", "c"}, 1, true},
		{"and is asked for again", []string{"forbidden"}, 1, true},
	} {
		want, wantErr := all.Embed(t.Context(), items(step.texts...))
		before := fake.Requests.Load()
		got, err := recent.Embed(t.Context(), items(step.texts...))
		if asked := fake.Requests.Load() > before; asked != step.asks {
			t.Errorf("%s: asked %t, want %t", step.name, asked, step.asks)
		}
		if diff := cmp.Diff(want, got); diff != "" || len(endpoint.Refusals(err)) != step.refuse ||
			len(endpoint.Refusals(wantErr)) != step.refuse {
			t.Errorf("%s: %v (-want +got):\n%s", step.name, err, diff)
		}
	}
	fake.Down.Store(true)
	if got, err := recent.Embed(t.Context(), items("a", "new")); err == nil || got != nil {
		t.Errorf("while the model fails: got %v, %v", got, err)
	}
	if got, err := recent.Embed(t.Context(), items("a")); err != nil || len(got) != 1 {
		t.Errorf("of a text that is kept, while the model fails: got %v, %v", got, err)
	}
}
