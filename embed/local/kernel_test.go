package local

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// These tests are inside the package, because only the package calls the functions of a kernel.

// FuzzKernels compares each kernel of this processor with the oracle, bit by bit. The slices end where the result ends,
// so that the test finds what a kernel writes beyond it.
func FuzzKernels(f *testing.F) {
	for size := range uint8(24) {
		f.Add(uint64(size), size, size%4)
	}
	f.Fuzz(func(t *testing.T, seed uint64, size, extreme uint8) {
		for _, k := range kernels() {
			d := drawer{rand.New(rand.NewPCG(seed, 0)), extreme % 4}
			for name, compare := range map[string]func(*kernel, drawer, int) string{
				"quantize": compareQuantize, "tile": compareTile, "normalize": compareNormalize, "gelu": compareGELU,
				"attention": compareAttention,
			} {
				if diff := compare(k, d, 1+int(size)); diff != "" {
					t.Errorf("%s of kernel %s, seed %d, size %d, extreme %d (-oracle +kernel):\n%s",
						name, k.name, seed, size, extreme%4, diff)
				}
			}
		}
	})
}

// TestKernelsGiveTheSameVectors compares whole vectors, bit by bit.
func TestKernelsGiveTheSameVectors(t *testing.T) {
	t.Parallel()
	e, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{"How do I reset my password?", "a", "Two texts of other lengths go through together, the second " +
		"with more than sixteen tokens."}
	vectors := func(k *kernel) [][]float32 {
		encoder := &Encoder{model: e.model, kernel: k, threads: 1, workspaces: &pool{}}
		vectors, err := encoder.Embed(context.Background(), texts)
		if err != nil {
			t.Fatal(err)
		}
		return vectors
	}
	want := vectors(oracle)
	for _, k := range kernels() {
		if diff := cmp.Diff(want, vectors(k)); diff != "" {
			t.Errorf("vectors of kernel %s (-oracle +kernel):\n%s", k.name, diff)
		}
	}
}

// drawer draws values. extreme says which extreme values are among them.
type drawer struct {
	*rand.Rand
	extreme uint8
}

// bytes returns activations.
func (d drawer) bytes(n int) []byte {
	values := make([]byte, n)
	for i := range values {
		switch {
		case d.extreme == 0 || d.extreme == 1 && d.IntN(2) == 0:
			values[i] = byte(d.Uint32())
		case d.extreme < 3:
			values[i] = []byte{0, 255, 128, 127}[d.IntN(4)]
		default:
			values[i] = 255
		}
	}
	return values
}

// weights returns bytes from -127 to 127.
func (d drawer) weights(n int) []byte {
	values := make([]byte, n)
	lowest := d.IntN(2) == 0
	for i := range values {
		w := int8(d.IntN(255) - 127)
		if d.extreme == 2 {
			w = []int8{-127, 127, 0, -1}[d.IntN(4)]
		}
		if d.extreme == 3 {
			w = 127
			if lowest {
				w = -127
			}
		}
		values[i] = byte(w)
	}
	return values
}

func (d drawer) floats(n int) []float32 {
	values := make([]float32, n)
	for i := range values {
		values[i] = float32(d.NormFloat64())
		if d.extreme > 0 && d.IntN(8) == 0 {
			values[i] *= []float32{0, 1e-20, 1e4, 300}[d.IntN(4)]
		}
	}
	return values
}

func (d drawer) ints(n, limit int) []int32 {
	values := make([]int32, n)
	for i := range values {
		values[i] = int32(d.IntN(limit))
	}
	return values
}

// stored returns activations in the form that a kernel reads.
func stored(k *kernel, values []byte) []byte {
	out := make([]byte, len(values)*k.width)
	for i, v := range values {
		out[i*k.width] = v - byte(k.shift)
	}
	return out
}

func compareQuantize(k *kernel, d drawer, size int) string {
	values, factors := d.floats(16*size), d.floats(16*size)
	got, want := make([]byte, 16*size*k.width), make([]byte, 16*size)
	scale, zero := k.quantize(got, values, factors)
	wantScale, wantZero := oracle.quantize(want, values, factors)
	return cmp.Diff([]any{wantScale, wantZero - k.shift, stored(k, want)}, []any{scale, zero, got})
}

