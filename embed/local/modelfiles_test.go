package local_test

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// modelFiles is a model before it is written to a directory: settings files and tensors.
type modelFiles struct {
	json    map[string]any // file name → content
	raw     map[string][]byte
	tensors map[string]tensor
	draw    *rand.Rand
}

type tensor struct {
	kind   string
	shape  []int
	values []float32
}

func newModelFiles(t *testing.T, tokenizer string) *modelFiles {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata/tokenizers", tokenizer+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return &modelFiles{json: map[string]any{}, raw: map[string][]byte{"tokenizer.json": raw}, tensors: map[string]tensor{},
		draw: rand.New(rand.NewPCG(43, 2))}
}

// add draws a tensor with values around a mean.
func (m *modelFiles) add(kind, name string, mean, deviation float64, shape ...int) {
	count := 1
	for _, n := range shape {
		count *= n
	}
	values := make([]float32, count)
	for i := range values {
		values[i] = float32(mean + float64(deviation*m.draw.NormFloat64()))
	}
	m.tensors[name] = tensor{kind, shape, values}
}

// encoder is the properties of a transformer that tests vary.
type encoder struct {
	kind, tokenizer, prefix, activation string
	hidden, heads, layers, inner        int
	epsilon                             float64
	cls                                 bool
	prompts                             map[string]string
	window                              int // 0 if the model does not say
	classifier                          bool
}

// words is how many pieces a model in the tests has: more than any of the tokenizers.
const words = 1250

// files returns a model with random weights.
func (e encoder) files(t *testing.T) *modelFiles {
	t.Helper()
	m := newModelFiles(t, e.tokenizer)
	modelType, positions, kinds := "bert", 64, 2
	if strings.HasPrefix(e.tokenizer, "unigram") {
		modelType, positions, kinds = "xlm-roberta", 66, 1
	}
	config := map[string]any{"model_type": modelType, "hidden_size": e.hidden, "num_hidden_layers": e.layers,
		"num_attention_heads": e.heads, "intermediate_size": e.inner, "hidden_act": e.activation,
		"layer_norm_eps": e.epsilon, "max_position_embeddings": positions, "type_vocab_size": kinds, "pad_token_id": 1,
		"vocab_size": words}
	m.json["config.json"] = config
	m.json["1_Pooling/config.json"] = map[string]any{"word_embedding_dimension": e.hidden,
		"pooling_mode_cls_token": e.cls, "pooling_mode_mean_tokens": !e.cls}
	if e.prompts != nil {
		m.json["config_sentence_transformers.json"] = map[string]any{"prompts": e.prompts}
	}
	if e.window > 0 {
		m.json["sentence_bert_config.json"] = map[string]any{"max_seq_length": e.window}
	}
	add := func(name string, mean, deviation float64, shape ...int) {
		m.add(e.kind, e.prefix+name, mean, deviation, shape...)
	}
	layerNorm := func(name string) {
		add(name+".LayerNorm.weight", 1, 0.2, e.hidden)
		add(name+".LayerNorm.bias", 0, 0.2, e.hidden)
	}
	linear := func(name string, rows, columns int) {
		add(name+".weight", 0, 1.2/math.Sqrt(float64(columns)), rows, columns)
		add(name+".bias", 0, 0.1, rows)
	}
	add("embeddings.word_embeddings.weight", 0, 0.1, words, e.hidden)
	add("embeddings.position_embeddings.weight", 0, 0.06, positions, e.hidden)
	add("embeddings.token_type_embeddings.weight", 0, 0.05, kinds, e.hidden)
	layerNorm("embeddings")
	for _, prefix := range []string{"encoder.layer.0.", "encoder.layer.1.", "encoder.layer.2."}[:e.layers] {
		linear(prefix+"attention.self.query", e.hidden, e.hidden)
		linear(prefix+"attention.self.key", e.hidden, e.hidden)
		linear(prefix+"attention.self.value", e.hidden, e.hidden)
		linear(prefix+"attention.output.dense", e.hidden, e.hidden)
		layerNorm(prefix + "attention.output")
		linear(prefix+"intermediate.dense", e.inner, e.hidden)
		linear(prefix+"output.dense", e.hidden, e.inner)
		layerNorm(prefix + "output")
	}
	if e.classifier {
		e.addClassifier(m, linear, modelType)
		config["architectures"] = []string{map[string]string{"bert": "BertForSequenceClassification",
			"xlm-roberta": "XLMRobertaForSequenceClassification"}[modelType]}
		config["id2label"] = map[string]string{"0": "LABEL_0"}
	}
	return m
}

