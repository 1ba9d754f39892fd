package rest_test

import (
	"context"
	"io"
	"log/slog"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/server/servertest"
)

// While large bodies of an organization, or of all, are in memory, others are refused at once, before they are read;
// small ones are not. What was held is free again after the answer.
func TestLargeBodiesShareABudget(t *testing.T) {
	t.Parallel()
	keys := &rest.Keys{Org: func(_ context.Context, secret string) (db.Org, error) { return db.Org(len(secret)), nil }}
	a := rest.New(rest.Config{Title: "Toys", Log: slog.New(slog.DiscardHandler), Keys: keys,
		Budget: rest.BodyBudget{Server: 700 << 10, Org: 400 << 10}})
	entered, leave := make(chan bool), make(chan bool)
	rest.Post(a, "/v1/held", "A toy", func(context.Context, *struct{ Body strictBody }) (*int, error) {
		entered <- true
		<-leave
		return nil, nil
	})
	rest.Post(a, "/v1/toys", "A toy", func(context.Context, *struct{ Body strictBody }) (*int, error) { return nil, nil })
	h := a.Handler()
	large := `{"name":"` + strings.Repeat("x", 400<<10) + `"}`
	done := make(chan int)
	for _, key := range []string{"a", "bb"} { // of two organizations
		go func() { done <- servertest.Send(h, "POST", "/v1/held", large, "Authorization", "Bearer "+key).Code }()
		<-entered
		if key == "a" {
			got := servertest.Send(h, "POST", "/v1/toys", large, "Authorization", "Bearer a")
			if got.Code != 429 || got.Header().Get("Retry-After") == "" || !strings.Contains(got.Text, "Other large requests") {
				t.Errorf("beside another of its organization: got %d %s %v", got.Code, got.Text, got.Header())
			}
		}
	}
	for _, c := range []struct {
		name, key, body string
		chunked         bool
		want            int
	}{
		{"a third organization's", "ccc", large, false, 429},
		{"in chunks", "ccc", large, true, 429},
		{"a small one", "a", `{"name":"x"}`, false, 200},
	} {
		body := io.NopCloser(strings.NewReader(c.body))
		r := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/v1/toys", body)
		r.Header.Set("Authorization", "Bearer "+c.key)
		if !c.chunked {
			r.ContentLength = int64(len(c.body))
			r.Header.Set("Content-Length", strconv.Itoa(len(c.body)))
		}
		if got := servertest.Do(h, r); got.Code != c.want {
			t.Errorf("%s: got %d %s, want %d", c.name, got.Code, got.Text, c.want)
		}
	}
	leave <- true
	leave <- true
	for range 2 {
		if code := <-done; code != 200 {
			t.Errorf("the held requests: got %d", code)
		}
	}
	for _, key := range []string{"a", "bb", "ccc"} {
		if got := servertest.Send(h, "POST", "/v1/toys", large, "Authorization", "Bearer "+key); got.Code != 200 {
			t.Errorf("afterwards: got %d %s", got.Code, got.Text)
		}
	}
}
