package rest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/server/servertest"
)

type toyBody struct {
	Name  string                `json:"name,omitempty"`
	Count rest.Opt[int]         `json:"count,omitzero" minimum:"1"`
	Tags  rest.Opt[[]string]    `json:"tags,omitzero"`
	Any   rest.Opt[rest.Object] `json:"any,omitzero"`
}

type strictBody struct {
	Name string `json:"name"`
}

// toys registers operations that answer with their input.
func toys(a *rest.API) {
	rest.Get(a.For(rest.AnyKey), "/v1/toys", "get_toy1: A toy.", func(_ context.Context, in *struct {
		Tags  []string       `query:"tags,explode"`
		Name  string         `query:"name"`
		Limit int            `query:"limit" minimum:"1" maximum:"1000"`
		Order string         `query:"order" enum:"asc,desc"`
		Open  rest.Opt[bool] `query:"open"`
	}) (map[string]any, error) {
		return map[string]any{"tags": in.Tags, "name": in.Name, "limit": in.Limit, "open": in.Open.Pointer()}, nil
	})
	rest.Get(a.For(rest.AnyKey), "/v1/toys/count", "get_toy2: A toy.",
		func(context.Context, *struct{}) (int, error) { return 7, nil })
	rest.Get(a.For(rest.AnyKey), "/v1/toys/{label}", "get_toy3: A toy.", func(_ context.Context, in *struct {
		Label string `path:"label"`
	}) (string, error) {
		return in.Label, nil
	})
	rest.Patch(a.For(rest.AnyKey), "/v1/toys", "get_toy4: A toy.",
		func(_ context.Context, in *struct{ Body toyBody }) (toyBody,
			error) {
			return in.Body, nil
		})
	rest.Post(a.For(rest.AnyKey), "/v1/toys", "get_toy5: A toy.",
		func(_ context.Context, in *struct{ Body strictBody }) (strictBody,
			error) {
			return in.Body, nil
		})
	rest.Get(a.For(rest.AnyKey), "/v1/agents/{agent_id}", "get_toy6: A toy.", func(_ context.Context, in *struct {
		ID rest.AgentID `path:"agent_id"`
	}) (*int, error) {
		return nil, db.NotFound("no agent %s", in.ID)
	})
	rest.Delete(a.For(rest.AnyKey), "/v1/toys/{label}", "get_toy7: A toy.", func(context.Context, *struct {
		Label string `path:"label"`
	}) (*int, error) {
		return nil, nil
	}, rest.NoContent)
	rest.Post(a.For(rest.AnyKey), "/v1/null", "get_toy8: A toy.",
		func(context.Context, *struct{}) (*int, error) { return nil, nil })
	rest.Post(a.For(rest.AnyKey), "/v1/panic", "get_toy9: A toy.", func(context.Context, *struct{}) (*int, error) {
		panic("a secret of ours")
	})
	rest.Post(a.For(rest.AnyKey), "/v1/broken", "get_toy10: A toy.", func(context.Context, *struct{}) (*int, error) {
		return nil,
			errors.New("a secret of ours")
	})
}

func newToys(t *testing.T, log *bytes.Buffer) http.Handler {
	t.Helper()
	handler := slog.DiscardHandler
	if log != nil {
		handler = slog.NewTextHandler(log, nil)
	}
	a := rest.New(rest.Config{Title: "Toys", Version: "1", Log: slog.New(handler)})
	toys(a)
	return a.Handler()
}

