package main

import (
	_ "embed"
	"fmt"
	"math"
	"strings"
)

// calibration holds texts, one on each line.
//
//go:embed calibration.txt
var calibration string

const (
	hidden   = 384
	heads    = 12
	headSize = hidden / heads
)

// calibrate returns, by a matrix's name, the largest activations that each of its columns reads. It runs the model in
// 32-bit floats.
func calibrate(model map[string]tensor, vocab string) map[string][]float32 {
	pieces := map[string]int{}
	for i, piece := range strings.Split(vocab, "\n") {
		pieces[piece] = i
	}
	r := &run{model: model, largest: map[string][]float32{}}
	for line := range strings.Lines(calibration) {
		r.text(cut(pieces, strings.ToLower(strings.TrimSpace(line))))
	}
	return r.largest
}

// cut splits an ASCII text into pieces of the vocabulary.
func cut(pieces map[string]int, text string) []int {
	ids := []int{pieces["[CLS]"]}
	for _, word := range words(text) {
		for prefix := ""; word != ""; prefix = "##" {
			size := len(word)
			for ; size > 1 && pieces[prefix+word[:size]] == 0; size-- {
			}
			ids = append(ids, pieces[prefix+word[:size]])
			word = word[size:]
		}
	}
	return append(ids[:min(len(ids), positions-1)], pieces["[SEP]"])
}

func words(text string) []string {
	var spaced strings.Builder
	for _, r := range text {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			spaced.WriteRune(r)
		} else {
			spaced.WriteString(" " + string(r) + " ")
		}
	}
	return strings.Fields(spaced.String())
}

type run struct {
	model   map[string]tensor
	largest map[string][]float32
}

// text runs a text through the model.
func (r *run) text(ids []int) {
	x := make([][]float32, len(ids))
	for i, id := range ids {
		x[i] = make([]float32, hidden)
		for j := range x[i] {
			x[i][j] = r.weight("embeddings.word_embeddings")[id*hidden+j] +
				r.weight("embeddings.position_embeddings")[i*hidden+j] + r.weight("embeddings.token_type_embeddings")[j]
		}
	}
	r.normalize(x, x, "embeddings.LayerNorm")
	for layer := range layers {
		name := fmt.Sprintf("encoder.layer.%d.", layer)
		self := name + "attention.self."
		context := attend(r.linear(x, self+"query"), r.linear(x, self+"key"), r.linear(x, self+"value"))
		r.normalize(x, r.linear(context, name+"attention.output.dense"), name+"attention.output.LayerNorm")
		wide := r.linear(x, name+"intermediate.dense")
		for _, row := range wide {
			for i, v := range row {
				row[i] = float32(float64(v) * (1 + math.Erf(float64(v)/math.Sqrt2)) / 2)
			}
		}
		r.normalize(x, r.linear(wide, name+"output.dense"), name+"output.LayerNorm")
	}
}

func (r *run) weight(name string) []float32 { return r.model[name+".weight"].values }

// linear multiplies rows by a matrix, and records the largest value in each column of the rows.
func (r *run) linear(x [][]float32, name string) [][]float32 {
	weights, bias := r.weight(name), r.model[name+".bias"].values
	largest := r.largest[name]
	if largest == nil {
		largest = make([]float32, len(x[0]))
		r.largest[name] = largest
	}
	out := make([][]float32, len(x))
	for i, row := range x {
		for j, v := range row {
			largest[j] = max(largest[j], float32(math.Abs(float64(v))))
		}
		out[i] = make([]float32, len(bias))
		for j := range out[i] {
			out[i][j] = bias[j] + dot(row, weights[j*len(row):])
		}
	}
	return out
}

// attend returns what attention passes from all tokens to each token.
func attend(queries, keys, values [][]float32) [][]float32 {
	out := make([][]float32, len(queries))
	for i, query := range queries {
		out[i] = make([]float32, hidden)
		for head := 0; head < hidden; head += headSize {
			shares := make([]float32, len(keys))
			var sum float32
			for j, key := range keys {
				score := dot(query[head:head+headSize], key[head:])
				shares[j] = float32(math.Exp(float64(score) / math.Sqrt(headSize)))
				sum += shares[j]
			}
			for j, value := range values {
				for k := head; k < head+headSize; k++ {
					out[i][k] += shares[j] / sum * value[k]
				}
			}
		}
	}
	return out
}

// normalize normalizes the rows of x after adding the rows of add; it adds nothing if both are the same table.
func (r *run) normalize(x, add [][]float32, name string) {
	weights, bias := r.weight(name), r.model[name+".bias"].values
	for i, row := range x {
		if &row[0] != &add[i][0] {
			for j, v := range add[i] {
				row[j] += v
			}
		}
		var mean, variance float32
		for _, v := range row {
			mean += v / hidden
		}
		for _, v := range row {
			variance += (v - mean) * (v - mean) / hidden
		}
		for j, v := range row {
			row[j] = (v-mean)/float32(math.Sqrt(float64(variance+1e-12)))*weights[j] + bias[j]
		}
	}
}

func dot(a, b []float32) float32 {
	var sum float32
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}
