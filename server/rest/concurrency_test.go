package rest_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/server/servertest"
	"github.com/loci-memory/loci/tenant/apikey"
)

// slowToys is an API with keys such as "a:1", the key 1 of the organization "a". Requests with works in their query
// work until leave has a value.
type slowToys struct {
	http.Handler
	reads   chan bool // has a value for each body that the API waits for
	entered chan bool // has a value for each request that works
	leave   chan bool // ends one request that works
}

func newSlowToys() slowToys {
	keys := &rest.Keys{Lookup: func(_ context.Context, secret string) (apikey.Key, error) {
		return apikey.Key{ID: secret, Org: db.Org(secret[0])}, nil
	}}
	a := rest.New(rest.Config{Title: "Toys", Log: slog.New(slog.DiscardHandler), Keys: keys})
	s := slowToys{reads: make(chan bool), entered: make(chan bool), leave: make(chan bool)}
	body := &huma.RequestBody{Content: map[string]*huma.MediaType{rest.JSON: {}}}
	a.For(rest.AnyKey).Stream(huma.Operation{Method: "POST", Path: "/v1/stream", RequestBody: body},
		func(c echo.Context) error {
			_, release, err := a.Hold(c, 1<<20)
			defer release()
			if err != nil {
				return err
			}
			switch c.QueryParam("answers") {
			case "events":
				rest.NewEvents(c)
			case "list":
				c.Response().WriteHeader(http.StatusOK)
			}
			if c.QueryParam("works") != "" {
				s.entered <- true
				<-s.leave
			}
			return nil
		})
	rest.Post(a.For(rest.AnyKey), "/v1/toys", "make_toy: A toy.",
		func(context.Context, *struct{ Body strictBody }) (*int, error) { return nil, nil })
	rest.Get(a.For(rest.AnyKey), "/v1/toys", "list_toys: Toys.",
		func(context.Context, *struct{}) (*int, error) { return nil, nil })
	rest.Get(a.For(rest.Public), "/v1/health", "get_health: Health.",
		func(context.Context, *struct{}) (*int, error) { return nil, nil })
	s.Handler = a.Handler()
	return s
}

// slowBody is an object that arrives once comes has a value, or is closed. It sends a value to reads when it is waited
// for.
type slowBody struct {
	reads, comes chan bool
	io.Reader    // the object
	began        bool
}

func (b *slowBody) Read(buffer []byte) (int, error) {
	if !b.began {
		b.began = true
		b.reads <- true
		<-b.comes
	}
	return b.Reader.Read(buffer)
}

// send sends a request, and returns the answer's status.
func (s slowToys) send(t *testing.T, key, method, path string, body io.Reader) int {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+path, body)
	r.Header.Set("Authorization", "Bearer "+key)
	return servertest.Do(s, r).Code
}

// begin sends requests with bodies that arrive once comes has a value for each. It returns when the API waits for all
// of them.
func (s slowToys) begin(t *testing.T, key, path string, n int, comes chan bool) (done chan int) {
	t.Helper()
	done = make(chan int, n)
	for range n {
		body := &slowBody{reads: s.reads, comes: comes, Reader: strings.NewReader(`{"name":"x"}`)}
		go func() { done <- s.send(t, key, "POST", path, body) }()
		<-s.reads
	}
	return done
}

// Two keys send enough slow bodies to take up all places. They leave others, and each other, all the places that these
// need.
func TestSlowBodiesHoldNoPlace(t *testing.T) {
	t.Parallel()
	s, comes := newSlowToys(), make(chan bool)
	streams := s.begin(t, "a:1", "/v1/stream", 900, comes)
	operations := s.begin(t, "b:1", "/v1/toys", 500, comes)
	for _, c := range []struct{ key, method, path string }{
		{"c:1", "GET", "/v1/toys"}, {"c:1", "POST", "/v1/toys"}, {"c:1", "POST", "/v1/stream"}, {"", "GET", "/v1/health"},
		{"a:1", "POST", "/v1/stream"}, {"b:1", "POST", "/v1/toys"},
	} {
		if got := s.send(t, c.key, c.method, c.path, strings.NewReader(`{"name":"x"}`)); got != 200 {
			t.Errorf("%s %s of %s: got %d", c.method, c.path, c.key, got)
		}
	}
	for range 1400 {
		comes <- true
		got := 0
		select {
		case got = <-streams:
		case got = <-operations:
		}
		if got != 200 {
			t.Fatalf("a body that came late: got %d", got)
		}
	}
}

