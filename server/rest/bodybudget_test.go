package rest_test

import (
	"context"
	"io"
	"log/slog"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/server/servertest"
	"github.com/loci-memory/loci/tenant/apikey"
)

// If large bodies fill the share of an organization, or of all, other large ones are refused at once, before they are
// read. Small ones are not. After the answer, the memory is free again.
func TestLargeBodiesShareABudget(t *testing.T) {
	t.Parallel()
	keys := &rest.Keys{Lookup: func(_ context.Context, secret string) (apikey.Key, error) {
		return apikey.Key{Org: db.Org(len(secret))}, nil
	}}
	a := rest.New(rest.Config{Title: "Toys", Log: slog.New(slog.DiscardHandler), Keys: keys,
		Budget: rest.BodyBudget{Server: 700 << 10, Org: 400 << 10}})
	entered, leave := make(chan bool), make(chan bool)
	rest.Post(a.For(rest.AnyKey), "/v1/held", "hold_toy: A toy.",
		func(context.Context, *struct{ Body strictBody }) (*int, error) {
			entered <- true
			<-leave
			return nil, nil
		})
	rest.Post(a.For(rest.AnyKey), "/v1/toys", "make_toy: A toy.",
		func(context.Context, *struct{ Body strictBody }) (*int, error) {
			return nil, nil
		})
	h := a.Handler()
	large := `{"name":"` + strings.Repeat("x", 400<<10) + `"}`
	done := make(chan int)
	for _, key := range []string{"a", "bb"} { // keys of two organizations
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

// Thousands of small bodies share memory of their own. An organization may use half of it.
func TestSmallBodiesShareABudget(t *testing.T) {
	t.Parallel()
	keys := &rest.Keys{Lookup: func(_ context.Context, secret string) (apikey.Key, error) {
		return apikey.Key{Org: db.Org(len(secret))}, nil
	}}
	a := rest.New(rest.Config{Title: "Toys", Log: slog.New(slog.DiscardHandler), Keys: keys,
		Budget: rest.BodyBudget{Small: 256 << 10}})
	entered, leave := make(chan bool), make(chan bool)
	for _, path := range []string{"/v1/toys", "/v1/held"} {
		a.For(rest.AnyKey).Stream(huma.Operation{Method: "POST", Path: path}, func(c echo.Context) error {
			_, release, err := a.Hold(c, 1<<20)
			defer release()
			if err == nil && path == "/v1/held" {
				entered <- true
				<-leave
			}
			return err
		})
	}
	h := a.Handler()
	body := `"` + strings.Repeat("x", 60<<10) + `"`
	send := func(path, key string) servertest.Reply {
		return servertest.Send(h, "POST", path, body, "Authorization", "Bearer "+key)
	}
	done := make(chan int)
	for range 2 {
		go func() { done <- send("/v1/held", "a").Code }()
		<-entered
	}
	if got := send("/v1/toys", "a"); got.Code != 429 || got.Header().Get("Retry-After") == "" {
		t.Errorf("beside two of its organization: got %d %s", got.Code, got.Text)
	}
	if got := send("/v1/toys", "bb"); got.Code != 200 {
		t.Errorf("another organization's: got %d %s", got.Code, got.Text)
	}
	for range 2 {
		leave <- true
		if code := <-done; code != 200 {
			t.Errorf("a held request: got %d", code)
		}
	}
	if got := send("/v1/toys", "a"); got.Code != 200 {
		t.Errorf("afterwards: got %d %s", got.Code, got.Text)
	}
}

// A spooled body takes the budget of its largest item, not of its own size.
func TestASpoolTakesTheBudgetOfItsLargestItem(t *testing.T) {
	t.Parallel()
	a := rest.New(rest.Config{Title: "Toys", Log: slog.New(slog.DiscardHandler),
		Budget: rest.BodyBudget{Server: 400 << 10, Org: 400 << 10}})
	a.For(rest.AnyKey).Stream(huma.Operation{Method: "POST", Path: "/v1/toys"}, func(c echo.Context) error {
		body, err := a.Spool(c, 8<<20)
		if err != nil {
			return err
		}
		defer body.Close()
		fields, lists, err := body.Fields(rest.Lists{Names: []string{"toys"}, MaxItems: 10_000,
			Remedy: "Send fewer toys.", Rule: "expected toys", Others: []string{"name"}})
		if err != nil {
			return err
		}
		n, size := 0, 0
		for range 2 { // it can be read again
			for raw, err := range lists["toys"].Items() {
				if err != nil {
					return err
				}
				n, size = n+1, size+len(raw)
			}
		}
		return c.JSON(200, []any{n, size, string(fields["name"])})
	})
	h := a.Handler()
	toy := func(bytes int) string { return `"` + strings.Repeat("x", bytes-2) + `"` }
	for _, tt := range []struct {
		name, body string
		code       int
		want       string
	}{
		{"many small items", `{"toys" : [` + strings.Repeat(toy(1000)+", ", 5999) + toy(1000) + `],"name":"after"}`, 200,
			`[12000,12000000,"\"after\""]`},
		{"lists as items", `{"toys" : [ [1] ,[[2]],[], "a" ],"name":"x"}`, 200, `[8,26,"\"x\""]`},
		{"one large item", `{"toys":["a",` + toy(600<<10) + `]}`, 429, "Other large requests"},
		{"too many items", `{"toys":[` + strings.Repeat("1,", 10_000) + `1]}`, 422,
			"toys: the list has more than 10000 items. Send fewer toys."},
		{"a list twice", `{"toys":["a","b"],"toys":["c"]}`, 422, "body.toys: the field is there twice"},
		{"a field of an item twice", `{"toys":[1,{"a":[{"b":1,"b":2}]}]}`, 422, "body.toys[1].a[0].b: the field is there"},
		{"too large", `{"toys":[` + strings.Repeat(" ", 8<<20) + `]}`, 413, "larger than 8388608 bytes"},
		{"a long field that is unknown", `{"zzz":[` + strings.Repeat(toy(100<<10)+",", 30) + `{"a":[]}],"toys":["a"]}`, 200,
			`[2,6,""]`},
		{"an unknown field of many values", `{"zzz":[` + strings.Repeat("0,", 60_000) + `0]}`, 422,
			"body: expected at most 50000 values"},
		{"an item of many values", `{"toys":[[` + strings.Repeat("0,", 60_000) + `0]]}`, 422,
			"body: expected at most 50000 values"},
		{"a deep field that is unknown", `{"zzz":` + strings.Repeat("[", 101) + strings.Repeat("]", 101) + `}`, 422,
			"expected at most 100 levels of nesting"},
		{"no end", `{"toys":["a"`, 400, "unexpected end"},
		{"no object", `["a"]`, 422, "body: expected toys"},
	} {
		got := servertest.Send(h, "POST", "/v1/toys", tt.body)
		if got.Code != tt.code || !strings.Contains(got.Text, tt.want) {
			t.Errorf("%s: got %d %.300s, want %d %s", tt.name, got.Code, got.Text, tt.code, tt.want)
		}
	}
}

// Bodies in files take up a share of their organization until they are done.
func TestSpooledBodiesHaveShares(t *testing.T) {
	t.Parallel()
	keys := &rest.Keys{Lookup: func(_ context.Context, secret string) (apikey.Key, error) {
		return apikey.Key{Org: db.Org(len(secret))}, nil
	}}
	a := rest.New(rest.Config{Title: "Toys", Log: slog.New(slog.DiscardHandler), Keys: keys, SpoolBytes: 1 << 20})
	entered, leave := make(chan bool), make(chan bool)
	a.For(rest.AnyKey).Stream(huma.Operation{Method: "POST", Path: "/v1/held"}, func(c echo.Context) error {
		body, err := a.Spool(c, 8<<20)
		if err != nil {
			return err
		}
		defer body.Close()
		entered <- true
		<-leave
		return c.NoContent(204)
	})
	a.For(rest.AnyKey).Stream(huma.Operation{Method: "POST", Path: "/v1/read"}, func(c echo.Context) error {
		defer a.CountSpooled(c)()
		_, err := io.Copy(io.Discard, c.Request().Body)
		if err != nil {
			return err
		}
		return c.NoContent(204)
	})
	h := a.Handler()
	send := func(path, key string, kilobytes int) servertest.Reply {
		return servertest.Send(h, "POST", path, `"`+strings.Repeat("x", kilobytes<<10)+`"`, "Authorization", "Bearer "+key)
	}
	done := make(chan int)
	go func() { done <- send("/v1/held", "a", 464).Code }()
	<-entered
	for _, c := range []struct {
		key       string
		kilobytes int
		want      int
	}{
		{"a", 400, 429}, {"a", 60, 204}, {"bb", 400, 204}, {"bb", 800, 429},
	} {
		got := send("/v1/read", c.key, c.kilobytes)
		if got.Code != c.want || got.Code == 429 && got.Header().Get("Retry-After") != "1" {
			t.Errorf("%d KiB of %s: got %d %s, want %d", c.kilobytes, c.key, got.Code, got.Text, c.want)
		}
	}
	leave <- true
	if got := <-done; got != 204 {
		t.Errorf("the body that was held: got %d", got)
	}
	if got := send("/v1/read", "a", 900); got.Code != 204 {
		t.Errorf("alone: got %d %s", got.Code, got.Text)
	}
}