func TestAdapterReadsLeniently(t *testing.T) {
	t.Parallel()
	h := newToys(t, nil)
	for _, c := range []struct {
		name, method, target, contentType, body, want string
	}{
		{"unknown properties are named", "PATCH", "/v1/toys", servertest.JSON, `{"name":"a","color":"red"}`,
			`{"name":"a","warnings":["Loci does not know the field \"color\""]}`},
		{"unknown query parameters are named", "PATCH", "/v1/toys?nam=a&nom=p", servertest.JSON, `{"color":1}`,
			`{"warnings":["Loci does not know the parameter \"nam\"","Loci does not know the parameter \"nom\"",` +
				`"Loci does not know the field \"color\""]}`},
		{"a byte order mark is no part of a body", "PATCH", "/v1/toys", servertest.JSON, "\uFEFF" + `{"name":"a"}`,
			`{"name":"a"}`},
		{"a byte order mark alone is an empty body", "PATCH", "/v1/toys", servertest.JSON, "\uFEFF", `{}`},
		{"an empty body of type JSON is an object", "PATCH", "/v1/toys", servertest.JSON, "", `{}`},
		{"an empty body without a type is an object", "PATCH", "/v1/toys", "", "", `{}`},
		{"an empty body of another type is an object", "PATCH", "/v1/toys", "text/plain", " \n", `{}`},
		{"a body without a type is JSON", "PATCH", "/v1/toys", "", `{"name":"a"}`, `{"name":"a"}`},
		{"a body that curl calls a form is JSON", "PATCH", "/v1/toys", "application/x-www-form-urlencoded", `{"name":"a"}`,
			`{"name":"a"}`},
		{"a charset does not matter", "PATCH", "/v1/toys", "application/json; charset=utf-8", `{"name":"a"}`, `{"name":"a"}`},
		{"a body where none is expected is ignored", "GET", "/v1/toys/count", servertest.JSON, `{"x":`, `7`},
		{"absent is not null", "PATCH", "/v1/toys", servertest.JSON, `{}`, `{}`},
		{"null is not a value", "PATCH", "/v1/toys", servertest.JSON, `{"count":null}`,
			`{"count":{"Set":true,"Null":true,"Value":0}}`},
		{"a value is set", "PATCH", "/v1/toys", servertest.JSON, `{"count":3}`, `{"count":{"Set":true,"Null":false,` +
			`"Value":3}}`},
		{"an empty list is a value", "PATCH", "/v1/toys", servertest.JSON, `{"tags":[]}`,
			`{"tags":{"Set":true,"Null":false,"Value":[]}}`},
		{"null of a plain field is absent", "PATCH", "/v1/toys", servertest.JSON, `{"name":null}`, `{}`},
		{"an object stays as it was written", "PATCH", "/v1/toys", servertest.JSON, `{"any":{"n":12345678901234567890}}`,
			`{"any":{"Set":true,"Null":false,"Value":{"n":12345678901234567890}}}`},
		{"brackets in a text are not nesting", "PATCH", "/v1/toys", servertest.JSON, `{"name":"\\\"` +
			strings.Repeat("[", 200) + `"}`,
			`{"name":"\\\"` + strings.Repeat("[", 200) + `"}`},
		{"repeated keys are a list", "GET", "/v1/toys?tags=a&tags=b%2Cc", "", "",
			`{"limit":0,"name":"","open":null,"tags":["a","b,c"]}`},
		{"an empty value is absent", "GET", "/v1/toys?limit=&order=&open=&tags=&tags=b&name", "", "",
			`{"limit":0,"name":"","open":null,"tags":["b"]}`},
		{"plus and percent are spaces", "GET", "/v1/toys?tags=a+b&tags=c%20d", "", "",
			`{"limit":0,"name":"","open":null,"tags":["a b","c d"]}`},
		{"a false flag is not an absent one", "GET", "/v1/toys?open=false", "", "",
			`{"limit":0,"name":"","open":false,"tags":null}`},
		{"a trailing slash is the same path", "GET", "/v1/toys/count/", "", "", `7`},
		{"a trailing slash with a query is the same path", "GET", "/v1/toys/?name=x", "", "",
			`{"limit":0,"name":"x","open":null,"tags":null}`},
		{"a trailing slash takes a body", "PATCH", "/v1/toys/", servertest.JSON, `{"name":"a"}`, `{"name":"a"}`},
		{"an escaped slash stays in its segment", "GET", "/v1/toys/a%2Fb", "", "", `"a/b"`},
		{"an escaped slash at the end is no trailing slash", "GET", "/v1/toys/a%2F", "", "", `"a/"`},
		{"escapes are decoded once", "GET", "/v1/toys/a%20b%20%C3%A9%25%2541", "", "", `"a b é%%41"`},
		{"a fixed segment wins over a parameter", "GET", "/v1/toys/count", "", "", `7`},
		{"nothing is null", "POST", "/v1/null", "", "", `null`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := servertest.Send(h, c.method, c.target, c.body, "Content-Type", c.contentType)
			if got.Code != 200 || got.Text != c.want {
				t.Errorf("%s %s %q: got %d %s, want 200 %s", c.method, c.target, c.body, got.Code, got.Text, c.want)
			}
			if ct := got.Header().Get("Content-Type"); ct != servertest.JSON {
				t.Errorf("got content type %q, want %q", ct, servertest.JSON)
			}
			if link := got.Header().Get("Link"); link != "" || strings.Contains(got.Text, "$schema") {
				t.Errorf("got a schema link %q in %s, want none", link, got.Text)
			}
		})
	}
}

