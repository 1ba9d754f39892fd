package local

import "math"

// oracle is the kernel in plain Go. Each product and each sum is rounded, or both together in fma. A conversion to
// float32 keeps the compiler from joining operations.
var oracle = &kernel{
	name: "go", tileRows: 1, tilePanels: 1, width: 1, queries: 1,
	quantize: quantize, tile: multiply, normalize: normalize, gelu: gelu,
	score: score, softmax: softmax, weigh: weigh,
}

// quantize maps the range from the least to the greatest value to the integers 0 to 255, with 0.0 at one of them.
func quantize(to []byte, values, factors []float32) (scale float32, zero int32) {
	var least, largest float32
	for i, v := range values {
		least, largest = min(least, v*factors[i]), max(largest, v*factors[i])
	}
	span := max(largest-least, math.SmallestNonzeroFloat32*(1<<40))
	inverse := 255 / span
	zero = int32(round(float32(-least * inverse)))
	for i, v := range values {
		to[i] = byte(max(0, min(255, int32(round(float32(v*factors[i])*inverse))+zero)))
	}
	return span / 255, zero
}

// round returns the nearest integer; of two, the even one.
func round(x float32) float32 { return float32(math.RoundToEven(float64(x))) }

// multiply adds up integers, so their order does not matter. In a panel, the columns 4·i to 4·i+3 of all rows begin at
// byte i·64.
func multiply(t *tile) {
	var sums [panelRows]int32
	for column := 0; column < t.columns; column += 4 {
		x := t.x[column:][:4]
		weights := t.weights[column*panelRows:][:4*panelRows]
		for row := range sums {
			w := weights[4*row:][:4]
			sums[row] += product(x[0], w[0]) + product(x[1], w[1]) + product(x[2], w[2]) + product(x[3], w[3])
		}
	}
	for row, sum := range sums {
		sum -= t.zero[0] * t.weightSum[row]
		t.out[row] = fma(float32(sum), float32(t.scale[0]*t.weightScale[row]), t.bias[row])
	}
}

// product multiplies an activation with a weight, which has a sign.
func product(x, weight byte) int32 { return int32(x) * int32(int8(weight)) } //nolint:gosec // it is a signed byte

func normalize(row, add []float32, n *layerNorm) {
	for i := range row {
		row[i] += add[i]
	}
	mean := sumOf(row, func(x float32) float32 { return x }) / float32(len(row))
	variance := sumOf(row, func(x float32) float32 { return (x - mean) * (x - mean) }) / float32(len(row))
	inverse := 1 / float32(math.Sqrt(float64(variance+n.epsilon)))
	for i, x := range row {
		row[i] = fma(float32((x-mean)*inverse), n.weight[i], n.bias[i])
	}
}

// sumOf adds up the results of f for all values: first every 16th value, then the two halves of these sums, again and
// again.
func sumOf(values []float32, f func(float32) float32) float32 {
	var sums [lanes]float32
	for i, v := range values {
		sums[i%lanes] += float32(f(v))
	}
	for half := lanes / 2; half > 0; half /= 2 {
		for i := range half {
			sums[i] += sums[i+half]
		}
	}
	return sums[0]
}

func gelu(values []float32) {
	for i, x := range values {
		near := max(-geluEnd, min(geluEnd, x))
		values[i] = x * fma(near, polynomial(geluTerms[:], near*near), 0.5)
	}
}

func polynomial(terms []float32, x float32) float32 {
	last := len(terms) - 1
	y := terms[last]
	for i := last - 1; i >= 0; i-- {
		y = fma(y, x, terms[i])
	}
	return y
}

func score(a *attention) {
	for key := range a.padded {
		var sum float32
		for i := range headPart {
			sum = fma(a.queries[i], a.keys[i*a.padded+key], sum)
		}
		a.weights[key] = sum
	}
}

func softmax(a *attention) {
	weights := a.weights[:a.padded]
	for i := a.tokens; i < a.padded; i++ {
		weights[i] = tailScore
	}
	largest := weights[0]
	for _, x := range weights {
		largest = max(largest, x)
	}
	for i, x := range weights {
		weights[i] = exp2(max(x-largest, leastExponent))
	}
	a.sums[0] = 1 / sumOf(weights, func(x float32) float32 { return x })
}

// exp2 returns 2^x for x from leastExponent to 0.
func exp2(x float32) float32 {
	whole := x + roundMagic - roundMagic
	bits := math.Float32bits(polynomial(exp2Terms[:], x-whole))
	return math.Float32frombits(bits + uint32(int32(whole))<<23) //nolint:gosec // the exponent stays above zero
}

func weigh(a *attention) {
	for i := range headPart {
		var sum float32
		for token, weight := range a.weights[:a.tokens] {
			sum = fma(weight, a.values[token*headPart+i], sum)
		}
		a.out[i] = sum * a.sums[0]
	}
}

// fma returns x·y + z, rounded once. The product of two float32 values is exact as a float64. If the sum is not exact,
// its last bit is made odd, so that the second rounding gives the result of a single one.
func fma(x, y, z float32) float32 {
	product := float64(x) * float64(y)
	sum := product + float64(z)
	added := sum - product
	rest := (product - (sum - added)) + (float64(z) - added)
	if bits := math.Float64bits(sum); rest != 0 && bits&1 == 0 && !math.IsInf(sum, 0) {
		if (rest > 0) == (sum > 0) {
			bits++
		} else {
			bits--
		}
		sum = math.Float64frombits(bits)
	}
	return float32(sum)
}
