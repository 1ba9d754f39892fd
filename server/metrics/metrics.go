// Its files, in order: metrics.go counts what the server does; database.go reads counts from the database.
package metrics

import (
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// The outcomes that are counted.
const (
	OK      = "ok"
	Refused = "refused" // the request failed for a reason that the caller can fix
	Failed  = "failed"
)

// Metrics are the metrics of one server.
type Metrics struct {
	registry *prometheus.Registry

	requests, tools, searches, models, embeddings, compactions *prometheus.CounterVec

	requestSeconds, toolSeconds, searchSeconds, modelSeconds, embeddingSeconds, compactionSeconds *prometheus.HistogramVec

	modelTokens, compactionTokens *prometheus.CounterVec
	embeddedTexts, failedFiles    prometheus.Counter
}

// seconds are the upper bounds of duration buckets: from a search in memory to a long answer of a model.
var seconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 120}

// New returns metrics that begin at zero.
func New(version string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.requests = m.counter("http_requests_total", "Requests that were answered, by route.", "method", "route", "status")
	m.requestSeconds = m.histogram("http_request_duration_seconds",
		"Time from a request's headers to the end of its answer; that of a stream is how long it was read.",
		"method", "route")
	m.tools = m.counter("tool_calls_total", "Calls of tools, by agents and over REST.", "tool", "outcome")
	m.toolSeconds = m.histogram("tool_call_duration_seconds", "Time that a tool took.", "tool")
	m.searches = m.counter("searches_total", "Searches by what they search.", "kind", "outcome")
	m.searchSeconds = m.histogram("search_duration_seconds", "Time that a search took.", "kind")
	m.compactions = m.counter("compactions_total",
		"Compactions by what triggered them, the policy that planned them, and how their summaries were made.",
		"trigger", "policy", "how")
	m.compactionSeconds = m.histogram("compaction_duration_seconds", "Time that a compaction took.", "how")
	m.compactionTokens = m.counter("compaction_tokens_total",
		"Tokens that models saw of compacted conversations, before and after.", "when")
	m.models = m.counter("model_calls_total", "Calls of language models, by what for.", "use", "outcome")
	m.modelSeconds = m.histogram("model_call_duration_seconds", "Time that a language model took.", "use")
	m.modelTokens = m.counter("model_tokens_total", "Tokens as providers counted them.", "use", "direction")
	m.embeddings = m.counter("embedding_calls_total", "Calls of the embedding model.", "use", "outcome")
	m.embeddingSeconds = m.histogram("embedding_call_duration_seconds", "Time that the embedding model took.", "use")
	m.embeddedTexts = prometheus.NewCounter(prometheus.CounterOpts{Namespace: "loci", Name: "embedded_texts_total",
		Help: "Texts that were sent to the embedding model."})
	m.failedFiles = prometheus.NewCounter(prometheus.CounterOpts{Namespace: "loci", Name: "file_failures_total",
		Help: "Files whose text cannot be read."})
	build := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "loci", Name: "build_info", Help: "1; what runs.",
		ConstLabels: prometheus.Labels{"version": version, "go_version": runtime.Version()}})
	build.Set(1)
	m.registry.MustRegister(m.embeddedTexts, m.failedFiles, build, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *Metrics) counter(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "loci", Name: name, Help: help}, labels)
	m.registry.MustRegister(v)
	return v
}

func (m *Metrics) histogram(name, help string, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "loci", Name: name, Help: help, Buckets: seconds},
		labels)
	m.registry.MustRegister(v)
	return v
}

// Register adds a gauge. Its value is read with the metrics. It replaces an earlier gauge with the same name and
// labels.
func (m *Metrics) Register(name, help string, labels map[string]string, value func() float64) {
	gauge := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "loci", Name: name, Help: help, ConstLabels: labels},
		value)
	m.registry.Unregister(gauge)
	m.registry.MustRegister(gauge)
}