// A HEAD has the headers of its GET, including the length, although no body is sent.
func TestAHeadIsAGetWithoutItsBody(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(newToys(t, nil))
	t.Cleanup(server.Close)
	for target, want := range map[string]int{"/v1/toys/count": 200, "/v1/toys/count/": 200, "/v1/toys?limit=0": 422,
		"/v1/null": 405, "/v1/nothing": 404} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodHead, server.URL+target, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(got.Body)
		if closed := got.Body.Close(); err != nil || closed != nil {
			t.Fatal(err, closed)
		}
		if got.StatusCode != want || len(body) > 0 || got.ContentLength < 1 {
			t.Errorf("HEAD %s: got %d, %q of %d bytes, want %d", target, got.StatusCode, body, got.ContentLength, want)
		}
	}
}

func TestAdapterRefuses(t *testing.T) {
	t.Parallel()
	h := newToys(t, nil)
	for _, c := range []struct {
		name, method, target, contentType, body string
		status                                  int
		detail                                  string
	}{
		{"a number out of range", "GET", "/v1/toys?limit=5000", "", "", 422,
			"query.limit: expected number <= 1000. Got: 5000"},
		{"a limit of nothing", "GET", "/v1/toys?limit=0", "", "", 422, "query.limit: expected number >= 1. Got: 0"},
		{"a number that is none", "GET", "/v1/toys?limit=ten", "", "", 422, `query.limit: invalid integer. Got: "ten"`},
		{"a number beyond all integers", "GET", "/v1/toys?limit=99999999999999999999", "", "", 422,
			`query.limit: invalid integer. Got: "99999999999999999999"`},
		{"a word that is not in the list", "GET", "/v1/toys?order=up", "", "", 422,
			`query.order: expected value to be one of "asc, desc". Got: "up"`},
		{"a parameter twice", "GET", "/v1/toys?limit=1&limit=2", "", "", 422,
			`query.limit: it is there with "1" and with "2"; send one`},
		{"several at once", "GET", "/v1/toys?limit=0&order=up", "", "", 422,
			`query.limit: expected number >= 1. Got: 0; query.order: expected value to be one of "asc, desc". Got: "up"`},
		{"a missing field", "POST", "/v1/toys", servertest.JSON, "", 422, "body: expected required property name to be " +
			"present"},
		{"null for a field that must be", "POST", "/v1/toys", servertest.JSON, `{"name":null}`, 422,
			"body.name: expected string"},
		{"a field of another type", "PATCH", "/v1/toys", servertest.JSON, `{"name":7}`, 422,
			"body.name: expected string. Got: 7"},
		{"an element of another type", "PATCH", "/v1/toys", servertest.JSON, `{"tags":["a",7]}`, 422,
			"body.tags[1]: expected string. Got: 7"},
		{"a field out of range", "PATCH", "/v1/toys", servertest.JSON, `{"count":0}`, 422,
			"body.count: expected number >= 1. Got: 0"},
		{"a number that Go reads as no integer", "PATCH", "/v1/toys", servertest.JSON, `{"count":1e0}`, 422,
			`body.count: expected integer, got number 1e0`},
		{"a list where an object must be", "PATCH", "/v1/toys", servertest.JSON, `{"any":[]}`, 422,
			"body.any: expected object"},
		{"a body that is no object", "PATCH", "/v1/toys", servertest.JSON, `[]`, 422, "body: expected object"},
		{"a long value is cut", "PATCH", "/v1/toys", servertest.JSON, `{"count":"` + strings.Repeat("é", 200) + `"}`, 422,
			`body.count: expected integer. Got: "` + strings.Repeat("é", 49) + "…"},
		{"broken JSON", "PATCH", "/v1/toys", servertest.JSON, `{"name"`, 400, `body: unexpected end of JSON input. Got: ` +
			`"{\"name\""`},
		{"a body that nests too deep", "PATCH", "/v1/toys", servertest.JSON, strings.Repeat(`{"a":`, 101) + "1" +
			strings.Repeat("}", 101), 422,
			"body: expected at most 100 levels of nesting"},
		{"a body of too many values", "PATCH", "/v1/toys", servertest.JSON, `{"any":[` + strings.Repeat("0,", 60_000) + `0]}`,
			422, "body: expected at most 50000 values"},
		{"a body that is too large", "PATCH", "/v1/toys", servertest.JSON, strings.Repeat(" ", 1<<20+1), 413,
			"The request's body is larger than 1048576 bytes"},
		{"an id of another form before it is looked up", "GET", "/v1/agents/agent-1", "", "", 422,
			`path.agent_id: expected string to be agent- and a lower-case UUID, such as ` +
				`agent-123e4567-e89b-42d3-8456-426614174000. Got: "agent-1"`},
		{"an id in capitals", "GET", "/v1/agents/agent-123E4567-E89B-42D3-8456-426614174000", "", "", 422,
			`path.agent_id: expected string to be agent- and a lower-case UUID, such as ` +
				`agent-123e4567-e89b-42d3-8456-426614174000. ` +
				`Got: "agent-123E4567-E89B-42D3-8456-426614174000"`},
		{"an id of another version", "GET", "/v1/agents/agent-123e4567-e89b-12d3-8456-426614174000", "", "", 422,
			`path.agent_id: expected string to be agent- and a lower-case UUID, such as ` +
				`agent-123e4567-e89b-42d3-8456-426614174000. ` +
				`Got: "agent-123e4567-e89b-12d3-8456-426614174000"`},
		{"an id that is not there", "GET", "/v1/agents/agent-123e4567-e89b-42d3-8456-426614174000", "", "", 404,
			"no agent agent-123e4567-e89b-42d3-8456-426614174000"},
		{"an unknown path", "GET", "/v2/toys", "", "", 404, "Not Found"},
		{"an unknown path under a known one", "GET", "/v1/toys/a/b", "", "", 404, "Not Found"},
		{"another method", "PUT", "/v1/toys", "", "", 405, "Method Not Allowed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := servertest.Send(h, c.method, c.target, c.body, "Content-Type", c.contentType, "X-Request-Id", "req-1")
			want := map[string]any{"detail": c.detail}
			if c.status == 422 {
				want["trace_id"] = "req-1"
			}
			servertest.CheckProblem(t, got, c.status, want)
			if retry := got.Header().Get("X-Should-Retry"); c.status == 405 && retry != "false" {
				t.Errorf("x-should-retry is %q: Letta's clients would try three times", retry)
			}
		})
	}
}

