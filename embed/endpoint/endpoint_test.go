package endpoint_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/endpoint"
)

// scripted is an embedder. The test writes its answers.
type scripted func(ctx context.Context, items []embed.Item) ([]embed.Vector, error)

func (s scripted) Embed(ctx context.Context, items []embed.Item) ([]embed.Vector, error) {
	return s(ctx, items)
}

func answering(_ context.Context, items []embed.Item) ([]embed.Vector, error) {
	vectors := make([]embed.Vector, len(items))
	for i, item := range items {
		vectors[i] = embed.Vector{ID: item.ID, Values: []float32{1, 0}}
	}
	return vectors, nil
}

func failing(context.Context, []embed.Item) ([]embed.Vector, error) {
	return nil, errors.New("down for repairs")
}

// impatient returns an endpoint that almost does not pause.
func impatient(e scripted) *endpoint.Endpoint {
	d := &endpoint.Endpoint{Embedder: e, FirstPause: time.Nanosecond, MaxPause: time.Nanosecond}
	d.Use(endpoint.Space{ID: 1, Dimension: 2})
	return d
}

// turn returns a permit, and fails if no turn comes.
func turn(t *testing.T, d *endpoint.Endpoint) *endpoint.Permit {
	t.Helper()
	got, away := d.Await(t.Context())
	if away > 0 {
		t.Fatalf("no turn for %v", away)
	}
	return got
}

func someTexts(n int) []embed.Item {
	items := make([]embed.Item, n)
	for i := range items {
		items[i] = embed.Item{ID: int64(i), Text: "text"}
	}
	return items
}

// After a failure one job tries, and the others wait for its result.
func TestOneJobTriesAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		end  func(trial *endpoint.Permit, d *endpoint.Endpoint)
	}{
		{"it did not come to ask", func(trial *endpoint.Permit, _ *endpoint.Endpoint) { trial.End() }},
		{"it fails again", func(trial *endpoint.Permit, _ *endpoint.Endpoint) {
			_, _, _ = trial.Embed(t.Context(), someTexts(1))
			trial.End()
		}},
		{"it panics", func(trial *endpoint.Permit, d *endpoint.Endpoint) {
			d.Embedder = scripted(func(context.Context, []embed.Item) ([]embed.Vector, error) { panic("broken") })
			defer func() { _ = recover() }()
			defer trial.End()
			_, _, _ = trial.Embed(t.Context(), someTexts(1))
		}},
		{"it succeeds", func(trial *endpoint.Permit, d *endpoint.Endpoint) {
			d.Embedder = scripted(answering)
			_, _, _ = trial.Embed(t.Context(), someTexts(1))
			trial.End()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := impatient(failing)
			if _, _, err := turn(t, d).Embed(t.Context(), someTexts(1)); err == nil {
				t.Fatal("the endpoint answers")
			}
			trial := turn(t, d)
			ended, end := context.WithCancel(t.Context())
			end()
			if _, away := d.Await(ended); away == 0 {
				t.Error("two jobs try at once")
			}
			c.end(trial, d)
			turn(t, d).End()
		})
	}
}

func TestAnEndpointIsAskedForWhatItHasTimeFor(t *testing.T) {
	t.Parallel()
	d := impatient(func(context.Context, []embed.Item) ([]embed.Vector, error) { return nil, context.DeadlineExceeded })
	for _, want := range []int{64, 32, 16} {
		permit := turn(t, d)
		_, _, _ = permit.Embed(t.Context(), someTexts(d.Size()))
		permit.End()
		if got := d.Size(); got != want {
			t.Errorf("a job asks for %d texts, want %d", got, want)
		}
	}
	d.Embedder = scripted(answering)
	for range 3 * 16 {
		permit := turn(t, d)
		if _, _, err := permit.Embed(t.Context(), someTexts(d.Size())); err != nil {
			t.Fatal(err)
		}
		permit.End()
	}
	if got := d.Size(); got != endpoint.MostTexts {
		t.Errorf("after it kept up a job asks for %d texts, want %d", got, endpoint.MostTexts)
	}
}

func TestAPauseDoubles(t *testing.T) {
	t.Parallel()
	d := &endpoint.Endpoint{}
	for failures, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 6: 32 * time.Second,
		7: time.Minute, 1000: time.Minute} {
		if got := d.Pause(failures); got != want {
			t.Errorf("after %d failures: got %v, want %v", failures, got, want)
		}
	}
}

func TestVectorsOfAnotherDimensionAreRefused(t *testing.T) {
	t.Parallel()
	d := impatient(answering)
	d.Use(endpoint.Space{ID: 2, Dimension: 3})
	if got, _, err := turn(t, d).Embed(t.Context(), someTexts(1)); err == nil || got != nil {
		t.Errorf("got %v, %v", got, err)
	}
}
