package endpoint_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loci-memory/loci/embed"
)

// hanging answers when the caller no longer waits.
func hanging(ctx context.Context, _ []embed.Item) ([]embed.Vector, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// After a failure of the endpoint, searches leave it alone for 15 seconds. A caller that leaves is no failure: it stops
// no search of others.
func TestSearchesLeaveAnEndpointAloneThatFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		embedder scripted
		leaves   time.Duration // when the caller leaves; 0: never
		pause    time.Duration // until searches ask again
	}{
		{"the endpoint fails", failing, 0, 15 * time.Second},
		{"the endpoint hangs", hanging, 0, 15 * time.Second},
		{"the caller leaves", hanging, time.Second, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				d := impatient(func(ctx context.Context, items []embed.Item) ([]embed.Vector, error) {
					if asked++; asked == 1 {
						return c.embedder(ctx, items)
					}
					return answering(ctx, items)
				})
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				if c.leaves > 0 {
					time.AfterFunc(c.leaves, leave)
				}
				if vector, _, note := d.EmbedQuery(ctx, "text"); vector != nil || note == "" {
					t.Fatalf("the first search: got %v, %q, want a note", vector, note)
				}
				if c.pause > 0 {
					time.Sleep(c.pause - time.Nanosecond)
					if vector, _, note := d.EmbedQuery(t.Context(), "text"); vector != nil || note == "" || asked != 1 {
						t.Errorf("before the pause ends: got %v, %q, asked %d times, want a note without asking", vector, note, asked)
					}
					time.Sleep(time.Nanosecond)
				}
				if vector, _, note := d.EmbedQuery(t.Context(), "text"); vector == nil || note != "" || asked != 2 {
					t.Errorf("after the pause: got %v, %q, asked %d times, want a vector", vector, note, asked)
				}
			})
		})
	}
}

// A vector of another dimension than the space's is not searched for.
func TestASearchNeedsAVectorOfTheSpace(t *testing.T) {
	t.Parallel()
	for dimension, found := range map[int]bool{1: false, 2: true, 3: false} {
		d := impatient(func(context.Context, []embed.Item) ([]embed.Vector, error) {
			return []embed.Vector{{ID: 1, Values: make([]float32, dimension)}}, nil
		})
		vector, _, note := d.EmbedQuery(t.Context(), "text")
		if (vector != nil) != found || strings.Contains(note, "another model's vectors") == found {
			t.Errorf("%d dimensions in a space of 2: got %v, %q", dimension, vector, note)
		}
	}
}
