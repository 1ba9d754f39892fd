package rest_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/server/servertest"
	"github.com/loci-memory/loci/tenant/apikey"
)

// megabytes is a database that returns as many one-megabyte rows as a query's argument says.
type megabytes struct{ db.DB }

func (megabytes) Query(_ context.Context, _ string, args ...any) (pgx.Rows, error) {
	return &megabyteRows{left: args[0].(int)}, nil
}

type megabyteRows struct {
	pgx.Rows
	left int
}

func (r *megabyteRows) Next() bool        { r.left--; return r.left >= 0 }
func (*megabyteRows) RawValues() [][]byte { return [][]byte{make([]byte, 1<<20)} }
func (*megabyteRows) Scan(...any) error   { return nil }
func (*megabyteRows) Close()              {}
func (*megabyteRows) Err() error          { return nil }

// listed serves lists of one-megabyte rows at /v1/toys/{n}, and without a bound at /v1/all. The former call meet before
// they end. The organization of a key is the key's length.
func listed(meet func()) *rest.API {
	keys := &rest.Keys{Lookup: func(_ context.Context, secret string) (apikey.Key, error) {
		return apikey.Key{Org: db.Org(len(secret))}, nil
	}}
	a := rest.New(rest.Config{Title: "Toys", Log: slog.New(slog.DiscardHandler), Keys: keys})
	list := func(ctx context.Context, in *struct {
		N int `path:"n"`
	}) (int, error) {
		rows, err := db.All[string](ctx, megabytes{}, "", in.N)
		meet()
		return len(rows), err
	}
	rest.Get(a.For(rest.AnyKey), "/v1/toys/{n}", "list_toys: Toys.", list)
	rest.Get(a.For(rest.AnyKey), "/v1/all/{n}", "list_all: Toys.", list, rest.ReadsMore)
	return a
}

func TestAnAnswerThatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	h := listed(func() {}).Handler()
	for path, want := range map[string]int{"/v1/toys/32": 200, "/v1/toys/33": 422, "/v1/all/33": 200} {
		got := servertest.Send(h, "GET", path, "", "Authorization", "Bearer a")
		if got.Code != want || want != 200 && !strings.Contains(got.Text, "limit") {
			t.Errorf("%s: got %d %.200s, want %d", path, got.Code, got.Text, want)
		}
	}
}

// The large answers of one organization leave room for large answers of another, and for all small ones.
func TestLargeAnswersLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan bool), make(chan bool)
	h := listed(func() { entered <- true; <-leave }).Handler()
	codes := make(chan string, 10)
	get := func(key string, n int) {
		got := servertest.Send(h, "GET", fmt.Sprintf("/v1/toys/%d", n), "", "Authorization", "Bearer "+key)
		codes <- fmt.Sprintf("%s %d: %d", key, n, got.Code)
	}
	begin := func(key string, n int) {
		go get(key, n)
		<-entered
	}
	begin("a", 32)
	begin("a", 16) // 15 of the second count, and 31 of the first
	begin("a", 30)
	begin("a", 1)
	begin("bb", 32)
	for range 5 {
		leave <- true
	}
	got := map[string]bool{}
	for range 5 {
		got[<-codes] = true
	}
	for _, want := range []string{"a 32: 200", "a 16: 200", "a 30: 429", "a 1: 200", "bb 32: 200"} {
		if !got[want] {
			t.Errorf("got %v, want %s", got, want)
		}
	}
}

// If parts of an answer are read at the same time, they count together.
func TestPartsOfAnAnswerThatAreReadAtOnceCountTogether(t *testing.T) {
	t.Parallel()
	a := rest.New(rest.Config{Title: "Toys", Log: slog.New(slog.DiscardHandler)})
	rest.Get(a.For(rest.AnyKey), "/v1/toys/{n}", "list_toys: Toys.", func(ctx context.Context, in *struct {
		N int `path:"n"`
	}) (int, error) {
		var parts errgroup.Group
		for range 4 {
			parts.Go(func() error {
				_, err := db.All[string](ctx, megabytes{}, "", in.N)
				return err
			})
		}
		return 0, parts.Wait()
	})
	h := a.Handler()
	for path, want := range map[string]int{"/v1/toys/8": 200, "/v1/toys/9": 422} {
		if got := servertest.Send(h, "GET", path, ""); got.Code != want {
			t.Errorf("%s: got %d %.200s, want %d", path, got.Code, got.Text, want)
		}
	}
}