// A compressed body would be read as broken JSON, or stored as a file that it is not.
func TestEncodedBodiesAreRefused(t *testing.T) {
	t.Parallel()
	h := newToys(t, nil)
	for coding, want := range map[string]int{"gzip": 415, "GZIP": 415, "br": 415, "identity": 200, "": 200} {
		got := servertest.Send(h, "PATCH", "/v1/toys", `{"count":1}`, "Content-Type", servertest.JSON, "Content-Encoding",
			coding)
		if got.Code != want {
			t.Errorf("%q: got %d %s, want %d", coding, got.Code, got.Body, want)
		}
	}
	if got := servertest.Send(h, "GET", "/v1/toys", "", "Content-Encoding", "gzip"); got.Code != 200 {
		t.Errorf("a request without a body: got %d %s", got.Code, got.Body)
	}
}

func TestAdapterTakesBodiesUpToTheLimit(t *testing.T) {
	t.Parallel()
	frame := `{"name":""}`
	body := `{"name":"` + strings.Repeat("a", 1<<20-len(frame)) + `"}`
	if got := servertest.Send(newToys(t, nil), "PATCH", "/v1/toys", body); got.Code != 200 || got.Text != body {
		t.Errorf("a body of %d bytes: got %d and %d bytes, want 200 and the same", len(body), got.Code, len(got.Text))
	}
}

func TestNoContentHasNone(t *testing.T) {
	t.Parallel()
	if got := servertest.Send(newToys(t, nil), "DELETE", "/v1/toys/a", ""); got.Code != 204 || got.Body.Len() != 0 {
		t.Errorf("got %d %q, want 204 and nothing", got.Code, got.Text)
	}
}

func TestServerFaultsAreLoggedOnceAndNotTold(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"/v1/panic", "/v1/broken"} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			got := servertest.Send(newToys(t, &log), "POST", target, "", "X-Request-Id", "req-1")
			servertest.CheckProblem(t, got, 500, map[string]any{"detail": "An unknown error occurred"})
			if n := strings.Count(log.String(), "level=ERROR"); n != 1 || !strings.Contains(log.String(), "a secret of ours") ||
				!strings.Contains(log.String(), "request_id=req-1") {
				t.Errorf("got %d log lines, want one with the cause and the request's id:\n%s", n, log.String())
			}
		})
	}
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	h := newToys(t, nil)
	if got := servertest.Send(h, "GET", "/v1/toys/count", "", "X-Request-Id",
		"abc-1.2_3").Header().Get("X-Request-Id"); got != "abc-1.2_3" {
		t.Errorf("got id %q, want the client's", got)
	}
	for _, bad := range []string{"", "two words", "line\nbreak", strings.Repeat("a", 65)} {
		if got := servertest.Send(h, "GET", "/v1/toys/count", "", "X-Request-Id",
			bad).Header().Get("X-Request-Id"); got == bad || len(got) < 20 {
			t.Errorf("for %q: got id %q, want a random one", bad, got)
		}
	}
}
