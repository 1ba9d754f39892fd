package endpoint_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/loci-memory/loci/embed/endpoint"
)

// provider is an embeddings endpoint with OpenAI's protocol. Its fields are set before its first request.
type provider struct {
	dimension int
	// refuse, if set, may give another answer; if it returns the status 0, the request is answered with vectors. n counts
	// requests from 1.
	refuse func(n int, texts []string) (status int, header http.Header, body string)
	// alter, if set, changes the answer before it is sent.
	alter func(data []map[string]any) []map[string]any

	mu       sync.Mutex
	requests []request
	url      string
}

// request is what a client sent.
type request struct {
	Input          []string `json:"input"`
	Model          string   `json:"model"`
	Dimensions     *int     `json:"dimensions"`
	EncodingFormat *string  `json:"encoding_format"`
	authorization  string
	path           string
}

const testKey = "sk-test-0123456789abcdef"

// start serves p. It returns a client that retries without a pause.
func (p *provider) start(t *testing.T, change func(*endpoint.Config)) *endpoint.OpenAI {
	t.Helper()
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.url = server.URL + "/v1"
	config := endpoint.Config{BaseURL: p.url, APIKey: testKey, Model: "test-model", HTTP: server.Client(),
		FirstPause: time.Nanosecond}
	if change != nil {
		change(&config)
	}
	client, err := endpoint.NewOpenAI(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var received request
	if err := json.NewDecoder(r.Body).Decode(&received); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	received.authorization, received.path = r.Header.Get("Authorization"), r.URL.Path
	p.mu.Lock()
	p.requests = append(p.requests, received)
	n, refuse, alter := len(p.requests), p.refuse, p.alter
	p.mu.Unlock()
	if refuse != nil {
		if status, header, body := refuse(n, received.Input); status != 0 {
			maps.Copy(w.Header(), header)
			w.WriteHeader(status)
			fmt.Fprint(w, body)
			return
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "model": received.Model,
		"data": p.answer(received, alter)})
}

// change changes the provider, which may still work on a request that its client gave up.
func (p *provider) change(how func(*provider)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	how(p)
}

// answer returns a vector for each text, in another order than the texts. If alter is not nil, it changes them.
func (p *provider) answer(received request, alter func([]map[string]any) []map[string]any) []map[string]any {
	var data []map[string]any
	for i, text := range received.Input {
		values := vectorOf(text, p.dimension)
		var embedding any = values
		if received.EncodingFormat != nil && *received.EncodingFormat == "base64" {
			wire := make([]byte, 0, 4*len(values))
			for _, x := range values {
				wire = binary.LittleEndian.AppendUint32(wire, math.Float32bits(x))
			}
			embedding = base64.StdEncoding.EncodeToString(wire)
		}
		data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": embedding})
	}
	slices.Reverse(data)
	if alter != nil {
		data = alter(data)
	}
	return data
}

func (p *provider) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.requests)
}

// vectorOf returns the provider's vector of a text, which is not of norm 1.
func vectorOf(text string, dimension int) []float32 {
	h := fnv.New64a()
	h.Write([]byte(text))
	rng := rand.New(rand.NewPCG(h.Sum64(), 1))
	values := make([]float32, dimension)
	for i := range values {
		values[i] = float32(rng.NormFloat64())
	}
	return values
}

// cosine returns the cosine of two vectors of any norm.
func cosine(a, b []float32) float64 {
	var dot, aa, bb float64
	for i := range a {
		dot += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return dot / math.Sqrt(aa*bb)
}
