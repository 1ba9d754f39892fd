package local

import (
	"math"
	"runtime"
	"slices"
	"sync"
)

// floats is a matrix of 32-bit floats, with biases, that becomes a matrix of integers. Positions that the model does
// not fill are zero.
// Integers lose least if all columns of a matrix, and the activations that they are multiplied with, are of similar
// size. So each column is multiplied with a number, and its activations are divided by it (SmoothQuant, α = 0.5). The
// size of activations is first estimated from the weights alone: for the results of a layer normalization from its
// weights, and for the results of a matrix from its weights and its input. Then the model embeds the texts of
// calibration.txt, and is quantized again with the observed sizes.
type floats struct {
	rows, columns int
	weights       []float32
	bias          []float32
}

func newFloats(rows, columns int) *floats {
	return &floats{rows, columns, make([]float32, rows*columns), make([]float32, rows)}
}

// spread is the estimated mean and deviation of activations, column by column.
type spread struct{ mean, deviation []float32 }

// spreadOf returns the spread of a layer normalization's results.
func spreadOf(n layerNorm) spread { return spread{n.bias, n.weight} }

// through returns the spread of the matrix's results for activations with the spread x.
func (f *floats) through(x spread) spread {
	result := spread{make([]float32, f.rows), make([]float32, f.rows)}
	for row := range f.rows {
		mean, square := float64(f.bias[row]), 0.0
		for i, w := range f.weights[row*f.columns:][:f.columns] {
			if i < len(x.mean) {
				mean += float64(float64(w) * float64(x.mean[i]))
				deviation := float64(w) * float64(x.deviation[i])
				square += float64(deviation * deviation)
			}
		}
		result.mean[row], result.deviation[row] = float32(mean), float32(math.Sqrt(square))
	}
	return result
}

// part returns the spread of some columns.
func (s spread) part(from, to int) spread { return spread{s.mean[from:to], s.deviation[from:to]} }

// Most deviations from the mean that nearly all activations stay within.
const (
	ofNorm      = 4 // results of a layer normalization
	ofAttention = 2 // means of several values
)

// largest returns the estimated largest activation of each column.
func (s spread) largest(deviations float32) []float32 {
	largest := make([]float32, len(s.mean))
	for i := range largest {
		largest[i] = abs(s.mean[i]) + float32(deviations*abs(s.deviation[i]))
	}
	return largest
}

// activated returns the largest activations after the activation function.
func (s spread) activated() []float32 {
	const leastGELU = 0.17
	largest := make([]float32, len(s.mean))
	for i := range largest {
		largest[i] = max(leastGELU, s.mean[i]+float32(ofNorm*abs(s.deviation[i])))
	}
	return largest
}

func abs(x float32) float32 { return max(x, -x) }

// matrix returns the matrix in 8-bit integers. largest are the largest activations, for smoothing. It changes the
// weights of f. A rough matrix takes less time and is less exact.
func (f *floats) matrix(largest []float32, rough bool) matrix {
	m := matrix{rows: f.rows, columns: f.columns, panels: make([]byte, f.rows*f.columns),
		scale: make([]float32, f.rows), bias: f.bias, sum: make([]int32, f.rows), smooth: f.smooth(largest)}
	f.panels(func(panel int) {
		for i := range panelRows {
			row := panel*panelRows + i
			values := f.weights[row*f.columns:][:f.columns]
			scale := rowScale(values, rough)
			m.scale[row] = scale
			for column, v := range values {
				b := rounded(v, scale)
				m.sum[row] += int32(b)
				m.panels[panel*panelRows*f.columns+column/4*4*panelRows+4*i+column%4] = byte(b) //nolint:gosec // its bits
			}
		}
	})
	return m
}

// panels calls do for each panel of rows, on all processors.
func (f *floats) panels(do func(panel int)) {
	var group sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for worker := range workers {
		group.Go(func() {
			for panel := worker; panel < f.rows/panelRows; panel += workers {
				do(panel)
			}
		})
	}
	group.Wait()
}

// smooth multiplies each column with a power of 2^½, and returns the factors for its activations.
func (f *floats) smooth(activations []float32) []float32 {
	weights := make([]float32, f.columns)
	for i, v := range f.weights {
		column := i % f.columns
		weights[column] = max(weights[column], abs(v))
	}
	factors := make([]float32, f.columns)
	for i := range factors {
		factors[i] = 1
		if i < len(activations) && weights[i] > 0 {
			factors[i] = rootOfPower(max(weights[i], 1e-5) / max(activations[i], 1e-5))
		}
	}
	for i := range f.weights {
		f.weights[i] /= factors[i%f.columns]
	}
	return factors
}

// rootOfPower returns the power of 2^½ that is nearest to the root of x. It is the same on every processor.
func rootOfPower(x float32) float32 {
	fraction, exponent := math.Frexp(float64(x)) // the fraction is from ½ to 1
	if fraction < math.Sqrt2/2 {
		exponent--
	}
	root := math.Ldexp(1, exponent>>1)
	if exponent&1 == 1 {
		root *= math.Sqrt2
	}
	return float32(root)
}

// rowScale returns the scale with the smallest squared error. A scale that is too small for the largest value cuts that
// value, but is finer for the others. If rough, it returns the scale of the largest value.
func rowScale(values []float32, rough bool) float32 {
	var largest float32
	for _, v := range values {
		largest = max(largest, abs(v))
	}
	if largest < math.SmallestNonzeroFloat32*(1<<40) {
		return 1
	}
	if rough {
		return largest / 127
	}
	best, least := float32(0), float32(math.Inf(1))
	for step := range 13 {
		scale := largest / 127 * (1 - float32(float32(step)/32))
		if sum := lost(values, scale, least); sum < least {
			best, least = scale, sum
		}
	}
	return best
}

// lost returns the squared error of values as integers. It stops once the error exceeds most.
func lost(values []float32, scale, most float32) float32 {
	var sum float32
	inverse := 1 / scale
	for part := range slices.Chunk(values, 64) {
		for _, v := range part {
			near := float32(v*inverse) + roundMagic - roundMagic
			d := v - float32(max(-127, min(127, near))*scale)
			sum += float32(d * d)
		}
		if sum > most {
			return sum
		}
	}
	return sum
}

// rounded returns v in units of scale, from -127 to 127.
func rounded(v, scale float32) int8 {
	return int8(max(-127, min(127, float32(v*(1/scale))+roundMagic-roundMagic)))
}

// quantizeRow appends the integers of a row, and returns their scale. The largest value of a row is not cut.
func quantizeRow(to []byte, row []float32) ([]byte, float32) {
	var largest float32
	for _, v := range row {
		largest = max(largest, abs(v))
	}
	if largest < math.SmallestNonzeroFloat32*(1<<40) {
		return append(to, make([]byte, len(row))...), 0
	}
	scale := largest / 127
	for _, v := range row {
		to = append(to, byte(rounded(v, scale))) //nolint:gosec // its bits
	}
	return to, scale
}
