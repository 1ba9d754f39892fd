package local

import (
	"crypto/sha256"
	_ "embed" // the weights
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

//go:generate sh -c "cd ../../tools && go run ./encoderweights -out ../embed/local $MINILM"

// weights is written by tools/encoderweights.
//
//go:embed weights.safetensors
var weights []byte

// The model's shape.
const (
	hidden       = 384
	intermediate = 1536
	layers       = 6
	heads        = 12
	headSize     = hidden / heads
	positions    = 256
)

// model is the weights as they are read. Matrices stay in the embedded file.
type model struct {
	pieces    wordPieces
	words     []byte
	wordScale []float32
	positions []float32
	norm      layerNorm
	layers    [layers]layer
	revision  string
}

type layer struct {
	attend       matrix // the queries, keys and values of all heads
	attended     matrix
	attendedNorm layerNorm
	up, down     matrix
	downNorm     layerNorm
}

// matrix is rows of 8-bit integers in panels of 16 rows: first four columns of each row, then the next four. A row's
// scale gives the weights of the model. The sum of a row's integers corrects for the zero point of activations.
// Activations are multiplied with smooth, column by column, before they become integers.
type matrix struct {
	rows, columns int
	panels        []byte
	scale, bias   []float32
	sum           []int32
	smooth        []float32
}

// layerNorm is a layer normalization.
type layerNorm struct{ weight, bias []float32 }

// pooling names how vectors of word pieces become one; it is part of the revision.
const pooling = "mean of windows of 254"

func newModel(weights []byte, vocabulary string) (*model, error) {
	read, err := newReader(weights)
	if err != nil {
		return nil, fmt.Errorf("weights of %s: %w", Model, err)
	}
	m := &model{
		words:     read.bytes("words"),
		wordScale: read.floats("words.scale"),
		positions: read.floats("positions"),
		norm:      read.norm("norm"),
	}
	for i := range m.layers {
		of := fmt.Sprintf("layer.%d.", i)
		m.layers[i] = layer{
			attend:       read.matrix(of + "attend"),
			attended:     read.matrix(of + "attended"),
			attendedNorm: read.norm(of + "attended.norm"),
			up:           read.matrix(of + "up"),
			down:         read.matrix(of + "down"),
			downNorm:     read.norm(of + "down.norm"),
		}
		m.layers[i].attend.scaleQueries()
	}
	if read.err != nil {
		return nil, fmt.Errorf("weights of %s: %w", Model, read.err)
	}
	m.pieces = newWordPieces(vocabulary)
	m.revision = revision(weights, vocabulary)
	return m, nil
}

// scaleQueries scales the queries, the first rows, such that a power of two of their product with a key is what the
// softmax needs.
func (m *matrix) scaleQueries() {
	scale := float32(math.Log2E / math.Sqrt(headSize))
	for i := range min(hidden, len(m.scale)) {
		m.scale[i] *= scale
		m.bias[i] *= scale
	}
}

func revision(weights []byte, vocabulary string) string {
	sum := sha256.New()
	for _, part := range [][]byte{weights, []byte(vocabulary), []byte(pooling)} {
		of := sha256.Sum256(part)
		sum.Write(of[:])
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// reader reads tensors of a safetensors file. It keeps its first error.
type reader struct {
	header map[string]entry
	data   []byte
	err    error
}

type entry struct {
	Type    string `json:"dtype"`
	Shape   []int  `json:"shape"`
	Offsets [2]int `json:"data_offsets"`
}

func newReader(file []byte) (*reader, error) {
	if len(file) < 8 || binary.LittleEndian.Uint64(file) > uint64(len(file))-8 {
		return nil, errors.New("the file is not in the format safetensors")
	}
	size := int(binary.LittleEndian.Uint64(file)) //nolint:gosec // it is at most the file's length
	r := &reader{data: file[8+size:]}
	return r, json.Unmarshal(file[8:8+size], &r.header)
}

func (r *reader) tensor(name, kind string, size int) ([]byte, []int) {
	e, found := r.header[name]
	count := size
	for _, n := range e.Shape {
		count *= n
	}
	switch from, to := e.Offsets[0], e.Offsets[1]; {
	case r.err != nil:
	case !found || e.Type != kind:
		r.err = fmt.Errorf("no tensor %s of type %s", name, kind)
	case from < 0 || to < from || to > len(r.data) || to-from != count:
		r.err = fmt.Errorf("tensor %s does not lie in the file", name)
	default:
		return r.data[from:to:to], e.Shape
	}
	return nil, nil
}

func (r *reader) bytes(name string) []byte {
	data, _ := r.tensor(name, "I8", 1)
	return data
}

func (r *reader) floats(name string) []float32 {
	data, _ := r.tensor(name, "F32", 4)
	values := make([]float32, len(data)/4)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return values
}

func (r *reader) ints(name string) []int32 {
	data, _ := r.tensor(name, "I32", 4)
	values := make([]int32, len(data)/4)
	for i := range values {
		values[i] = int32(binary.LittleEndian.Uint32(data[4*i:])) //nolint:gosec // it is stored so
	}
	return values
}

func (r *reader) norm(name string) layerNorm {
	return layerNorm{r.floats(name + ".weight"), r.floats(name + ".bias")}
}

func (r *reader) matrix(name string) matrix {
	data, shape := r.tensor(name, "I8", 1)
	if len(shape) != 4 {
		return matrix{}
	}
	return matrix{
		rows: shape[0] * shape[2], columns: shape[1] * shape[3], panels: data,
		scale: r.floats(name + ".scale"), bias: r.floats(name + ".bias"), sum: r.ints(name + ".sum"),
		smooth: r.floats(name + ".smooth"),
	}
}
