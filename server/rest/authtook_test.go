package rest_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/server/servertest"
	"github.com/loci-memory/loci/tenant/apikey"
)

// The time for which a request waits while its key is looked up counts in the time that it may take.
func TestTheLookUpOfAKeyIsPartOfARequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const lookUp = 20 * time.Second
		keys := &rest.Keys{Lookup: func(context.Context, string) (apikey.Key, error) {
			time.Sleep(lookUp)
			return apikey.Key{ID: "k", Org: 1}, nil
		}}
		a := rest.New(rest.Config{Title: "Toys", Log: slog.New(slog.DiscardHandler), Keys: keys})
		var left time.Duration
		rest.Get(a.For(rest.AnyKey), "/v1/toys", "list_toys: Toys.", func(ctx context.Context, _ *struct{}) (*int, error) {
			deadline, _ := ctx.Deadline()
			left = time.Until(deadline)
			return nil, nil
		})
		got := servertest.Send(a.Handler(), "GET", "/v1/toys", "", "Authorization", "Bearer k")
		if want := rest.DefaultTimeout - lookUp; got.Code != 200 || left != want {
			t.Errorf("got %d %s, and %s for the rest of the request, want %s", got.Code, got.Text, left, want)
		}
	})
}
