package endpoint_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/endpoint"
)

var _ embed.Embedder = (*endpoint.OpenAI)(nil)

// texts returns n items with ids that differ from their positions.
func texts(n int) []embed.Item {
	var items []embed.Item
	for i := range n {
		items = append(items, embed.Item{ID: int64(1000 - 7*i), Text: fmt.Sprintf("text number %d", i)})
	}
	return items
}

// checkVectors fails unless vectors are the provider's vectors of the items, each with its item's id and of norm 1.
func checkVectors(t *testing.T, vectors []embed.Vector, items []embed.Item, dimension int) {
	t.Helper()
	if len(vectors) != len(items) {
		t.Fatalf("got %d vectors, want %d", len(vectors), len(items))
	}
	for i, v := range vectors {
		if v.ID != items[i].ID || len(v.Values) != dimension {
			t.Fatalf("vector %d: got id %d of %d numbers, want id %d of %d", i, v.ID, len(v.Values), items[i].ID, dimension)
		}
		if c := cosine(v.Values, vectorOf(items[i].Text, dimension)); c < 0.99999 {
			t.Errorf("id %d has another text's vector: cosine %v", v.ID, c)
		}
		var norm float64
		for _, x := range v.Values {
			norm += float64(x) * float64(x)
		}
		if math.Abs(norm-1) > 1e-5 {
			t.Errorf("id %d: got squared norm %v, want 1", v.ID, norm)
		}
	}
}

func TestVectorsTravelWithTheirIDs(t *testing.T) {
	t.Parallel()
	for _, dimension := range []int{384, 1536} {
		for _, base64 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d numbers, base64 %v", dimension, base64), func(t *testing.T) {
				t.Parallel()
				p := &provider{dimension: dimension}
				client := p.start(t, func(c *endpoint.Config) { c.MaxBatchItems, c.Base64 = 8, base64 })
				items := texts(50)
				vectors, err := client.Embed(t.Context(), items)
				if err != nil {
					t.Fatal(err)
				}
				checkVectors(t, vectors, items, dimension)
				if got := p.count(); got != 7 {
					t.Errorf("50 texts by 8: got %d requests, want 7", got)
				}
			})
		}
	}
}

func TestRequestHasOnlyWhatIsSet(t *testing.T) {
	t.Parallel()
	p := &provider{dimension: 4}
	client := p.start(t, func(c *endpoint.Config) { c.BaseURL += "/" })
	if _, err := client.Embed(t.Context(), texts(1)); err != nil {
		t.Fatal(err)
	}
	got := p.requests[0]
	if got.Dimensions != nil || got.EncodingFormat != nil || got.Model != "test-model" || got.path != "/v1/embeddings" ||
		got.authorization != "Bearer "+testKey {
		t.Errorf("got %+v", got)
	}
	q := &provider{dimension: 4}
	client = q.start(t, func(c *endpoint.Config) { c.Dimensions, c.APIKey = 4, "" })
	if _, err := client.Embed(t.Context(), texts(1)); err != nil {
		t.Fatal(err)
	}
	if got := q.requests[0]; got.Dimensions == nil || *got.Dimensions != 4 || got.authorization != "" {
		t.Errorf("got %+v, want dimensions 4 and no key", got)
	}
}

func TestBlankTextsAreNotSent(t *testing.T) {
	t.Parallel()
	p := &provider{dimension: 4}
	client := p.start(t, nil)
	vectors, err := client.Embed(t.Context(), []embed.Item{{ID: 1}, {ID: 2, Text: " \n\t"}, {ID: 3, Text: "word"}})
	if err != nil || len(vectors) != 1 || vectors[0].ID != 3 {
		t.Errorf("got %v, %v, want a vector for 3 alone", vectors, err)
	}
	if vectors, err := client.Embed(t.Context(), nil); err != nil || len(vectors) != 0 || p.count() != 1 {
		t.Errorf("nothing to embed: got %v, %v after %d requests", vectors, err, p.count())
	}
}

func TestBatchesAreBoundedByTokens(t *testing.T) {
	t.Parallel()
	p := &provider{dimension: 4}
	client := p.start(t, func(c *endpoint.Config) { c.MaxBatchTokens = 100 })
	long := strings.Repeat("x", 120) // 40 tokens
	if _, err := client.Embed(t.Context(), []embed.Item{{ID: 1, Text: long}, {ID: 2, Text: long}, {ID: 3, Text: long},
		{ID: 4, Text: strings.Repeat("y", 900)}, {ID: 5, Text: "z"}}); err != nil {
		t.Fatal(err)
	}
	sizes := map[int]int{}
	for _, r := range p.requests {
		sizes[len(r.Input)]++
	}
	if diff := cmp.Diff(map[int]int{2: 1, 1: 3}, sizes); diff != "" {
		t.Errorf("texts in a request: -want +got\n%s", diff)
	}
}

