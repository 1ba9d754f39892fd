package rest_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/server/servertest"
	"github.com/loci-memory/loci/tenant/apikey"
)

// If an organization's requests take all places that it may have, it is refused at once. Another one is served.
func TestAnOrganizationLeavesRequestsToOthers(t *testing.T) {
	t.Parallel()
	keys := &rest.Keys{Lookup: func(_ context.Context, secret string) (apikey.Key, error) {
		return apikey.Key{Org: db.Org(len(secret))}, nil
	}}
	a := rest.New(rest.Config{Title: "Toys", Log: slog.New(slog.DiscardHandler), Keys: keys})
	entered, leave := make(chan bool), make(chan bool)
	rest.Post(a.For(rest.AnyKey), "/v1/held", "hold_toy: A toy.", func(context.Context, *struct{}) (*int, error) {
		entered <- true
		<-leave
		return nil, nil
	})
	rest.Get(a.For(rest.AnyKey), "/v1/toys", "list_toys: Toys.",
		func(context.Context, *struct{}) (*int, error) { return nil, nil })
	h := a.Handler()
	const most = 768 // three quarters of all
	done := make(chan int)
	for range most {
		go func() { done <- servertest.Send(h, "POST", "/v1/held", "", "Authorization", "Bearer a").Code }()
		<-entered
	}
	got := servertest.Send(h, "GET", "/v1/toys", "", "Authorization", "Bearer a")
	if got.Code != 429 || got.Header().Get("Retry-After") == "" {
		t.Errorf("one more: got %d %s", got.Code, got.Text)
	}
	if got := servertest.Send(h, "GET", "/v1/toys", "", "Authorization", "Bearer bb"); got.Code != 200 {
		t.Errorf("another organization's: got %d %s", got.Code, got.Text)
	}
	for range most {
		leave <- true
		if code := <-done; code != 200 {
			t.Errorf("a held request: got %d", code)
		}
	}
	if got := servertest.Send(h, "GET", "/v1/toys", "", "Authorization", "Bearer a"); got.Code != 200 {
		t.Errorf("afterwards: got %d %s", got.Code, got.Text)
	}
}
