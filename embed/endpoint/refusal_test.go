package endpoint_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/endpoint"
)

// refuseTexts answers with status to every request with a text for which bad returns true.
func refuseTexts(
	status int,
	message string,
	bad func(text string) bool,
) func(int, []string) (int, http.Header, string) {
	return func(_ int, texts []string) (int, http.Header, string) {
		if slices.ContainsFunc(texts, bad) {
			return status, nil, message
		}
		return 0, nil, ""
	}
}

func TestOneRefusedTextCostsFewRequests(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		bad  string
		most int
	}{
		{"short", "forbidden", 13},
		{"long", strings.Repeat("forbidden words ", 500), 14},
	} {
		for _, position := range []int{0, 13, 31} {
			t.Run(fmt.Sprintf("%s at %d", c.name, position), func(t *testing.T) {
				t.Parallel()
				p := &provider{dimension: 8}
				p.refuse = refuseTexts(
					422,
					`{"error":"not allowed"}`,
					func(s string) bool { return strings.Contains(s, "forbidden") },
				)
				client := p.start(t, func(c *endpoint.Config) { c.MaxBatchItems = 32 })
				items := texts(32)
				items[position].Text = c.bad
				vectors, err := client.Embed(t.Context(), items)
				var refused *endpoint.RefusedError
				if !errors.As(err, &refused) || refused.ID != items[position].ID ||
					refused.Reason != "status 422" || !strings.Contains(refused.Detail, "not allowed") {
					t.Fatalf("got %v, want text %d refused", err, items[position].ID)
				}
				good := append(append([]embed.Item{}, items[:position]...), items[position+1:]...)
				checkVectors(t, vectors, good, 8)
				if p.count() > c.most {
					t.Errorf("got %d requests, want at most %d", p.count(), c.most)
				}
			})
		}
	}
}

func TestAllRefusedTextsAreReported(t *testing.T) {
	t.Parallel()
	p := &provider{dimension: 8}
	p.refuse = refuseTexts(400, "no", func(s string) bool { return strings.Contains(s, "number 1") })
	items := texts(20) // 1 and 10 to 19 are refused
	vectors, err := p.start(t, nil).Embed(t.Context(), items)
	refused := map[int64]bool{}
	var all interface{ Unwrap() []error }
	if !errors.As(err, &all) {
		t.Fatalf("got %v, want the errors of several texts", err)
	}
	for _, err := range all.Unwrap() {
		if one, ok := errors.AsType[*endpoint.RefusedError](err); ok {
			refused[one.ID] = true
		}
	}
	if len(vectors) != 9 || len(refused) != 11 || !refused[items[1].ID] || !refused[items[19].ID] {
		t.Errorf("got %d vectors and %d refused (%v), want 9 and 11", len(vectors), len(refused), err)
	}
}

// window refuses texts of more than the given number of characters, like a small model.
func window(status, chars int, message string) func(int, []string) (int, http.Header, string) {
	return refuseTexts(status, message, func(s string) bool { return utf8.RuneCountInString(s) > chars })
}

