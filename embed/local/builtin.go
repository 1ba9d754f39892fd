package local

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // for the weights
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
)

// tools/encoderweights writes weights.
//
//go:embed weights.safetensors
var weights []byte

// builtin is the shape of the embedded model.
var builtin = shape{hidden: 384, heads: 12, layers: 6, inner: 1536, window: 256}

// builtinEpsilon is the epsilon of the embedded model's layer normalizations.
const builtinEpsilon = 1e-12

// pooledWindows names how the vectors of word pieces become one. It is part of the revision.
const pooledWindows = "mean of windows of 254"

func newBuiltin(weights []byte, vocabulary string) (*model, error) {
	read, err := newReader(weights)
	if err != nil {
		return nil, fmt.Errorf("weights of %s: %w", Model, err)
	}
	t := &transformer{
		shape:     builtin,
		words:     read.bytes("words"),
		wordScale: read.floats("words.scale"),
		positions: read.floats("positions"),
		norm:      read.norm("norm"),
		layers:    make([]layer, builtin.layers),
	}
	for i := range t.layers {
		prefix := fmt.Sprintf("layer.%d.", i)
		t.layers[i] = layer{
			attend:       read.matrix(prefix + "attend"),
			attended:     read.matrix(prefix + "attended"),
			attendedNorm: read.norm(prefix + "attended.norm"),
			up:           read.matrix(prefix + "up"),
			down:         read.matrix(prefix + "down"),
			downNorm:     read.norm(prefix + "down.norm"),
		}
		t.layers[i].attend.scaleQueries(builtin)
	}
	if read.err != nil {
		return nil, fmt.Errorf("weights of %s: %w", Model, read.err)
	}
	pieces := newWordPieces(linesOf(vocabulary), uncased)
	return &model{
		name: Model, revision: revision(weights, []byte(vocabulary), []byte(pooledWindows)), dimensions: builtin.hidden,
		tokens: pieces, begin: []int32{pieces.first["[CLS]"]}, end: []int32{pieces.first["[SEP]"]}, english: true,
		transformer: t,
	}, nil
}

// scaleQueries scales the first rows, which give the queries. The softmax can then raise 2 to the product of a query
// and a key.
func (m *matrix) scaleQueries(s shape) {
	scale := float32(math.Log2E / math.Sqrt(float64(s.headValues())))
	for i := range min(s.attended(), len(m.scale)) {
		m.scale[i] *= scale
		m.bias[i] *= scale
	}
}

func revision(parts ...[]byte) string {
	sum := sha256.New()
	for _, part := range parts {
		partSum := sha256.Sum256(part)
		sum.Write(partSum[:])
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// reader reads tensors of the embedded file. It keeps its first error.
type reader struct {
	header map[string]entry
	data   []byte
	err    error
}

func newReader(file []byte) (*reader, error) {
	t, err := newTensors(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, err
	}
	return &reader{header: t.header, data: file[t.base:]}, nil
}

func (r *reader) tensor(name, kind string) ([]byte, []int) {
	e, found := r.header[name]
	if r.err != nil {
		return nil, nil
	}
	if !found || e.Type != kind {
		r.err = fmt.Errorf("no tensor %s of type %s", name, kind)
		return nil, nil
	}
	return r.data[e.Offsets[0]:e.Offsets[1]:e.Offsets[1]], e.Shape
}

func (r *reader) bytes(name string) []byte {
	data, _ := r.tensor(name, "I8")
	return data
}

func (r *reader) floats(name string) []float32 {
	data, _ := r.tensor(name, "F32")
	values := make([]float32, len(data)/4)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return values
}

func (r *reader) ints(name string) []int32 {
	data, _ := r.tensor(name, "I32")
	values := make([]int32, len(data)/4)
	for i := range values {
		values[i] = int32(binary.LittleEndian.Uint32(data[4*i:])) //nolint:gosec // it is stored so
	}
	return values
}

func (r *reader) norm(name string) layerNorm {
	return layerNorm{r.floats(name + ".weight"), r.floats(name + ".bias"), builtinEpsilon}
}

func (r *reader) matrix(name string) matrix {
	data, shape := r.tensor(name, "I8")
	if len(shape) != 4 {
		return matrix{}
	}
	return matrix{
		rows: shape[0] * shape[2], columns: shape[1] * shape[3], panels: data,
		scale: r.floats(name + ".scale"), bias: r.floats(name + ".bias"), sum: r.ints(name + ".sum"),
		smooth: r.floats(name + ".smooth"),
	}
}
