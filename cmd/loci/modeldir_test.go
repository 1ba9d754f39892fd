package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// petModel writes a static model of 8 numbers, and returns its directory. For the model, a feline is a cat.
func petModel(t *testing.T, name string) string {
	t.Helper()
	words := strings.Fields("[UNK] cat feline sleeps my a the ledger entry late user . - pets memories " +
		"0 1 2 3 4 5 6 7 8 9 ##0 ##1 ##2 ##3 ##4 ##5 ##6 ##7 ##8 ##9")
	const dimensions = 8
	vocabulary, data := map[string]int{}, []byte(nil)
	for i, word := range words {
		vocabulary[word] = i
		for j := range dimensions {
			value := float32(0.1)
			switch {
			case (word == "cat" || word == "feline") && j == 0:
				value = 9
			case word != "cat" && word != "feline" && 1+i%(dimensions-1) == j:
				value = 1
			}
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(value))
		}
	}
	directory := filepath.Join(t.TempDir(), name)
	if err := os.Mkdir(directory, 0o755); err != nil {
		t.Fatal(err)
	}
	asJSON := func(v any) []byte {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	header := asJSON(map[string]any{"embeddings": map[string]any{"dtype": "F32", "shape": []int{len(words), dimensions},
		"data_offsets": []int{0, len(data)}}})
	for file, raw := range map[string][]byte{
		"config.json": asJSON(map[string]any{"model_type": "model2vec"}),
		"model.safetensors": append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...),
			data...),
		"tokenizer.json": asJSON(map[string]any{
			"normalizer":    map[string]any{"type": "BertNormalizer", "clean_text": true, "lowercase": true},
			"pre_tokenizer": map[string]any{"type": "BertPreTokenizer"},
			"model":         map[string]any{"type": "WordPiece", "unk_token": "[UNK]", "vocab": vocabulary},
		}),
	} {
		if err := os.WriteFile(filepath.Join(directory, file), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

func TestTheDoctorExaminesTheModelInADirectory(t *testing.T) {
	t.Parallel()
	c := serving{vectors: vectors{Dir: petModel(t, "pets"), NextDir: t.TempDir()}}
	if got := c.examineEmbeddings(t.Context()); !strings.Contains(got.Text, "the model pets gives vectors of 8 numbers") {
		t.Errorf("the model in use: got %+v", got)
	}
	got := c.examineNextEmbeddings(t.Context())
	if len(got) != 1 || !strings.Contains(got[0].Text, "is not used: config.json is missing") {
		t.Errorf("the next model, which is not there: got %+v", got)
	}
}

func TestADirectoryWithoutAModelStopsTheStart(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]vectors{
		"the model":      {Dir: t.TempDir()},
		"the next model": {Model: builtinModel, NextDir: t.TempDir()},
	} {
		_, err := (&serving{vectors: v}).embedder(t.Context(), slog.New(slog.DiscardHandler), nil)
		if _, setting := errors.AsType[settingError](err); !setting ||
			!strings.Contains(err.Error(), "is not used: config.json is missing") {
			t.Errorf("%s: got %v, want that config.json is missing", name, err)
		}
	}
}