// tooMany returns the answer of an overloaded provider, with headers that ask the client to wait.
func tooMany(status int, headers ...string) (int, http.Header, string) {
	header := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		header.Set(headers[i], headers[i+1])
	}
	return status, header, `{"error":{"message":"slow down, ` + testKey + `","type":"rate_limit"}}`
}

func TestFailureOfTheProvider(t *testing.T) {
	t.Parallel()
	answer := func(status int, body string, headers ...string) func(int, []string) (int, http.Header, string) {
		return func(int, []string) (int, http.Header, string) {
			_, header, _ := tooMany(status, headers...)
			return status, header, body
		}
	}
	for _, c := range []struct {
		name     string
		refuse   func(int, []string) (int, http.Header, string)
		requests int
		want     string
	}{
		{"a wrong key is not tried twice", answer(401, `{"error":{"message":"bad key `+testKey+`"}}`), 1,
			"LOCI_EMBEDDING_API_KEY"},
		{"a forbidden key is not tried twice", answer(403, testKey), 1, "LOCI_EMBEDDING_API_KEY"},
		{"a wrong path names both settings", answer(404, "404 page not found"), 1,
			"LOCI_EMBEDDING_BASE_URL, which mostly ends in /v1, and LOCI_EMBEDDING_MODEL (test-model)"},
		{"a limit that stays ends after four attempts", answer(429, `{"error":{"message":"quota `+testKey+`"}}`), 4,
			"status 429: quota [key]"},
		{"a long wait is left to the caller", answer(429, "later", "Retry-After", "3600"), 1, "try again later"},
		{"an error that stays ends after four attempts", answer(502, "<html>bad\ngateway"), 4,
			"status 502: <html>bad gateway"},
		{"garbage is no answer", answer(200, "{]"), 1, "something else than embeddings"},
		{"another answer is no answer", answer(200, `{"ok":true}`), 1, "0 vectors to 3 texts"},
		{"a redirect is not followed", answer(307, "", "Location", "http://192.0.2.1/"), 1,
			"redirects elsewhere: set LOCI_EMBEDDING_BASE_URL"},
		{"refusing every text is a wrong setting", answer(400, `{"error":{"message":"this model takes no dimensions"}}`), 3,
			"refuses every text: this model takes no dimensions (status 400): check LOCI_EMBEDDING_MODEL (test-model)"},
		{"an endless reason is cut", answer(501, strings.Repeat("é", 100_000)), 4, strings.Repeat("é", 300) + "…"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := &provider{dimension: 4, refuse: c.refuse}
			client := p.start(t, nil)
			vectors, err := client.Embed(t.Context(), texts(3))
			if vectors != nil || err == nil {
				t.Fatalf("got %v, %v, want no vectors and an error", vectors, err)
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), testKey) {
				t.Errorf("got error %q, want it to hold %q and not the key", err, c.want)
			}
			if refused, ok := errors.AsType[*endpoint.RefusedError](err); ok {
				t.Errorf("got a refused text %v, want the provider's failure", refused)
			}
			if p.count() != c.requests {
				t.Errorf("got %d requests, want %d", p.count(), c.requests)
			}
		})
	}
}

func TestUnreachableProvider(t *testing.T) {
	t.Parallel()
	client, err := endpoint.NewOpenAI(endpoint.Config{BaseURL: "http://127.0.0.1:1/v1", Model: "m", APIKey: testKey,
		FirstPause: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Embed(t.Context(), texts(1))
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:1 cannot be reached") {
		t.Errorf("got error %v, want one that names the address", err)
	}
}

func TestEndedContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	p := &provider{dimension: 4, refuse: func(int, []string) (int, http.Header, string) { cancel(); return tooMany(503) }}
	client := p.start(t, nil)
	_, err := client.Embed(ctx, texts(1))
	if !errors.Is(err, context.Canceled) || p.count() != 1 {
		t.Errorf("got %v after %d requests, want context.Canceled after 1", err, p.count())
	}
}

func TestAnswersThatLeaveADoubtAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		alter func([]map[string]any) []map[string]any
		want  string
	}{
		{"a text without a vector", func(d []map[string]any) []map[string]any { return d[1:] }, "2 vectors to 3 texts"},
		{"a text with two", func(d []map[string]any) []map[string]any { d[0]["index"] = 0; return d },
			"two vectors for text 0 of 3"},
		{"a text that was not sent", func(d []map[string]any) []map[string]any { d[0]["index"] = 3; return d },
			"text 3 of 3"},
		{"a text before the first", func(d []map[string]any) []map[string]any { d[0]["index"] = -1; return d },
			"text -1 of 3"},
		{"another dimension", func(d []map[string]any) []map[string]any { d[2]["embedding"] = []float32{1, 2}; return d },
			"2 numbers after ones of 4"},
		{"no numbers", func(d []map[string]any) []map[string]any { d[0]["embedding"] = []float32{}; return d },
			"vectors of 0 numbers"},
		{"too many numbers", func(d []map[string]any) []map[string]any { d[0]["embedding"] = make([]int, 4001); return d },
			"vectors of 4001 numbers"},
		{"a number beyond float32", func(d []map[string]any) []map[string]any {
			d[0]["embedding"] = []json.Number{"1e99",
				"1"}
			return d
		}, "something else than embeddings"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := &provider{dimension: 4, alter: c.alter}
			vectors, err := p.start(t, nil).Embed(t.Context(), texts(3))
			if vectors != nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v, want an error with %q", vectors, err, c.want)
			}
		})
	}
}

