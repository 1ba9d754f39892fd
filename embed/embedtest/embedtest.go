// Package embedtest provides an embeddings endpoint for tests: a server that speaks the protocol and fails as a test
// wants.
// Each file uses only the files named before it:
//   - endpoints: embedtest.go reranker.go
//   - words and rankings: colliding.go quality.go
//   - the queue of a memory: work.go queue.go
package embedtest

import (
	"encoding/json"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/endpoint"
)

// Endpoint is a server that gives a text the sum of its words' random directions as vector. So texts with common words
// are near each other. Set Refuse and Same before the first request.
type Endpoint struct {
	*httptest.Server
	Dimension int
	Refuse    string            // a text that contains it is refused
	Same      map[string]string // lower-case word → the word that it means the same as

	Down     atomic.Bool
	Requests atomic.Int64
	Fault    atomic.Pointer[Fault] // answers in place of the endpoint

	mu    sync.Mutex
	asked [][]string
}

// Fault answers a request. It returns false if the endpoint should answer as usual.
type Fault func(w http.ResponseWriter, r *http.Request, texts []string) bool

// New starts an endpoint that runs until the test ends.
func New(t testing.TB, dimension int) *Endpoint {
	t.Helper()
	e := &Endpoint{Dimension: dimension}
	e.Server = httptest.NewServer(e)
	t.Cleanup(e.Close)
	return e
}

// Endpoint returns a client of the endpoint, as a memory uses it. Its space is not in use yet.
func (e *Endpoint) Endpoint(t testing.TB) *endpoint.Endpoint {
	t.Helper()
	return e.EndpointWithin(t, 0)
}

// EndpointWithin is Endpoint with a time limit for each answer.
func (e *Endpoint) EndpointWithin(t testing.TB, timeout time.Duration) *endpoint.Endpoint {
	t.Helper()
	client, err := endpoint.NewOpenAI(endpoint.Config{BaseURL: e.URL + "/v1", Model: "fake", Attempts: 1,
		Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	return &endpoint.Endpoint{Embedder: client}
}

// Use makes the endpoint's space the active one.
func (e *Endpoint) Use(t testing.TB, d db.DB, encoder *endpoint.Endpoint) endpoint.Space {
	t.Helper()
	space, err := endpoint.UseSpace(t.Context(), d, e.URL, "fake", e.Dimension)
	if err != nil {
		t.Fatal(err)
	}
	encoder.Use(space)
	return space
}

// Asked returns the texts of each request so far.
func (e *Endpoint) Asked() [][]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.asked)
}

// ServeHTTP implements http.Handler.
func (e *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.Requests.Add(1)
	var ask struct{ Input []string }
	if err := json.NewDecoder(r.Body).Decode(&ask); err != nil || r.URL.Path != "/v1/embeddings" {
		http.Error(w, `{"error": {"message": "what"}}`, http.StatusBadRequest)
		return
	}
	e.mu.Lock()
	e.asked = append(e.asked, ask.Input)
	e.mu.Unlock()
	if f := e.Fault.Load(); f != nil && (*f)(w, r, ask.Input) {
		return
	}
	if e.Down.Load() {
		http.Error(w, `{"error": {"message": "down for repairs"}}`, http.StatusServiceUnavailable)
		return
	}
	type item struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	}
	var data []item
	for i, text := range ask.Input {
		if e.Refuse != "" && strings.Contains(text, e.Refuse) {
			http.Error(w, `{"error": {"message": "input is not acceptable"}}`, http.StatusBadRequest)
			return
		}
		data = append(data, item{i, direction(text, e.Dimension, e.Same)})
	}
	slices.Reverse(data) // the order of the vectors in an answer has no meaning
	// The client may be gone.
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data, "model": "fake"})
}

// Direction returns the vector that an endpoint gives a text.
func Direction(text string, dimension int) []float32 { return direction(text, dimension, nil) }

func direction(text string, dimension int, same map[string]string) []float32 {
	v := make([]float32, dimension)
	for word := range strings.FieldsSeq(strings.ToLower(text)) {
		word = strings.Trim(word, ".,!?")
		if other, ok := same[word]; ok {
			word = other
		}
		h := fnv.New64a()
		_, _ = h.Write([]byte(word))                  // a hash does not fail
		random := rand.New(rand.NewPCG(h.Sum64(), 1)) //nolint:gosec // the same each time
		for i := range v {
			v[i] += float32(random.NormFloat64() / math.Sqrt(float64(dimension)))
		}
	}
	v[0] += 0.01
	return v
}

// Answer returns a fault that gives every request the same answer. headers are name, value, name, value, …
func Answer(status int, body string, headers ...string) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ []string) bool {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body)) // the client may be gone
		return true
	}
}

// Zeros returns a fault that answers with zero vectors, which have no direction.
func Zeros(dimension int) Fault {
	return func(w http.ResponseWriter, _ *http.Request, texts []string) bool {
		data := []map[string]any{}
		for i := range texts {
			data = append(data, map[string]any{"index": i, "embedding": make([]float32, dimension)})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data}) // the client may be gone
		return true
	}
}

// Vectors returns a fault that answers with too few vectors: missing of them are left out.
func Vectors(dimension, missing int) Fault {
	return func(w http.ResponseWriter, _ *http.Request, texts []string) bool {
		data := []map[string]any{}
		for i := range texts[missing:] {
			data = append(data, map[string]any{"index": i, "embedding": Direction(texts[i], dimension)})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data}) // the client may be gone
		return true
	}
}
