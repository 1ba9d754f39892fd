// Package local embeds texts with sentence encoders that run in this process: all-MiniLM-L6-v2, an English model of
// 384 dimensions, with its weights in the program, or a model in a directory of the operator's. It needs no endpoint,
// no key and no cgo.
//
// [Encoder.Embed] takes a text to word pieces, the word pieces to a vector for each, and pools these. The weights are
// 8-bit integers, and so are the activations that meet them; what a processor computes fast is in one table of
// functions, with an oracle in plain Go that says what they return. All of them return the same bits, so vectors of one
// processor are searched on another.
//
// [OpenDirectory] reads a model as sentence-transformers stores it: its tokenizer and its weights, which become 8-bit
// integers. A static model is a table of vectors.
//
// [Texts] and [Queries] are the embedders of a server: what embeds in the background gives way to what somebody waits
// for.
//
// Each file uses those that are named before it:
//   - texts to pieces: wordpiece.go charsmap.go unigram.go normalizer.go
//   - weights, and how they lie in memory: safetensors.go model.go builtin.go
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

// Model is the name of the embedded model, and Dimensions how many numbers its vectors have.
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

// model is what an encoder reads: a transformer or a table.
type model struct {
	name, revision string
	dimensions     int
	tokens         tokenizer
	begin, end     []int32 // pieces around each text
	english        bool    // the model knows no other language
	pooling        pooling
	prompts        struct{ query, document prompt }
	*transformer
	*table
}

// tokenizer cuts texts into pieces of a vocabulary.
type tokenizer interface{ cut(text string) text }

// prompt is a text before each text, and its pieces.
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

// Open returns the encoder of the embedded model, which embeds on one thread. The first call reads the weights; all
// encoders share them.
func Open() (*Encoder, error) { return embedded() }

// WithThreads returns an encoder with the same weights, each call of which embeds on up to n threads.
func (e *Encoder) WithThreads(n int) *Encoder {
	threads := *e
	threads.threads = max(1, n)
	return &threads
}

// with returns an encoder that sets a prompt before each text.
func (e *Encoder) with(p prompt) *Encoder {
	prompted := *e
	prompted.prompt = p
	return &prompted
}

// Embed returns a vector of L2 norm 1 for each text, in their order, and nil for a text that does not suit the model. A
// text of more pieces than the model takes is embedded in windows, and its vector is their mean. Embed ends early, with
// the context's error, if the context is done.
func (e *Encoder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	return e.embed(ctx, texts)
}

// Name returns the name of the model, that of its directory if it has one.
func (e *Encoder) Name() string { return e.name }

// Dimensions returns how many numbers the vectors have.
func (e *Encoder) Dimensions() int { return e.dimensions }

// Static reports whether the model is a table of vectors, which needs no kernel.
func (e *Encoder) Static() bool { return e.table != nil }

// Bytes returns how much memory the weights of a model in a directory take.
func (e *Encoder) Bytes() int64 {
	if e.table != nil {
		return int64(len(e.rows)) + 8*int64(len(e.scale))
	}
	return int64(len(e.words)) + 4*int64(len(e.wordScale)) + int64(e.layerWeights())
}

// Work returns how much there is to compute for a text, where 1 is what the embedded model takes.
func (e *Encoder) Work() float64 {
	if e.table != nil {
		return 0.01
	}
	return float64(e.layerWeights()) / float64(builtinLayerWeights)
}

// builtinLayerWeights is how many weights the layers of the embedded model have.
const builtinLayerWeights = 6 * (4*384*384 + 2*384*1536)

// layerWeights returns how many weights the layers have, each of which is multiplied once for each piece of a text.
func (t *transformer) layerWeights() (n int) {
	for _, l := range t.layers {
		for _, m := range []matrix{l.attend, l.attended, l.up, l.down} {
			n += len(m.panels)
		}
	}
	return n
}

// Kernel returns what the encoder computes with: "avx512vnni", "avx2", "neondot", "neon", or "go", which is much too
// slow to serve.
func (e *Encoder) Kernel() string { return e.kernel.name }

// Revision identifies the vectors: it changes with the weights, the word pieces and the pooling.
func (e *Encoder) Revision() string { return e.revision }

// Fast reports whether this processor has a kernel that is fast enough to serve.
func Fast() bool { return best().name != oracle.name }

// cut returns the pieces of a text as they are behind the prompt.
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

// Suits reports whether the model can tell what a text means. The embedded model can if most of the text's letters are
// Latin, and its words do not fall apart into single letters; other models can if they know most of its pieces.
func (e *Encoder) Suits(text string) bool { return e.unsuited(e.cut(text)) == "" }

// unsuited says why a text does not suit the model, and nothing if it does.
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