// Handler serves the metrics in Prometheus' text format, or in another format that the request accepts.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// Request counts an answered request. route is the pattern of its path; empty for a path that is not served.
func (m *Metrics) Request(method, route string, status int, duration time.Duration) {
	method = knownMethod(method)
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
	m.requestSeconds.WithLabelValues(method, route).Observe(duration.Seconds())
	if kind := searchRoutes[method+" "+route]; kind != "" {
		m.search(kind, statusOutcome(status), duration)
	}
}

// knownMethod returns a method, or "other" for a method that a client invented.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions:
		return method
	}
	return "other"
}

func statusOutcome(status int) string {
	switch {
	case status < http.StatusBadRequest:
		return OK
	case status < http.StatusInternalServerError:
		return Refused
	}
	return Failed
}

// ToolCall counts a call of one of Loci's tools.
func (m *Metrics) ToolCall(name, outcome string, took time.Duration) {
	m.tools.WithLabelValues(name, outcome).Inc()
	m.toolSeconds.WithLabelValues(name).Observe(took.Seconds())
	if kind := searchTools[name]; kind != "" {
		m.search(kind, outcome, took)
	}
}

func (m *Metrics) search(kind, outcome string, took time.Duration) {
	m.searches.WithLabelValues(kind, outcome).Inc()
	m.searchSeconds.WithLabelValues(kind).Observe(took.Seconds())
}

// Compaction describes a compaction to count. Policy is a preset's name, or empty.
type Compaction struct {
	Trigger, Policy, How string
	Before, After        int // tokens
	Took                 time.Duration
}

// Compaction counts a compaction.
func (m *Metrics) Compaction(c Compaction) {
	m.compactions.WithLabelValues(c.Trigger, c.Policy, c.How).Inc()
	m.compactionSeconds.WithLabelValues(c.How).Observe(c.Took.Seconds())
	m.compactionTokens.WithLabelValues("before").Add(float64(c.Before))
	m.compactionTokens.WithLabelValues("after").Add(float64(c.After))
}

// ModelCall counts a call of a language model, with the tokens that the provider reported. use says what for: agents'
// answers or summaries.
func (m *Metrics) ModelCall(use string, err error, input, output int, took time.Duration) {
	m.models.WithLabelValues(use, outcomeOf(err)).Inc()
	m.modelSeconds.WithLabelValues(use).Observe(took.Seconds())
	m.modelTokens.WithLabelValues(use, "input").Add(float64(max(0, input)))
	m.modelTokens.WithLabelValues(use, "output").Add(float64(max(0, output)))
}

// EmbeddingCall counts a request to the embeddings endpoint. use says what for: stored texts or queries.
func (m *Metrics) EmbeddingCall(use string, err error, texts int, took time.Duration) {
	m.embeddings.WithLabelValues(use, outcomeOf(err)).Inc()
	m.embeddingSeconds.WithLabelValues(use).Observe(took.Seconds())
	m.embeddedTexts.Add(float64(texts))
}

// FileFailed counts a file with a text that cannot be read.
func (m *Metrics) FileFailed() { m.failedFiles.Inc() }

func outcomeOf(err error) string {
	if err != nil {
		return Failed
	}
	return OK
}

// What each tool and each route searches.
var (
	searchTools = map[string]string{"semantic_search_files": "files", "grep_files": "grep",
		"archival_memory_search": "passages", "conversation_search": "messages", "search_memory": "memory",
		"ask_session": "sessions"}
	searchRoutes = map[string]string{
		"GET /v1/agents/{agent_id}/archival-memory/search": "passages",
		"POST /v1/passages/search":                         "passages",
		"POST /v1/messages/search":                         "messages",
		"POST /v1/agents/messages/search":                  "messages",
		"GET /v1/agents/{agent_id}/memory-search":          "memory",
		"GET /v1/memory-trees/{tree_id}/search":            "memory_files",
		"GET /v1/folders/{folder_id}/search":               "files",
		"POST /v1/tools/search":                            "tools",
	}
)

// SearchTools returns the tools that are counted as searches.
func SearchTools() []string { return slices.Sorted(maps.Keys(searchTools)) }

// SearchRoutes returns the routes (method and pattern) that are counted as searches.
func SearchRoutes() []string { return slices.Sorted(maps.Keys(searchRoutes)) }