func TestVectorWithoutDirectionIsOneRefusedText(t *testing.T) {
	t.Parallel()
	for _, base64 := range []string{"AAAAAAAAAAAAAAAAAAAAAA==", "AADAfwAAgD8AAIA/AACAPw=="} { // zeros; NaN, 1, 1, 1
		p := &provider{
			dimension: 4,
			alter:     func(d []map[string]any) []map[string]any { d[1]["embedding"] = base64; return d },
		}
		client := p.start(t, func(c *endpoint.Config) { c.Base64 = true })
		items := texts(3)
		vectors, err := client.Embed(t.Context(), items)
		var refused *endpoint.RefusedError
		if !errors.As(err, &refused) || refused.ID != items[1].ID {
			t.Errorf("got %v, want text %d refused", err, items[1].ID)
		}
		checkVectors(t, vectors, []embed.Item{items[0], items[2]}, 4)
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	p := &provider{dimension: 384}
	if got, err := p.start(t, nil).Probe(t.Context()); got != 384 || err != nil {
		t.Errorf("got %d, %v, want 384", got, err)
	}
	_, err := p.start(t, func(c *endpoint.Config) { c.Dimensions = 1536 }).Probe(t.Context())
	if err == nil || !strings.Contains(err.Error(), "384") ||
		!strings.Contains(err.Error(), "LOCI_EMBEDDING_DIMENSIONS is 1536") {
		t.Errorf("got %v, want an error with both numbers", err)
	}
}

// If the provider knows base64, it is asked for base64 once that is known. If it ignores that, it is asked as before.
func TestProbeFindsBase64(t *testing.T) {
	t.Parallel()
	numbers := func(d []map[string]any) []map[string]any {
		for i := range d {
			if _, ok := d[i]["embedding"].(string); ok {
				d[i]["embedding"] = vectorOf("memory", 8)
			}
		}
		return d
	}
	other := func(d []map[string]any) []map[string]any {
		if _, ok := d[0]["embedding"].(string); ok {
			d[0]["embedding"] = "AACAPwAAgL8AAIA/AACAvwAAgD8AAIC/AACAPwAAgL8=" // 1, -1, …
		}
		return d
	}
	for _, c := range []struct {
		name   string
		alter  func([]map[string]any) []map[string]any
		base64 bool
	}{
		{"a provider that knows it", nil, true},
		{"one that answers with numbers", numbers, false},
		{"one that answers with another vector", other, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := &provider{dimension: 8, alter: c.alter}
			client := p.start(t, nil)
			if got, err := client.Probe(t.Context()); got != 8 || err != nil {
				t.Fatalf("got %d, %v, want 8", got, err)
			}
			items := texts(1)
			vectors, err := client.Embed(t.Context(), items)
			if err != nil {
				t.Fatal(err)
			}
			checkVectors(t, vectors, items, 8)
			last := p.requests[len(p.requests)-1]
			if got := last.EncodingFormat != nil && *last.EncodingFormat == "base64"; got != c.base64 {
				t.Errorf("base64 is asked for: %v, want %v", got, c.base64)
			}
		})
	}
}

func TestWrongSettingsAreNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		config endpoint.Config
		want   string
	}{
		{"no model", endpoint.Config{}, "LOCI_EMBEDDING_MODEL"},
		{"no scheme", endpoint.Config{BaseURL: "localhost:11434/v1", Model: "m"}, "LOCI_EMBEDDING_BASE_URL"},
		{"a password that is no URL", endpoint.Config{BaseURL: "http://user:pass word@[::1", Model: "m"},
			"LOCI_EMBEDDING_BASE_URL"},
		{"a negative dimension", endpoint.Config{Model: "m", Dimensions: -1}, "LOCI_EMBEDDING_DIMENSIONS"},
		{"a dimension beyond the index", endpoint.Config{Model: "m", Dimensions: 4001}, "LOCI_EMBEDDING_DIMENSIONS is 4001"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := endpoint.NewOpenAI(c.config)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "pass word") {
				t.Errorf("got %v, want %s named", err, c.want)
			}
		})
	}
}
