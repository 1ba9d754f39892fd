package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/server/metrics"
)

// All routes and tools that the metrics count as searches exist.
func TestTheSearchesThatAreCountedExist(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	served := map[string]bool{}
	for _, o := range c.routes() {
		served[o.String()] = true
	}
	for _, route := range metrics.SearchRoutes() {
		if !served[route] {
			t.Errorf("%s is not served", route)
		}
	}
	for _, name := range metrics.SearchTools() {
		if !tool.New(tool.Memories{}).Has(name) {
			t.Errorf("there is no tool %s", name)
		}
	}
}

// Metrics count the requests of the server that serves them. Requests with unknown paths are counted together.
func TestMetricsAreServed(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	c.work()
	c.call("GET", "/v1/agents", "")
	c.call("GET", "/v1/none", "")
	got := c.operator().call("GET", "/metrics", "")
	if got.Code != http.StatusOK || !strings.HasPrefix(got.Header().Get("Content-Type"), "text/plain") ||
		!strings.Contains(got.Text, `loci_http_requests_total{method="GET",route="/v1/agents",status="200"} 1`) ||
		!strings.Contains(got.Text, `loci_http_requests_total{method="GET",route="",status="404"} 1`) {
		t.Errorf("got %d %v:\n%s", got.Code, got.Header(), got.Text)
	}
}