func (e encoder) addClassifier(m *modelFiles, linear func(name string, rows, columns int), modelType string) {
	if modelType == "bert" {
		linear("pooler.dense", e.hidden, e.hidden)
		m.add(e.kind, "classifier.weight", 0, 0.3, 1, e.hidden)
		m.add(e.kind, "classifier.bias", 0.1, 0, 1)
		return
	}
	m.add(e.kind, "classifier.dense.weight", 0, 0.2, e.hidden, e.hidden)
	m.add(e.kind, "classifier.dense.bias", 0, 0.1, e.hidden)
	m.add(e.kind, "classifier.out_proj.weight", 0, 0.3, 1, e.hidden)
	m.add(e.kind, "classifier.out_proj.bias", 0.1, 0, 1)
}

// static returns a static model with random vectors.
func static(t *testing.T, kind, tokenizer string, dimensions int) *modelFiles {
	t.Helper()
	m := newModelFiles(t, tokenizer)
	m.json["config.json"] = map[string]any{"model_type": "model2vec", "architectures": []string{"StaticModel"}}
	m.add(kind, "embeddings", 0, 1, words, dimensions)
	return m
}

// write writes the model into a directory with the given name.
func (m *modelFiles) write(t *testing.T, name string) string {
	t.Helper()
	directory := filepath.Join(t.TempDir(), name)
	files := maps.Clone(m.raw)
	for name, v := range m.json {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = raw
	}
	if _, found := files["model.safetensors"]; !found {
		files["model.safetensors"] = safetensors(m.tensors)
	}
	for name, raw := range files {
		path := filepath.Join(directory, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

// safetensors returns a file with the tensors.
func safetensors(tensors map[string]tensor) []byte {
	header, data := map[string]any{"__metadata__": map[string]string{"format": "pt"}}, []byte(nil)
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		written, from := tensors[name], len(data)
		for _, v := range written.values {
			data = appendValue(data, written.kind, v)
		}
		header[name] = map[string]any{"dtype": written.kind, "shape": written.shape, "data_offsets": []int{from, len(data)}}
	}
	return withHeader(header, data)
}

func withHeader(header map[string]any, data []byte) []byte {
	raw, err := json.Marshal(header)
	if err != nil {
		panic(err) // it has only names and numbers
	}
	return slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(raw))), raw, data)
}

func appendValue(data []byte, kind string, v float32) []byte {
	switch kind {
	case "F16":
		return binary.LittleEndian.AppendUint16(data, half(v))
	case "BF16":
		return binary.LittleEndian.AppendUint16(data, uint16(math.Float32bits(v)>>16))
	case "F64":
		return binary.LittleEndian.AppendUint64(data, math.Float64bits(float64(v)))
	case "I64":
		return binary.LittleEndian.AppendUint64(data, uint64(v))
	}
	return binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
}

// half returns a number as a 16-bit float. It cuts off bits; tiny numbers become zero.
func half(v float32) uint16 {
	bits := math.Float32bits(v)
	exponent := int(bits>>23&255) - 127 + 15
	if exponent <= 0 {
		return uint16(bits >> 31 << 15)
	}
	return uint16(bits>>31<<15) | uint16(exponent<<10) | uint16(bits>>13&1023)
}
