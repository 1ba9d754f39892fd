// Its files: log.go keeps a server's log for each test; servertest.go sends requests and checks answers.
package servertest

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// JSON is the media type of most bodies.
const JSON = "application/json"

// Reply is an answer: its status, its headers, and its body without the final newline.
type Reply struct {
	*httptest.ResponseRecorder
	Text string
}

// Send sends a request with a body, which is JSON unless a header says otherwise. headers alternate names and values;
// an empty value removes a header.
func Send(h http.Handler, method, target, body string, headers ...string) Reply {
	return Do(h, Request(method, target, body, headers...))
}

// Request returns a request as Send sends it.
func Request(method, target, body string, headers ...string) *http.Request {
	r := httptest.NewRequestWithContext(context.Background(), method, "http://localhost"+target, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", JSON)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i+1] == "" {
			r.Header.Del(headers[i])
		}
	}
	return r
}

// Do lets a handler answer a request.
func Do(h http.Handler, r *http.Request) Reply {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return Reply{w, strings.TrimSpace(w.Body.String())}
}

// CheckProblem fails the test unless a reply is an error with this status and these fields. The reply must also have a
// code, a type and a link in the form that all errors share.
func CheckProblem(t *testing.T, got Reply, status int, want map[string]any) {
	t.Helper()
	var body map[string]any
	if err := json.Unmarshal([]byte(got.Text), &body); err != nil {
		t.Fatalf("got %d %q, which is not JSON: %v", got.Code, got.Text, err)
	}
	CheckForm(t, got)
	for _, name := range []string{"code", "type", "link"} {
		if _, named := want[name]; !named {
			delete(body, name)
		}
	}
	if diff := cmp.Diff(want, body); got.Code != status || diff != "" {
		t.Errorf("got %d, want %d; body (-want +got):\n%s", got.Code, status, diff)
	}
}

// CheckForm fails the test unless a reply has the form that all errors share.
func CheckForm(t *testing.T, got Reply) {
	t.Helper()
	var p struct{ Detail, Code, Type, Link string }
	if err := json.Unmarshal([]byte(got.Text), &p); err != nil || p.Detail == "" || p.Code == "" || p.Type == "" ||
		p.Link != "/v1/errors/"+p.Code {
		t.Errorf("got %d %s (%v), want detail, code, type and the code's link", got.Code, got.Text, err)
	}
	if ct := got.Header().Get("Content-Type"); ct != JSON {
		t.Errorf("got content type %q, want %q", ct, JSON)
	}
}
