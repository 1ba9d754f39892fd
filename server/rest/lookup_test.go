package rest_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/server/servertest"
	"github.com/loci-memory/loci/tenant/apikey"
)

// Whatever strangers send, a known key is looked up at once, as work of its organization. If too many strangers wait,
// more are refused.
func TestStrangersDoNotHoldBackKnownKeys(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan bool), make(chan bool)
	var org db.Org // organization in the context in which the known key is looked up
	strangers := func(ctx context.Context) error {
		select {
		case entered <- true:
			<-leave
		case <-ctx.Done():
		}
		return db.ErrNotFound
	}
	keys := &rest.Keys{
		Lookup: func(ctx context.Context, secret string) (apikey.Key, error) {
			if secret == "known" {
				org = db.OrgOf(ctx)
				return apikey.Key{Org: 7}, nil
			}
			return apikey.Key{}, strangers(ctx)
		},
		OpenOrg: func(ctx context.Context) (db.Org, error) { return 0, strangers(ctx) },
	}
	a := rest.New(rest.Config{Title: "Toys", Log: slog.New(slog.DiscardHandler), Keys: keys})
	rest.Get(a.For(rest.AnyKey), "/v1/toys", "list_toys: Toys.",
		func(context.Context, *struct{}) (*int, error) { return nil, nil })
	h := a.Handler()
	get := func(key string) int {
		if key == "" {
			return servertest.Send(h, "GET", "/v1/toys", "").Code
		}
		return servertest.Send(h, "GET", "/v1/toys", "", "Authorization", "Bearer "+key).Code
	}
	if code := get("known"); code != 200 || org != 0 {
		t.Fatalf("the first request of a key: got %d, for organization %d", code, org)
	}
	codes := make(chan int)
	const many = 1200 // more than may wait
	for i := range many {
		go func() { codes <- get([]string{"", "unknown"}[i%2]) }()
	}
	for range many - 1000 {
		if code := <-codes; code != 429 {
			t.Fatalf("a stranger beyond those that wait: got %d", code)
		}
	}
	if code := get("known"); code != 200 || org != 7 {
		t.Errorf("a known key beside them: got %d, for organization %d", code, org)
	}
	go func() {
		for range entered {
			leave <- true
		}
	}()
	for range 1000 {
		if code := <-codes; code != 401 {
			t.Fatalf("a stranger that waited: got %d", code)
		}
	}
	close(entered)
}

// The answers to a flood of requests without a key go out one by one, and each waits for at most two seconds.
func TestRefusalsOfAFloodWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := rest.New(rest.Config{Title: "Toys", Log: slog.New(slog.DiscardHandler), Keys: &rest.Keys{}})
		rest.Get(a.For(rest.AnyKey), "/v1/toys", "list_toys: Toys.",
			func(context.Context, *struct{}) (*int, error) { return nil, nil })
		h, began := a.Handler(), time.Now()
		durations := make(chan time.Duration)
		for _, flood := range []struct {
			requests int
			want     time.Duration // until the last answer
		}{{1, 0}, {101, 200 * time.Millisecond}, {1101, 2 * time.Second}} {
			for range flood.requests {
				go func() {
					if got := servertest.Send(h, "GET", "/v1/toys", ""); got.Code != 401 {
						t.Errorf("got %d", got.Code)
					}
					durations <- time.Since(began)
				}()
			}
			var last time.Duration
			for range flood.requests {
				last = max(last, <-durations)
			}
			if last != flood.want {
				t.Errorf("the last of %d answers came after %v, want %v", flood.requests, last, flood.want)
			}
			time.Sleep(time.Minute)
			began = time.Now()
		}
	})
}