func compareTile(k *kernel, d drawer, size int) string {
	columns, rows := 16*size, k.tilePanels*panelRows
	x, stride := d.bytes(k.tileRows*columns), rows+d.IntN(9)
	weights := d.weights(rows * columns)
	zero, sums := d.ints(k.tileRows, 256), make([]int32, rows)
	for i, w := range weights {
		sums[i/(columns*panelRows)*panelRows+i/4%panelRows] += int32(int8(w))
	}
	scale, weightScale, bias := d.floats(k.tileRows), d.floats(rows), d.floats(rows)
	got, want := make([]float32, (k.tileRows-1)*stride+rows), make([]float32, (k.tileRows-1)*stride+rows)
	t := tile{weightScale: weightScale, weightSum: sums, bias: bias, columns: columns, stride: stride}
	for row := range k.tileRows {
		for panel := range k.tilePanels {
			from := panel * panelRows
			one := t
			one.x, one.scale, one.zero = x[row*columns:], scale[row:], zero[row:]
			one.weights, one.out = weights[from*columns:], want[row*stride+from:]
			one.weightScale, one.weightSum, one.bias = weightScale[from:], sums[from:], bias[from:]
			oracle.tile(&one)
		}
	}
	shifted := slices.Clone(zero)
	for i := range shifted {
		shifted[i] -= k.shift
	}
	t.x, t.weights, t.out, t.scale, t.zero = stored(k, x), weights, got, scale, shifted
	k.tile(&t)
	return cmp.Diff(want, got)
}

func compareNormalize(k *kernel, d drawer, size int) string {
	row, add := d.floats(16*size), d.floats(16*size)
	l := &layerNorm{weight: d.floats(16 * size), bias: d.floats(16 * size), epsilon: d.Float32() / 1e4}
	want := slices.Clone(row)
	oracle.normalize(want, add, l)
	k.normalize(row, add, l)
	return cmp.Diff(want, row)
}

func compareGELU(k *kernel, d drawer, size int) string {
	got := d.floats(16 * size)
	want := slices.Clone(got)
	oracle.gelu(want)
	k.gelu(got)
	return cmp.Diff(want, got)
}

func compareAttention(k *kernel, d drawer, size int) string {
	padded := (size + 15) / 16 * 16
	a := attention{
		queries: d.floats((k.queries-1)*attendStride + headPart), keys: d.floats(headPart * padded),
		values: d.floats(size * headPart), weights: make([]float32, k.queries*padded),
		sums: make([]float32, k.queries), out: make([]float32, (k.queries-1)*attendedStride+headPart),
		tokens: size, padded: padded,
	}
	want := a
	want.weights, want.sums, want.out = slices.Clone(a.weights), slices.Clone(a.sums), slices.Clone(a.out)
	var diff string
	for _, step := range []struct {
		name       string
		of, oracle func(*attention)
	}{{"score", k.score, oracle.score}, {"softmax", k.softmax, oracle.softmax}, {"weigh", k.weigh, oracle.weigh}} {
		step.of(&a)
		for row := range k.queries {
			one := want
			one.queries, one.weights = want.queries[row*attendStride:], want.weights[row*padded:]
			one.sums, one.out = want.sums[row:], want.out[row*attendedStride:]
			step.oracle(&one)
		}
		all := [][]float32{want.weights, want.sums, want.out}
		if found := cmp.Diff(all, [][]float32{a.weights, a.sums, a.out}); found != "" {
			diff += step.name + "\n" + found
		}
	}
	return diff
}

func TestGELUIsNearTheExactOne(t *testing.T) {
	t.Parallel()
	for x := float32(-10); x < 10; x += 1. / 64 {
		got := []float32{x}
		oracle.gelu(got)
		want := float64(x) * (1 + math.Erf(float64(x)/math.Sqrt2)) / 2
		if math.Abs(float64(got[0])-want) > 1e-4 {
			t.Errorf("gelu(%g) = %g, want %g", x, got[0], want)
		}
	}
}

func TestPowersAreNearTheExactOnes(t *testing.T) {
	t.Parallel()
	for x := float32(leastExponent); x <= 0; x += 1. / 64 {
		if got, want := float64(exp2(x)), math.Exp2(float64(x)); math.Abs(got/want-1) > 1e-5 {
			t.Errorf("exp2(%g) = %g, want %g", x, got, want)
		}
	}
}
