package rest_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/loci-memory/loci/server/servertest"
)

// The log names requests by route and ids. It contains no text that callers chose, because an erasure does not reach
// the log.
func TestTheLogHasRoutesAndIDs(t *testing.T) {
	t.Parallel()
	const id = "toy-3f0c8a52-7d4e-4b6a-9c1d-2e5f60718293"
	for _, c := range []struct{ name, method, target, want string }{
		{"an id", "GET", "/v1/toys/" + id, "method=GET path=/v1/toys/" + id},
		{"a number", "GET", "/v1/toys/17", "path=/v1/toys/17"},
		{"a name", "GET", "/v1/toys/Ann%20Lee", "path=/v1/toys/{label}"},
		{"a name that is like an id", "GET", "/v1/toys/ann-3f0c8a52", "path=/v1/toys/{label}"},
		{"a route without parameters", "GET", "/v1/toys?name=Ann%20Lee", "path=/v1/toys "},
		{"a path that is not served", "GET", "/Ann/Lee", "path=unknown"},
		{"a method that is not served", "LOOK", "/v1/toys", "method=LOOK"},
		{"a method that a client made up", "Ann-Lee", "/v1/toys", "method=other"},
		{"a long method", strings.Repeat("A", 17), "/v1/toys", "method=other"},
	} {
		var log bytes.Buffer
		servertest.Send(newToys(t, &log), c.method, c.target, "")
		got := log.String()
		if !strings.Contains(got, c.want) || strings.Contains(got, "Ann") || strings.Contains(got, "Lee") {
			t.Errorf("%s: the log has %q, want %q", c.name, got, c.want)
		}
	}
}
