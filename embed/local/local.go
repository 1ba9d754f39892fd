// Package local embeds texts with a sentence encoder that runs in this process: all-MiniLM-L6-v2, an English model of
// 384 dimensions, with its weights in the program. It needs no endpoint, no key and no cgo.
//
// [Encoder.Embed] takes a text to word pieces (wordpiece.go), the word pieces to a vector for each (forward.go), and
// pools these (window.go). The weights are 8-bit integers, and so are the activations that meet them; what a processor
// computes fast is in one table of functions (kernel.go), with an oracle in plain Go that says what they return
// (oracle.go). All of them return the same bits, so vectors of one processor are searched on another.
//
// [Texts] and [Queries] are the embedders of a server: what embeds in the background gives way to what somebody waits
// for.
package local

import (
	"context"
	"sync"
)

// Model is the name of the model, and Dimensions how many numbers its vectors have.
const (
	Model      = "all-MiniLM-L6-v2"
	Dimensions = hidden
)

// Encoder embeds texts. It is safe for concurrent use.
type Encoder struct {
	*model
	kernel     *kernel
	workspaces *pool
	threads    int
}

var embedded = sync.OnceValues(func() (*Encoder, error) {
	m, err := newModel(weights, vocabulary)
	return &Encoder{model: m, kernel: best(), workspaces: &pool{}, threads: 1}, err
})

// Open returns the encoder of the embedded model, which embeds on one thread. The first call reads the weights; all
// encoders share them.
func Open() (*Encoder, error) { return embedded() }

// WithThreads returns an encoder with the same weights, each call of which embeds on up to n threads.
func (e *Encoder) WithThreads(n int) *Encoder {
	threads := *e
	threads.threads = max(1, n)
	return &threads
}

// Embed returns a vector of L2 norm 1 for each text, in their order, and nil for a text that does not suit the model. A
// text of more than 254 word pieces is embedded in windows, and its vector is their mean. Embed ends early, with the
// context's error, if the context is done.
func (e *Encoder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	return e.embed(ctx, texts)
}

// Kernel returns what the encoder computes with: "avx512vnni", "avx2", "neondot", "neon", or "go", which is much too
// slow to serve.
func (e *Encoder) Kernel() string { return e.kernel.name }

// Revision identifies the vectors: it changes with the weights, the word pieces and the pooling.
func (e *Encoder) Revision() string { return e.revision }

// Fast reports whether this processor has a kernel that is fast enough to serve.
func Fast() bool { return best().name != oracle.name }
