package main

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collector is an OpenTelemetry collector. It keeps the names of spans by trace.
type collector struct {
	mu    sync.Mutex
	spans map[string][]string // names by trace
	about []string            // attributes of the spans and their resources
	more  chan struct{}       // has a value if spans came since it was last read
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		body, _ = gzip.NewReader(r.Body)
	}
	text, err := io.ReadAll(body)
	var sent tracepb.ExportTraceServiceRequest
	if err != nil || proto.Unmarshal(text, &sent) != nil || r.URL.Path != "/v1/traces" {
		http.Error(w, "not a trace", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range sent.GetResourceSpans() {
		c.about = append(c.about, resource.GetResource().String())
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				trace := string(span.GetTraceId())
				c.spans[trace] = append(c.spans[trace], span.GetName())
				c.about = append(c.about, span.String())
			}
		}
	}
	select {
	case c.more <- struct{}{}:
	default:
	}
}

// newCollector starts a collector. Servers that start during the test send their spans to it.
func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{spans: map[string][]string{}, more: make(chan struct{}, 1)}
	receiver := httptest.NewServer(c)
	t.Cleanup(receiver.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.URL)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
	return c
}

// check waits for the spans of a job, and of creating and reading an agent named swordfish, and checks them.
func (c *collector) check(t *testing.T) {
	t.Helper()
	for deadline := time.After(patience); !c.has("GET /v1/agents/{agent_id}", "POST /v1/agents", "job "); {
		select {
		case <-c.more:
		case <-deadline:
			t.Fatalf("spans: %v", c.spans)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	withStatements := false
	for _, names := range c.spans {
		if slices.Contains(names, "GET /v1/agents/{agent_id}") {
			withStatements = withStatements || len(names) > 1
		}
		if slices.Contains(names, "GET /v1/health") {
			t.Error("the requests that watch the server have spans")
		}
	}
	if !withStatements {
		t.Errorf("the request has no statements in its trace: %v", c.spans)
	}
	all := strings.Join(c.about, "\n")
	for _, part := range []string{"deployment.environment", `"service.name"`, `"loci"`} {
		if !strings.Contains(all, part) {
			t.Errorf("what was sent lacks %s", part)
		}
	}
	if strings.Contains(all, "swordfish") {
		t.Error("what was sent has the text of a request")
	}
}

// has reports whether, for each of some names, a span begins with it.
func (c *collector) has(wanted ...string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range wanted {
		found := false
		for _, names := range c.spans {
			found = found || slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, name) })
		}
		if !found {
			return false
		}
	}
	return true
}

// If OpenTelemetry's variables ask for something that Loci does not support, it is refused. Without a collector,
// nothing is sent.
func TestTracingIsAskedFor(t *testing.T) {
	t.Parallel()
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	for _, c := range []struct {
		name        string
		environment map[string]string
		traces      bool
		fault       string
	}{
		{"nothing", nil, false, ""},
		{"a collector", map[string]string{endpoint: "http://127.0.0.1:1"}, true, ""},
		{"one for traces only", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1"}, true, ""},
		{"switched off", map[string]string{endpoint: "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "TRUE"}, false, ""},
		{"no exporter", map[string]string{endpoint: "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"}, false, ""},
		{"no URL", map[string]string{endpoint: ":::bad"}, false, "OTEL_EXPORTER_OTLP_ENDPOINT is ':::bad'"},
		{"a URL without a scheme", map[string]string{endpoint: "localhost:4318"}, false, "it must be a URL"},
		{"another protocol", map[string]string{endpoint: "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, false,
			"OTEL_EXPORTER_OTLP_PROTOCOL is 'grpc'"},
		{"another exporter", map[string]string{endpoint: "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "zipkin"}, false,
			"OTEL_TRACES_EXPORTER is 'zipkin'"},
		{"another propagator", map[string]string{endpoint: "http://127.0.0.1:1", "OTEL_PROPAGATORS": "b3"}, false,
			"OTEL_PROPAGATORS is 'b3'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			log, err := logger(streams{err: newLines()}, "error", "text")
			if err != nil {
				t.Fatal(err)
			}
			got, err := newTracing(t.Context(), log, func(name string) string { return c.environment[name] })
			defer got.close(t.Context())
			if (got != nil) != c.traces {
				t.Errorf("traces: %t", got != nil)
			}
			if (err != nil) != (c.fault != "") || err != nil && !strings.Contains(err.Error(), c.fault) {
				t.Errorf("got the error %v", err)
			}
		})
	}
}
