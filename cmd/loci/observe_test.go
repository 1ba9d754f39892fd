package main

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db/dbtest"
)

var servesMetrics = regexp.MustCompile(`http://[0-9.:]+/metrics`)

// scrape reads metrics without a key.
func scrape(t *testing.T, url string) (status int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// A server's metrics count its work. They need the operator's key, but no key at the separate address for metrics. The
// log has a line for each request, and one for a file that cannot be read. Spans of requests, statements and jobs go to
// a collector, without the texts that statements were given.
func TestAServerIsObserved(t *testing.T) {
	spans := newCollector(t)
	p := serve(t, "--database-url="+dbtest.OwnerURL(t), "--metrics-addr=127.0.0.1:0", "--log-format=json",
		"--api-key=an-api-key-of-no-operator")
	p.key = "an-api-key-of-no-operator"
	agent := call[identified](p, "POST", "/v1/agents", map[string]any{"tool_set": "all", "name": "swordfish",
		"model": "m"}).ID
	folder := call[identified](p, "POST", "/v1/folders/", map[string]any{"name": "f"}).ID
	call[result](p, "POST", "/v1/agents/"+agent+"/tools/conversation_search/run", map[string]any{
		"args": map[string]any{"query": "ferry"}})
	call[stored](p, "POST", "/v1/folders/"+folder+"/upload", fileForm(t, "broken.pdf", []byte("%PDF-1.7\nno document")))
	call[identified](p, "GET", "/v1/agents/"+agent, nil)
	call[map[string]any](p, "GET", "/v1/health/", nil)
	if status, _ := p.send("GET", "/metrics", nil); status != http.StatusForbidden {
		t.Errorf("/metrics answers a key that is not the operator's with %d, want 403", status)
	}
	var url string
	p.log.await(t, "the log says where metrics are", func(log string) bool {
		url = servesMetrics.FindString(log)
		return url != ""
	})
	p.log.await(t, "the file has failed", func(log string) bool { return strings.Contains(log, "a file cannot be read") })
	wanted := []string{`loci_http_requests_total{method="POST",route="/v1/agents",status="200"} 1`,
		`loci_http_requests_total{method="GET",route="/metrics",status="403"} 1`,
		`loci_tool_calls_total{outcome="ok",tool="conversation_search"} 1`,
		`loci_searches_total{kind="messages",outcome="ok"} 1`, `loci_file_failures_total 1`, `loci_database_up 1`,
		`loci_files{status="error"} 1`, `loci_http_requests_in_flight 0`}
	var text string
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the metrics:\n%s", text)
		}
	})
	eventually(t, "the metrics are "+strings.Join(wanted, ", "), func() bool { // a request is counted after its answer
		_, text = scrape(t, url)
		return !slices.ContainsFunc(wanted, func(want string) bool { return !strings.Contains(text, want+"\n") })
	})
	if strings.Contains(text, agent) || strings.Contains(text, folder) {
		t.Error("metrics name an agent or a folder")
	}
	requests := 0
	for line := range strings.Lines(p.log.String()) {
		var entry struct {
			Level, Msg, Path string
			RequestID        string `json:"request_id"`
			Key              string
			Status           int
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%q is no JSON: %v", line, err)
		}
		if entry.Msg == "request" && entry.Path == "/v1/agents" {
			requests++
			if entry.Level != "INFO" || entry.RequestID == "" || entry.Status != 200 || !strings.HasPrefix(entry.Key, "key-") {
				t.Errorf("got %s", line)
			}
		}
	}
	if requests != 1 {
		t.Errorf("the log has %d lines for one request", requests)
	}
	spans.check(t)
}

// Settings for logs and metrics are checked before anything starts.
func TestSettingsOfLogsAndMetricsAreChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ flag, said string }{
		{"--log-format=xml", "LOCI_LOG_FORMAT is 'xml'; it must be text or json"},
		{"--metrics-addr=nowhere", "LOCI_METRICS_ADDR"},
	} {
		errs := newLines()
		args := []string{"serve", "--addr=127.0.0.1:0", "--database-url=postgres://127.0.0.1:1/none", c.flag}
		if code := run(t.Context(), args, newLines(), errs); code != 2 || !strings.Contains(errs.String(), c.said) {
			t.Errorf("%s: got %d and %q", c.flag, code, errs)
		}
	}
}
