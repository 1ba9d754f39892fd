package rest_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/server/servertest"
	"github.com/loci-memory/loci/tenant/apikey"
)

// The time for looking up a key is part of the time that a request may take.
func TestTheLookUpOfAKeyIsPartOfARequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const lookUp = 20 * time.Second
		keys := &rest.Keys{Lookup: func(context.Context, string) (apikey.Key, error) {
			time.Sleep(lookUp)
			return apikey.Key{ID: "k", Org: 1}, nil
		}}
		a := rest.New(rest.Config{Title: "Toys", Log: slog.New(slog.DiscardHandler), Keys: keys})
		var remaining time.Duration
		rest.Get(a.For(rest.AnyKey), "/v1/toys", "list_toys: Toys.", func(ctx context.Context, _ *struct{}) (*int, error) {
			deadline, _ := ctx.Deadline()
			remaining = time.Until(deadline)
			return nil, nil
		})
		got := servertest.Send(a.Handler(), "GET", "/v1/toys", "", "Authorization", "Bearer k")
		if want := rest.DefaultTimeout - lookUp; got.Code != 200 || remaining != want {
			t.Errorf("got %d %s, and %s for the rest of the request, want %s", got.Code, got.Text, remaining, want)
		}
	})
}

// If the database does not say whether the key of an open answer is still valid, the answer does not wait long.
func TestAnOpenAnswerWaitsLittleForItsKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		keys := &rest.Keys{Lookup: func(ctx context.Context, _ string) (apikey.Key, error) {
			if looks++; looks == 1 {
				return apikey.Key{ID: "k", Org: 1}, nil
			}
			<-ctx.Done()
			return apikey.Key{}, ctx.Err()
		}}
		a := rest.New(rest.Config{Title: "Toys", Log: slog.New(slog.DiscardHandler), Keys: keys})
		var duration time.Duration
		a.For(rest.AnyKey).Stream(huma.Operation{Method: "GET", Path: "/v1/stream"}, func(c echo.Context) error {
			began := time.Now()
			_, err := rest.NewEvents(c).Send(rest.Event{Data: "news"})
			duration = time.Since(began)
			return err
		})
		got := servertest.Send(a.Handler(), "GET", "/v1/stream", "", "Authorization", "Bearer k")
		if !strings.Contains(got.Text, "news") || looks != 2 || duration > 5*time.Second {
			t.Errorf("got %q after %s and %d looks for the key", got.Text, duration, looks)
		}
	})
}
