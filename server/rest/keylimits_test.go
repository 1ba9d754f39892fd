package rest_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/server/servertest"
	"github.com/loci-memory/loci/tenant/apikey"
)

// A key may send the requests of a minute at once, and then as many more as time allows.
func TestRatesOfKeys(t *testing.T) {
	t.Parallel()
	usage := rest.NewKeyUsage(apikey.Limits{PerMinute: 4})
	now := time.Now()
	begin := func(key string, after time.Duration) string {
		return usage.Begin(apikey.Key{ID: key}, now.Add(after))
	}
	for i := range 4 {
		if got := begin("a", 0); got != "" {
			t.Errorf("request %d: got Retry-After %s", i, got)
		}
	}
	for _, c := range []struct {
		key   string
		after time.Duration
		want  string
	}{
		{"a", 0, "15"}, {"b", 0, ""}, {"a", 14*time.Second + time.Millisecond, "1"}, {"a", 15 * time.Second, ""},
		{"a", 16 * time.Second, "14"}, {"a", time.Hour, ""}, {"a", time.Hour, ""}, {"a", time.Hour, ""}, {"a", time.Hour, ""},
		{"a", time.Hour, "15"},
	} {
		if got := begin(c.key, c.after); got != c.want {
			t.Errorf("%s after %v: got Retry-After %q, want %q", c.key, c.after, got, c.want)
		}
	}
}

// Keys without requests are forgotten. Keys with requests in progress are not.
func TestKeysThatRestAreForgotten(t *testing.T) {
	t.Parallel()
	usage := rest.NewKeyUsage(apikey.Limits{AtOnce: 1})
	now := time.Now()
	end, _, err := usage.Run(apikey.Key{ID: "runs"}, now)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100_000 {
		moment := now.Add(time.Duration(i) * time.Second)
		usage.Begin(apikey.Key{ID: fmt.Sprint(i)}, moment)
		if got := usage.Len(); got > 1100 {
			t.Fatalf("%d keys of a minute with 60 are remembered", got)
		}
	}
	if usage.Begin(apikey.Key{ID: "runs"}, now.Add(100_000*time.Second)) == "" {
		t.Error("a request under way was forgotten")
	}
	end()
	if got := usage.Begin(apikey.Key{ID: "runs"}, now.Add(100_000*time.Second)); got != "" {
		t.Errorf("after its end: got Retry-After %s", got)
	}
}

// A stream counts as one request in progress until it ends. A key's own limit takes precedence over the server's limit.
func TestRequestsOfAKeyAtOnce(t *testing.T) {
	t.Parallel()
	keys := &rest.Keys{Limits: apikey.Limits{AtOnce: 1},
		Lookup: func(_ context.Context, secret string) (apikey.Key, error) {
			if secret == "two" {
				return apikey.Key{ID: secret, Org: 1, RequestsAtOnce: new(2)}, nil
			}
			return apikey.Key{ID: secret, Org: 1}, nil
		}}
	a := rest.New(rest.Config{Title: "Toys", Log: slog.New(slog.DiscardHandler), Keys: keys})
	entered, leave := make(chan bool), make(chan bool)
	a.For(rest.AnyKey).Stream(huma.Operation{Method: "GET", Path: "/v1/stream"}, func(c echo.Context) error {
		entered <- true
		<-leave
		return c.NoContent(http.StatusNoContent)
	})
	rest.Get(a.For(rest.AnyKey), "/v1/toys", "list_toys: Toys.",
		func(context.Context, *struct{}) (*int, error) { return nil, nil })
	h, done := a.Handler(), make(chan int)
	call := func(key, path string) servertest.Reply {
		return servertest.Send(h, "GET", path, "", "Authorization", "Bearer "+key)
	}
	for _, key := range []string{"one", "two"} {
		go func() { done <- call(key, "/v1/stream").Code }()
		<-entered
	}
	refused := call("one", "/v1/toys")
	servertest.CheckProblem(t, refused, 429, map[string]any{"detail": "The API key has 1 request under way, which is " +
		"the most it may have at once: wait until one is answered"})
	if got := refused.Header().Get("Retry-After"); got != "1" {
		t.Errorf("got Retry-After %q, want 1", got)
	}
	if got := call("two", "/v1/toys"); got.Code != 200 {
		t.Errorf("a key with a limit of its own: got %d %s", got.Code, got.Text)
	}
	if got := call("three", "/v1/toys"); got.Code != 200 {
		t.Errorf("another key: got %d %s", got.Code, got.Text)
	}
	for range 2 {
		leave <- true
		if got := <-done; got != 204 {
			t.Errorf("a stream: got %d", got)
		}
	}
	if got := call("one", "/v1/toys"); got.Code != 200 {
		t.Errorf("after the stream: got %d %s", got.Code, got.Text)
	}
}

// If a client would not wait as long as Retry-After says, it is told not to try again.
func TestLongWaitsAreNotRetried(t *testing.T) {
	t.Parallel()
	keys := &rest.Keys{Limits: apikey.Limits{PerMinute: 1},
		Lookup: func(context.Context, string) (apikey.Key, error) { return apikey.Key{ID: "k", Org: 1}, nil }}
	a := rest.New(rest.Config{Title: "Toys", Log: slog.New(slog.DiscardHandler), Keys: keys})
	toys(a)
	h := a.Handler()
	servertest.Send(h, "GET", "/v1/toys/count", "", "Authorization", "Bearer k")
	got := servertest.Send(h, "GET", "/v1/toys/count", "", "Authorization", "Bearer k")
	after, retry := got.Header().Get("Retry-After"), got.Header().Get("X-Should-Retry")
	if got.Code != 429 || (after == "60") != (retry == "false") {
		t.Errorf("got %d with Retry-After %s and X-Should-Retry %q", got.Code, after, retry)
	}
}

// If a route has no declared access, or is for keys of agents but names no agent in its path, the server does not
// start.
func TestRoutesDeclareTheirAccess(t *testing.T) {
	t.Parallel()
	for name, register := range map[string]func(a *rest.API){
		"no access": func(a *rest.API) {
			rest.Get(a.For(0), "/v1/x", "get_x: X.", func(context.Context, *struct{}) (int, error) { return 0, nil })
		},
		"an agent that the path does not name": func(a *rest.API) {
			rest.Get(a.For(rest.Tools), "/v1/x", "get_x: X.", func(context.Context, *struct{}) (int, error) { return 0, nil })
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: got a server", name)
				}
			}()
			a := rest.New(rest.Config{Title: "Toys", Log: slog.New(slog.DiscardHandler)})
			register(a)
			a.Handler()
		}()
	}
}
