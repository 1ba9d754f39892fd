package files_test

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

	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/files"
)

// endpoint is a server that speaks the embeddings protocol: a text's vector is the sum of its words' random directions, so texts that
// share words are near each other.
type endpoint struct {
	*httptest.Server
	dimension int
	down      atomic.Bool
	requests  atomic.Int64
	refuse    string // a text that contains it is refused

	fault atomic.Pointer[fault] // what it answers instead
	mu    sync.Mutex
	asked [][]string // the texts of each request
}

// fault answers a request; it says no if the endpoint should answer as it does else.
type fault func(w http.ResponseWriter, r *http.Request, texts []string) bool

func newEndpoint(t testing.TB, dimension int) *endpoint {
	t.Helper()
	e := &endpoint{dimension: dimension}
	e.Server = httptest.NewServer(e)
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.requests.Add(1)
	var ask struct{ Input []string }
	if err := json.NewDecoder(r.Body).Decode(&ask); err != nil || r.URL.Path != "/v1/embeddings" {
		http.Error(w, `{"error": {"message": "what"}}`, http.StatusBadRequest)
		return
	}
	e.mu.Lock()
	e.asked = append(e.asked, ask.Input)
	e.mu.Unlock()
	if f := e.fault.Load(); f != nil && (*f)(w, r, ask.Input) {
		return
	}
	if e.down.Load() {
		http.Error(w, `{"error": {"message": "down for repairs"}}`, http.StatusServiceUnavailable)
		return
	}
	type item struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	}
	var data []item
	for i, text := range ask.Input {
		if e.refuse != "" && strings.Contains(text, e.refuse) {
			http.Error(w, `{"error": {"message": "input is not acceptable"}}`, http.StatusBadRequest)
			return
		}
		data = append(data, item{i, direction(text, e.dimension)})
	}
	slices.Reverse(data) // the order of the answer means nothing
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data, "model": "fake"})
}

func direction(text string, dimension int) []float32 {
	v := make([]float32, dimension)
	for word := range strings.FieldsSeq(strings.ToLower(text)) {
		h := fnv.New64a()
		h.Write([]byte(strings.Trim(word, ".,!?")))
		random := rand.New(rand.NewPCG(h.Sum64(), 1))
		for i := range v {
			v[i] += float32(random.NormFloat64() / math.Sqrt(float64(dimension)))
		}
	}
	v[0] += 0.01
	return v
}

// dense connects a store's options to an endpoint, its space active once the store has a database.
func (e *endpoint) dense(t testing.TB) *files.Dense {
	t.Helper()
	return e.denseWithin(t, 0)
}

// denseWithin gives the endpoint so long to answer.
func (e *endpoint) denseWithin(t testing.TB, timeout time.Duration) *files.Dense {
	t.Helper()
	client, err := embed.NewOpenAI(embed.Config{BaseURL: e.URL + "/v1", Model: "fake", Attempts: 1, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	return &files.Dense{Embedder: client}
}

// newDenseWorld is a world whose files are embedded by an endpoint.
func newDenseWorld(t testing.TB, dimension int) (*world, *endpoint, embed.Space) {
	t.Helper()
	e := newEndpoint(t, dimension)
	w, space := e.world(t, e.dense(t), files.Queues())
	return w, e, space
}

// world is one whose files are embedded by the endpoint, by workers as the queues say.
func (e *endpoint) world(t testing.TB, dense *files.Dense, queues map[string]river.QueueConfig) (*world, embed.Space) {
	t.Helper()
	w := newWorldOf(t, files.Options{Dense: dense}, queues)
	space, err := embed.UseSpace(t.Context(), w.pool, e.URL, "fake", e.dimension)
	if err != nil {
		t.Fatal(err)
	}
	dense.Use(space)
	return w, space
}
