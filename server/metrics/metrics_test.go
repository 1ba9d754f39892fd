package metrics_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/server/metrics"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// read returns the metrics as a scraper gets them.
func read(t *testing.T, m *metrics.Metrics) string {
	t.Helper()
	out := httptest.NewRecorder()
	m.Handler().ServeHTTP(out, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	if out.Code != 200 {
		t.Fatalf("got %d: %s", out.Code, out.Body)
	}
	return out.Body.String()
}

// shows checks that a text has each of some lines.
func shows(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%q is missing of\n%s", line, only(text, "loci_"))
		}
	}
}

// only returns the lines with a prefix.
func only(text, prefix string) string {
	var list []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) {
			list = append(list, line)
		}
	}
	return strings.Join(list, "")
}

// All counted numbers are served, with names that Prometheus' own linter accepts.
func TestWhatHappensIsCounted(t *testing.T) {
	t.Parallel()
	m, pool := metrics.New("1.2.3"), dbtest.Pool(t)
	m.Database(pool)
	m.Register("held_bytes", "Bytes.", map[string]string{"where": "memory"}, func() float64 { return 7 })
	const took = 40 * time.Millisecond
	m.Request("GET", "/v1/agents/{agent_id}", 200, took)
	m.Request("GET", "/v1/agents/{agent_id}/archival-memory/search", 200, took)
	m.Request("POST", "/v1/passages/search", 500, took)
	m.Request("BREW", "", 404, took)
	m.ToolCall("grep_files", metrics.Refused, took)
	m.ToolCall("expand", metrics.OK, took)
	m.Compaction(metrics.Compaction{Trigger: "manual", Policy: "pi", How: "extracted", Before: 900,
		After: 300, Took: took})
	m.ModelCall("answer", nil, 100, 20, took)
	m.ModelCall("answer", errors.New("down"), -1, 0, took)
	m.EmbeddingCall("query", errors.New("down"), 3, took)
	m.FileFailed()
	text := read(t, m)
	shows(t, text,
		`loci_http_requests_total{method="GET",route="/v1/agents/{agent_id}",status="200"} 1`,
		`loci_http_requests_total{method="other",route="",status="404"} 1`,
		`loci_http_request_duration_seconds_bucket{method="GET",route="/v1/agents/{agent_id}",le="0.05"} 1`,
		`loci_http_request_duration_seconds_bucket{method="GET",route="/v1/agents/{agent_id}",le="0.025"} 0`,
		`loci_searches_total{kind="passages",outcome="ok"} 1`, `loci_searches_total{kind="passages",outcome="failed"} 1`,
		`loci_searches_total{kind="grep",outcome="refused"} 1`,
		`loci_tool_calls_total{outcome="refused",tool="grep_files"} 1`,
		`loci_tool_calls_total{outcome="ok",tool="expand"} 1`,
		`loci_compactions_total{how="extracted",policy="pi",trigger="manual"} 1`,
		`loci_compaction_tokens_total{when="after"} 300`, `loci_compaction_tokens_total{when="before"} 900`,
		`loci_model_calls_total{outcome="failed",use="answer"} 1`, `loci_model_calls_total{outcome="ok",use="answer"} 1`,
		`loci_model_tokens_total{direction="input",use="answer"} 100`,
		`loci_embedding_calls_total{outcome="failed",use="query"} 1`, `loci_embedded_texts_total 3`,
		`loci_file_failures_total 1`, `loci_held_bytes{where="memory"} 7`, `loci_database_up 1`, `loci_open_files 0`)
	if !strings.Contains(text, `loci_build_info{go_version="go`) || !strings.Contains(text, `version="1.2.3"} 1`) {
		t.Errorf("what was built is missing of\n%s", only(text, "loci_build"))
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("got %v and %v", problems, err)
	}
}

// While the database does not answer, its numbers are missing, and all others are served.
func TestMetricsOutliveTheDatabase(t *testing.T) {
	t.Parallel()
	pool := dbtest.Pool(t) // the test closes this pool
	m := metrics.New("")
	m.Database(pool)
	pool.Close()
	m.FileFailed()
	text := read(t, m)
	shows(t, text, `loci_database_up 0`, `loci_file_failures_total 1`)
	if strings.Contains(text, "loci_open_files") {
		t.Errorf("open files are counted without a database:\n%s", only(text, "loci_open_files"))
	}
}

// Jobs and files are counted by state. The age of the oldest waiting job is shown.
func TestJobsAndFilesAreCounted(t *testing.T) {
	t.Parallel()
	pool, org := dbtest.Org(t)
	parse, embed := fmt.Sprint("parse_", org), fmt.Sprint("embed_", org) // queues that belong to this test
	if _, err := pool.Exec(t.Context(), `
		INSERT INTO river_job (kind, queue, state, args, max_attempts, created_at, scheduled_at)
		VALUES ('a', $1, 'available', '{}', 5, now() - interval '2 minutes', '2000-01-01'),
		       ('a', $1, 'available', '{}', 5, now() - interval '1 hour', now()),
		       ('a', $2, 'retryable', '{}', 5, now(), now())`, parse, embed); err != nil {
		t.Fatal(err)
	}
	m := metrics.New("")
	m.Database(pool)
	text := read(t, m)
	shows(t, text, `loci_jobs{queue="`+parse+`",state="available"} 2`,
		`loci_jobs{queue="`+embed+`",state="retryable"} 1`)
	var age float64
	shown := regexp.MustCompile(`loci_jobs_oldest_age_seconds\{queue="` + parse + `"\} (.+)`).FindStringSubmatch(text)
	if len(shown) > 0 {
		age, _ = strconv.ParseFloat(shown[1], 64)
	}
	if age < 120 || age >= 3600 { // the waiting job was created two minutes before
		t.Errorf("the oldest job is said to wait for %g seconds: %s", age, only(text, "loci_jobs_oldest"))
	}
}

// The dashboard and the alert rules name only metrics that exist.
func TestTheDashboardNamesWhatThereIs(t *testing.T) {
	t.Parallel()
	m, pool := metrics.New(""), dbtest.Pool(t)
	m.Database(pool)
	m.Register("http_requests_in_flight", "Requests.", nil, func() float64 { return 0 })
	known := m.Names()
	suffix := regexp.MustCompile(`_(bucket|sum|count)$`)
	for _, name := range []string{"grafana.json", "alerts.yml"} {
		text, err := os.ReadFile("../../docs/monitoring/" + name)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`\bloci_\w+`).FindAllString(string(text), -1)
		if len(found) < 10 {
			t.Errorf("%s names %d metrics", name, len(found))
		}
		for _, metric := range found {
			if !slices.Contains(known, suffix.ReplaceAllString(metric, "")) {
				t.Errorf("%s names %s, which does not exist", name, metric)
			}
		}
	}
}