func TestTooLongTextIsCutAndAveraged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		status  int
		message string
	}{
		{"OpenAI and vLLM", 400,
			`{"error":{"message":"This model's maximum context length is 512 tokens, however you requested 700 tokens"}}`},
		{"text-embeddings-inference", 413, "{\"error\":\"Input validation error: `inputs` must have less than 512 tokens. " +
			"Given: 700\",\"error_type\":\"Validation\"}"},
		{"Ollama", 400, `{"error":{"message":"the input length exceeds the context length","type":"api_error"}}`},
		{"llama.cpp", 500,
			`{"error":{"code":500,"message":"input (700 tokens) is too large to process. ` +
				`increase the physical batch size (current batch size: 512)","type":"server_error"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := &provider{dimension: 16, refuse: window(c.status, 1000, c.message)}
			client := p.start(t, nil)
			long := strings.Repeat(strings.Repeat("x", 99)+" ", 35) // it is cut at a space, so in unequal parts
			items := []embed.Item{{ID: 1, Text: "short"}, {ID: 2, Text: long}, {ID: 3, Text: "short too"}}
			vectors, err := client.Embed(t.Context(), items)
			if err != nil {
				t.Fatal(err)
			}
			checkVectors(t, []embed.Vector{vectors[0], vectors[2]}, []embed.Item{items[0], items[2]}, 16)
			if got := cosine(vectors[1].Values, meanOfParts(p, long, 16)); got < 0.99999 {
				t.Errorf("the long text's vector is not its parts' mean: cosine %v", got)
			}
			before := p.count()
			if _, err := client.Embed(t.Context(), items); err != nil || p.count() != before+1 {
				t.Errorf("the second time: got %v by %d requests, want 1: the length is known", err, p.count()-before)
			}
		})
	}
}

// meanOfParts finds the parts of a text in the accepted requests, and returns the mean of their vectors, weighted by
// length.
func meanOfParts(p *provider, text string, dimension int) []float32 {
	sum := make([]float32, dimension)
	rest := text
	for _, r := range p.requests {
		if !strings.HasPrefix(rest, r.Input[0]) {
			continue
		}
		if status, _, _ := p.refuse(0, r.Input); status != 0 {
			continue
		}
		for _, part := range r.Input {
			rest = strings.TrimPrefix(rest, part)
			for i, x := range embed.Normalize(vectorOf(part, dimension)) {
				sum[i] += x * float32(len(part))
			}
		}
	}
	if rest != "" {
		return make([]float32, dimension)
	}
	return sum
}

func TestPartsAreWholeCharacters(t *testing.T) {
	t.Parallel()
	for _, text := range []string{strings.Repeat("界", 3000), strings.Repeat("👩‍🚀", 900), strings.Repeat("x", 9000),
		strings.Repeat("ab ", 2500) + strings.Repeat(" ", 5000)} {
		p := &provider{dimension: 4, refuse: window(413, 700, "too long")}
		client := p.start(t, nil)
		vectors, err := client.Embed(t.Context(), []embed.Item{{ID: 7, Text: text}})
		if err != nil || len(vectors) != 1 {
			t.Fatalf("%.10q…: got %d vectors, %v", text, len(vectors), err)
		}
		for _, r := range p.requests {
			for _, part := range r.Input {
				if strings.ContainsRune(part, utf8.RuneError) || strings.TrimSpace(part) == "" {
					t.Errorf("%.10q…: sent %q", text, part)
				}
			}
		}
	}
}

func TestTextBeyondTheLimitIsCutBeforeItIsSent(t *testing.T) {
	t.Parallel()
	p := &provider{dimension: 4}
	client := p.start(t, func(c *endpoint.Config) { c.MaxInputTokens, c.MaxBatchTokens = 100, 250 })
	vectors, err := client.Embed(t.Context(), []embed.Item{{ID: 1, Text: strings.Repeat("word ", 2000)}}) // 3,334 tokens
	if err != nil || len(vectors) != 1 {
		t.Fatalf("got %v, %v", vectors, err)
	}
	for _, r := range p.requests {
		if n := len(strings.Join(r.Input, "")); n > 750 {
			t.Errorf("got a request of %d characters, want at most 250 tokens", n)
		}
	}
}

func TestInvalidTextDoesNotPanic(t *testing.T) {
	t.Parallel()
	p := &provider{dimension: 4}
	client := p.start(t, func(c *endpoint.Config) { c.MaxInputTokens = 50 })
	if _, err := client.Embed(t.Context(), []embed.Item{{ID: 1, Text: strings.Repeat("\x80", 3000)}}); err != nil {
		t.Error(err)
	}
}

// If the provider gives no text a vector for a moment, that is a failure of the provider: no text is refused.
func TestBadMomentRefusesNoText(t *testing.T) {
	t.Parallel()
	zeros := func(data []map[string]any) []map[string]any {
		for i := range data {
			data[i]["embedding"] = make([]float32, 8)
		}
		return data
	}
	unloaded := func(int, []string) (int, http.Header, string) { return 400, nil, `{"error":"the model is not loaded"}` }
	for _, c := range []struct {
		name  string
		texts int
		spoil func(p *provider)
		want  string
	}{
		{"zeros for many texts", 150, func(p *provider) { p.alter = zeros }, "answers with a vector of zeros"},
		{"zeros for one text", 1, func(p *provider) { p.alter = zeros }, "answers with a vector of zeros"},
		{"a refusal of many texts", 150, func(p *provider) { p.refuse = unloaded }, "refuses every text"},
		{"a refusal of one text", 1, func(p *provider) { p.refuse = unloaded }, "refuses every text"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := &provider{dimension: 8}
			client := p.start(t, nil)
			items := texts(c.texts)
			if _, err := client.Embed(t.Context(), items); err != nil { // it works at first
				t.Fatal(err)
			}
			p.change(c.spoil)
			vectors, err := client.Embed(t.Context(), items)
			if vectors != nil || err == nil || len(endpoint.Refusals(err)) > 0 || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %d vectors, %v, want an error with %q and no refused text", len(vectors), err, c.want)
			}
			p.change(func(p *provider) { p.alter, p.refuse = nil, nil })
			vectors, err = client.Embed(t.Context(), items)
			if err != nil {
				t.Fatal(err)
			}
			checkVectors(t, vectors, items, 8)
		})
	}
}

// A text is refused only if the provider refuses it twice and accepts another text in between.
func TestMomentThatEndsWithinACallRefusesNoText(t *testing.T) {
	t.Parallel()
	once := false
	spoiled := func() bool { once = !once; return once }
	for name, p := range map[string]*provider{
		"zeros": {dimension: 8, alter: func(data []map[string]any) []map[string]any {
			if spoiled() {
				data[0]["embedding"] = make([]float32, 8)
			}
			return data
		}},
		"a refusal": {dimension: 8, refuse: func(n int, _ []string) (int, http.Header, string) {
			if n == 1 {
				return 400, nil, "not now"
			}
			return 0, nil, ""
		}},
	} {
		client := p.start(t, nil)
		items := texts(1)
		vectors, err := client.Embed(t.Context(), items)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		checkVectors(t, vectors, items, 8)
	}
}
