// Package local embeds texts with sentence encoders that run in this process: all-MiniLM-L6-v2, an English model with
// 384 dimensions and its weights in the program, or a model in a directory of the operator. It needs no endpoint, no
// key and no cgo.
// [Encoder.Embed] cuts a text into word pieces, computes a vector for each, and pools them. The weights are 8-bit
// integers, and so are the activations that they are multiplied with. The functions for fast processors are in one
// table. An oracle in plain Go defines their results, and all of them return the same bits. So vectors from one
// processor can be searched on another.
// [OpenDirectory] reads a model in the format of sentence-transformers: its tokenizer, and its weights, which become
// 8-bit integers. A static model is a table of vectors.
// [Texts] and [Queries] are the embedders of a server. Texts works in the background, and gives way to work that
// somebody waits for.
// Each file uses only the files named before it:
//   - texts to pieces: wordpiece.go charsmap.go unigram.go normalizer.go
//   - weights, and their layout in memory: safetensors.go model.go builtin.go
//   - what a processor computes: oracle.go kernel.go assembly.go kernel_amd64.go kernel_arm64.go kernel_other.go
//   - passes through a model: window.go forward.go local.go
//   - models in directories: directory.go tokenizerfile.go quantize.go bert.go table.go
//   - the embedders and the reranker of a server: gate.go priority_linux.go priority_other.go embedder.go reranker.go
package local

import (
	"context"
	"slices"
	"sync"
)

// Model is the name of the embedded model, and Dimensions the number of values in its vectors.
const (
	Model      = "all-MiniLM-L6-v2"
	Dimensions = 384
)

// Encoder embeds texts. It is safe for concurrent use.
type Encoder struct {
	*model
	prompt     prompt
	kernel     *kernel
	workspaces *pool
	threads    int
}

// model is what an encoder reads from files: a transformer or a table.
type model struct {
	name, revision string
	dimensions     int
	tokens         tokenizer
	begin, end     []int32 // pieces before and after each text
	english        bool    // the model knows only English
	pooling        pooling
	prompts        struct{ query, document prompt }
	*transformer
	*table
}

// tokenizer cuts texts into pieces of a vocabulary.
type tokenizer interface{ cut(text string) text }

// prompt is a text that precedes each text, and its pieces.
type prompt struct {
	text   string
	pieces []int32
}

var embedded = sync.OnceValues(func() (*Encoder, error) {
	m, err := newBuiltin(weights, vocabulary)
	return newEncoder(m), err
})

func newEncoder(m *model) *Encoder {
	return &Encoder{model: m, kernel: best(), workspaces: &pool{}, threads: 1}
}

// Open returns the encoder of the embedded model. It embeds on one thread. The first call reads the weights; all
// encoders share them.
func Open() (*Encoder, error) { return embedded() }

// WithThreads returns an encoder with the same weights. Each call of it embeds on up to n threads.
func (e *Encoder) WithThreads(n int) *Encoder {
	threads := *e
	threads.threads = max(1, n)
	return &threads
}

// with returns an encoder that puts a prompt before each text.
func (e *Encoder) with(p prompt) *Encoder {
	prompted := *e
	prompted.prompt = p
	return &prompted
}

// Embed returns a vector of L2 norm 1 for each text, in their order, or nil for a text that does not suit the model. A
// text with more pieces than the model takes is embedded in windows, and gets the mean of their vectors. Embed ends
// early, with the context's error, if the context is done.
func (e *Encoder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	return e.embed(ctx, texts)
}

// Name returns the name of the model; for a model in a directory, the directory's name.
func (e *Encoder) Name() string { return e.name }

// Dimensions returns the number of values in a vector.
func (e *Encoder) Dimensions() int { return e.dimensions }

// Static reports whether the model is a table of vectors. Such a model needs no kernel.
func (e *Encoder) Static() bool { return e.table != nil }

// Bytes returns how much memory the weights of a model in a directory take.
func (e *Encoder) Bytes() int64 {
	if e.table != nil {
		return int64(len(e.rows)) + 8*int64(len(e.scale))
	}
	return int64(len(e.words)) + 4*int64(len(e.wordScale)) + int64(e.layerWeights())
}

// Work returns the cost of a text, relative to the embedded model.
func (e *Encoder) Work() float64 {
	if e.table != nil {
		return 0.01
	}
	return float64(e.layerWeights()) / float64(builtinLayerWeights)
}

// builtinLayerWeights is how many weights the layers of the embedded model have.
const builtinLayerWeights = 6 * (4*384*384 + 2*384*1536)

// layerWeights returns how many weights the layers have. Each is multiplied once for each piece of a text.
func (t *transformer) layerWeights() (n int) {
	for _, l := range t.layers {
		for _, m := range []matrix{l.attend, l.attended, l.up, l.down} {
			n += len(m.panels)
		}
	}
	return n
}

// Kernel returns the name of the encoder's kernel: "avx512vnni", "avx2", "neondot", "neon", or "go", which is much too
// slow for a server.
func (e *Encoder) Kernel() string { return e.kernel.name }

// Revision identifies the vectors: it changes with the weights, the word pieces and the pooling.
func (e *Encoder) Revision() string { return e.revision }

// Fast reports whether this processor has a kernel that is fast enough for a server.
func Fast() bool { return best().name != oracle.name }

// cut returns the pieces that a text has after the prompt.
func (e *Encoder) cut(s string) text {
	if e.prompt.text != "" {
		t := e.tokens.cut(e.prompt.text + s)
		if before := e.prompt.pieces; len(t.pieces) > len(before) && slices.Equal(t.pieces[:len(before)], before) {
			t.pieces = t.pieces[len(before):]
			return t
		}
	}
	return e.tokens.cut(s)
}

// Suits reports whether the model can understand a text. The embedded model can if most of the text's letters are Latin
// and its words do not fall apart into single letters. Other models can if they know most of its pieces.
func (e *Encoder) Suits(text string) bool { return e.unsuited(e.cut(text)) == "" }

// unsuited says why a text does not suit the model; "" if it does.
func (e *Encoder) unsuited(t text) string {
	switch {
	case !e.english && 2*t.unknown >= len(t.pieces):
		return "the model knows too few of its words"
	case !e.english:
		return ""
	case t.latin+t.others == 0:
		return "it has no letters"
	case t.latin <= t.others:
		return "most of its letters are not Latin"
	case t.words < 2*t.apart:
		return "its words fall apart into single letters"
	}
	return ""
}