// A request takes its place when its body has arrived. If its organization has no place left then, it is refused.
func TestAPlaceIsTakenWhenTheBodyHasArrived(t *testing.T) {
	t.Parallel()
	s, comes := newSlowToys(), make(chan bool)
	late := s.begin(t, "a:1", "/v1/stream", 2, comes)
	working := make(chan int)
	for range 768 { // three quarters of all
		go func() { working <- s.send(t, "a:1", "POST", "/v1/stream?works=1", strings.NewReader("{}")) }()
		<-s.entered
	}
	comes <- true
	if got := <-late; got != 429 {
		t.Errorf("a body that comes when all places are taken: got %d, want 429", got)
	}
	if got := s.send(t, "b:1", "POST", "/v1/stream", strings.NewReader("{}")); got != 200 {
		t.Errorf("another organization's: got %d, want 200", got)
	}
	if got := s.send(t, "", "GET", "/v1/health", nil); got != 200 {
		t.Errorf("health: got %d, want 200", got)
	}
	s.leave <- true
	<-working
	comes <- true
	if got := <-late; got != 200 {
		t.Errorf("a body that comes when a place is free: got %d, want 200", got)
	}
	for range 767 {
		s.leave <- true
		if got := <-working; got != 200 {
			t.Fatalf("a request at work: got %d", got)
		}
	}
}

// An answer that is being read takes up no place; a stream of events does.
func TestAnAnswerHoldsNoPlace(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]int{"list": 200, "events": 429} {
		s, answering := newSlowToys(), make(chan int)
		for range 768 {
			go func() {
				answering <- s.send(t, "a:1", "POST", "/v1/stream?works=1&answers="+answer, strings.NewReader("{}"))
			}()
			<-s.entered
		}
		if got := s.send(t, "a:1", "POST", "/v1/stream", strings.NewReader("{}")); got != want {
			t.Errorf("beside 768 answers of %s: got %d, want %d", answer, got, want)
		}
		for range 768 {
			s.leave <- true
			<-answering
		}
	}
}

// A key may have 1,024 bodies on their way. An organization may have half of the bodies that others leave.
func TestBodiesOnTheirWayAreBounded(t *testing.T) {
	t.Parallel()
	a := rest.NewArrivals()
	countUntilRefused := func(org db.Org, key string) (n int, code string) {
		for a.Begin(org, key) == nil {
			n++
		}
		return n, rest.ProblemOf(a.Begin(org, key)).Code
	}
	for _, c := range []struct {
		org  db.Org
		key  string
		want int
		code string
	}{
		{1, "a", 1024, "key_limit"}, {1, "b", 1024, "key_limit"}, {1, "c", 0, "too_many_requests"},
		{2, "d", 1024, "key_limit"}, {2, "e", 0, "too_many_requests"},
		{3, "", 512, "too_many_requests"}, {4, "", 256, "too_many_requests"},
	} {
		if got, code := countUntilRefused(c.org, c.key); got != c.want || code != c.code {
			t.Errorf("the key %q of organization %d: got %d, %s, want %d, %s", c.key, c.org, got, code, c.want, c.code)
		}
	}
	for range 1024 {
		a.End(2, "d")
	}
	if got, _ := countUntilRefused(4, "f"); got != 768-256 {
		t.Errorf("after others have ended: got %d more, want %d", got, 768-256)
	}
}
