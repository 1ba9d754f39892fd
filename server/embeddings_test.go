package server_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/server"
)

// embeddings is an answer of POST /v1/embeddings.
type embeddings struct {
	Object, Model string
	Data          []struct {
		Object    string
		Index     int
		Embedding json.RawMessage
	}
	Usage struct {
		Prompt int `json:"prompt_tokens"`
		Total  int `json:"total_tokens"`
	}
}

func (c *client) embeddings(body string) (e embeddings) {
	c.t.Helper()
	if err := json.Unmarshal([]byte(c.must("POST", "/v1/embeddings", body)), &e); err != nil {
		c.t.Fatal(err)
	}
	return e
}

// numbers decodes a vector from JSON or base64.
func numbers(t testing.TB, raw json.RawMessage) (v []float32) {
	t.Helper()
	if raw[0] == '[' {
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		t.Fatal(err)
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	for ; len(data) >= 4; data = data[4:] {
		v = append(v, math.Float32frombits(binary.LittleEndian.Uint32(data)))
	}
	return v
}

func TestEmbeddingsAreServedInOpenAIsForm(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	fake := embedtest.New(t, 8)
	fake.Refuse = "forbidden"
	encoder := fake.Endpoint(t)
	if got := c.call("POST", "/v1/embeddings", `{"input":"a"}`); got.Code != 503 ||
		!strings.Contains(got.Text, "No embedding model is in use") {
		t.Errorf("without a model: got %d %s", got.Code, got.Text)
	}
	space := fake.Use(t, c.pool, encoder)
	c.own().Endpoint = encoder
	a, b := embedtest.Direction("a cat", 8), embedtest.Direction("a dog", 8)
	for name, body := range map[string]string{"a list": `{"input":["a cat","a dog"],"user":"u"}`,
		"base64":             `{"input":["a cat","a dog"],"encoding_format":"base64"}`,
		"floats":             `{"input":["a cat","a dog"],"encoding_format":"float"}`,
		"the model's name":   fmt.Sprintf(`{"input":["a cat","a dog"],"model":%q}`, space.Model),
		"the model's handle": fmt.Sprintf(`{"input":["a cat","a dog"],"model":"openai/%s","dimensions":8}`, space.Model)} {
		got := c.embeddings(body)
		if got.Object != "list" || got.Model != space.Model || len(got.Data) != 2 || got.Usage.Prompt < 2 ||
			got.Usage.Total != got.Usage.Prompt {
			t.Fatalf("%s: got %+v", name, got)
		}
		for i, want := range [][]float32{a, b} {
			d := got.Data[i]
			v := numbers(t, d.Embedding)
			if d.Index != i || d.Object != "embedding" || len(v) != 8 || cosine(v, want) < 0.999 {
				t.Errorf("%s: vector %d is %+v, want %v", name, i, d, want)
			}
			if isText := d.Embedding[0] == '"'; isText != (name == "base64") {
				t.Errorf("%s: written as %s", name, d.Embedding)
			}
		}
	}
	if got := c.embeddings(`{"input":"a cat"}`); len(got.Data) != 1 ||
		cosine(numbers(t, got.Data[0].Embedding), a) < 0.999 {
		t.Errorf("one text: got %+v", got)
	}
	many := strings.Repeat(`"a",`, endpoint.MaxMadeTexts) + `"a"`
	for _, refused := range []struct{ name, body, says string }{
		{"no text", `{"input":[]}`, "input has no text"},
		{"a blank text", `{"input":["a"," "]}`, "input[1] is blank"},
		{"a text that the model refuses", `{"input":["a","forbidden"]}`, "input[1] gets no vector"},
		{"too many texts", `{"input":[` + many + `]}`, "takes at most 2048"},
		{"too long a text", `{"input":"` + strings.Repeat("a ", endpoint.MaxMadeBytes/2+1) + `"}`,
			"takes at most 1000000"},
		{"tokens", `{"input":[1,2]}`, "send a text, or a list of texts"},
		{"lists of tokens", `{"input":[[1,2],[3]]}`, "send a text, or a list of texts"},
		{"a text among tokens", `{"input":["a",1]}`, "body.input[1]: expected string"},
		{"another model", `{"input":"a","model":"text-embedding-3-small"}`, "this server embeds with " + space.Model},
		{"another dimension", `{"input":"a","dimensions":4}`, "have 8 numbers, and not 4"},
		{"another format", `{"input":"a","encoding_format":"hex"}`, "encoding_format"},
		{"nothing", `{}`, "input"},
	} {
		if got := c.call("POST", "/v1/embeddings", refused.body); got.Code != 422 ||
			!strings.Contains(got.Text, refused.says) {
			t.Errorf("%s: got %d %.300s, want 422 and %q", refused.name, got.Code, got.Text, refused.says)
		}
	}
	fake.Down.Store(true)
	if got := c.call("POST", "/v1/embeddings", `{"input":["a","b"]}`); got.Code != 503 ||
		!strings.Contains(got.Text, "No vectors are made now") {
		t.Errorf("while the model fails: got %d %s", got.Code, got.Text)
	}
}

func TestTheProgressOfVectorsIsCounted(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	if got := c.must("GET", "/v1/embeddings/progress", ""); !strings.Contains(got, `"model":""`) {
		t.Errorf("without a model: got %s", got)
	}
	fake := embedtest.New(t, 8)
	endpoint := fake.Endpoint(t)
	space := fake.Use(t, c.pool, endpoint)
	c.own().Endpoint = endpoint
	c.own().Archival = archival.New(c.pool, archival.Options{Endpoint: endpoint})
	archive := c.made("/v1/archives/", `{"name":"a"}`)
	for i := range 3 {
		c.must("POST", "/v1/archives/"+archive+"/passages", fmt.Sprintf(`{"text":"passage %d"}`, i))
	}
	var got server.EmbeddingProgress
	if err := json.Unmarshal([]byte(c.must("GET", "/v1/embeddings/progress", "")), &got); err != nil {
		t.Fatal(err)
	}
	if got.Model != space.Model || got.Dimension != 8 || got.Waiting != 3 || got.Embedded != 0 || got.Problem != nil ||
		got.SecondsLeft != nil || len(got.Memories) != 4 {
		t.Errorf("3 passages wait: got %+v", got)
	}
	for _, m := range got.Memories {
		if want := map[string]int64{"passages": 3}[m.Memory]; m.Waiting != want {
			t.Errorf("%s: %d wait, want %d", m.Memory, m.Waiting, want)
		}
	}
	permit, _ := endpoint.Await(t.Context())
	defer permit.End()
	if _, _, err := permit.Embed(t.Context(), []embed.Item{{ID: 1, Text: "a text"}}); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(c.must("GET", "/v1/embeddings/progress", "")), &got); err != nil {
		t.Fatal(err)
	}
	if got.SecondsLeft == nil {
		t.Errorf("once a text was embedded: got %+v, want the time left", got)
	}
}

// cosine returns the cosine of two vectors with norm 1.
func cosine(a, b []float32) (sum float64) {
	for i := range min(len(a), len(b)) {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}
