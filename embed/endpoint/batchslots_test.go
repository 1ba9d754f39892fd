package endpoint_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
)

// Jobs that wait while another one embeds work in the order of turns.
func TestJobsTakeTurns(t *testing.T) {
	t.Parallel()
	type job struct {
		org  db.Org
		bulk bool
		text string
	}
	for _, test := range []struct {
		name string
		jobs []job // in the order of arrival
		want []string
	}{
		{"messages go before files",
			[]job{{1, true, "file 1"}, {1, true, "file 2"}, {1, false, "message"}},
			[]string{"message", "file 1", "file 2"}},
		{"a bulk upload does not hold up another organization's passage",
			[]job{{1, true, "file 1"}, {1, true, "file 2"}, {1, true, "file 3"}, {2, false, "passage"}},
			[]string{"passage", "file 1", "file 2", "file 3"}},
		{"an import of passages does not hold up another organization's passage",
			[]job{{1, false, "one 1"}, {1, false, "one 2"}, {1, false, "one 3"}, {2, false, "two 1"}, {2, false, "two 2"}},
			[]string{"two 1", "one 1", "two 2", "one 2", "one 3"}},
		{"three organizations take turns",
			[]job{{3, true, "c1"}, {2, true, "b1"}, {2, true, "b2"}, {1, true, "a1"}, {1, true, "a2"}, {3, true, "c2"}},
			[]string{"c1", "b1", "a1", "c2", "b2", "a2"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var order []string
				d := impatient(func(ctx context.Context, items []embed.Item) ([]embed.Vector, error) {
					order = append(order, items[0].Text)
					return answering(ctx, items)
				})
				d.Jobs = 1
				first, _ := d.Await(db.WithOrg(t.Context(), 1))
				for _, j := range test.jobs {
					ctx := db.WithOrg(t.Context(), j.org)
					if j.bulk {
						ctx = embed.WithBulk(ctx)
					}
					go func() {
						permit, away := d.Await(ctx)
						if away > 0 {
							t.Errorf("%s: no turn for %v", j.text, away)
							return
						}
						defer permit.End()
						if _, _, err := permit.Embed(ctx, []embed.Item{{Text: j.text}}); err != nil {
							t.Error(err)
						}
					}()
					synctest.Wait() // it waits now
				}
				first.End()
				synctest.Wait()
				if !slices.Equal(order, test.want) {
					t.Errorf("got %q, want %q", order, test.want)
				}
			})
		})
	}
}

// A job that gets no turn goes back to the queue: after a long wait, when its context ends, and when the server stops.
// It gives up its place.
func TestAJobWithoutATurnGoesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := impatient(answering)
		d.Jobs = 1
		working := turn(t, d)
		if _, away := d.Await(t.Context()); away == 0 {
			t.Error("a second job got a turn at once")
		}
		ctx, end := context.WithCancel(t.Context())
		end()
		if _, away := d.Await(ctx); away == 0 {
			t.Error("a job that ended got a turn")
		}
		gone := make(chan bool)
		go func() {
			_, away := d.Await(t.Context())
			gone <- away > 0
		}()
		synctest.Wait()
		d.Stop()
		if !<-gone {
			t.Error("a job got a turn from a server that stops")
		}
		working.End()
		turn(t, d).End()
	})
}
