package local

// functions are the functions for one instruction set, in assembly. They check nothing.
type functions struct {
	quantize              func(to *byte, values, factors *float32, n int) (scale float32, zero int32)
	tile                  func(*tile)
	normalize             func(row, add, weight, bias *float32, n int, epsilon float32)
	gelu                  func(values *float32, n int)
	score, softmax, weigh func(*attention)
}

// kernel returns k with the functions. A call panics if it would read or write outside its slices.
func (f functions) kernel(k kernel) *kernel {
	k.quantize = func(to []byte, values, factors []float32) (float32, int32) {
		n := whole(len(values))
		return f.quantize(&to[:k.width*n][0], &values[0], &factors[:n][0], n)
	}
	k.normalize = func(row, add []float32, l *layerNorm) {
		n := whole(len(row))
		f.normalize(&row[0], &add[:n][0], &l.weight[:n][0], &l.bias[:n][0], n, l.epsilon)
	}
	k.gelu = func(values []float32) { f.gelu(&values[0], whole(len(values))) }
	k.tile = func(t *tile) {
		t.check(&k)
		f.tile(t)
	}
	k.score = func(a *attention) {
		a.check(&k)
		f.score(a)
	}
	k.softmax = func(a *attention) {
		a.check(&k)
		f.softmax(a)
	}
	k.weigh = func(a *attention) {
		a.check(&k)
		f.weigh(a)
	}
	return &k
}

// whole returns n. It panics unless n is a positive multiple of 16.
func whole(n int) int {
	if n <= 0 || n%lanes != 0 {
		panic("the number of values is no multiple of 16")
	}
	return n
}

// check panics if the slices are too short for a kernel's tile, or if the number of columns is no multiple of 16.
func (t *tile) check(k *kernel) {
	rows, columns := k.tilePanels*panelRows, t.columns
	if columns <= 0 || columns%16 != 0 {
		panic("the number of columns is no multiple of 16")
	}
	_ = t.x[:k.tileRows*columns*k.width]
	_, _ = t.scale[:k.tileRows], t.zero[:k.tileRows]
	_ = t.weights[:rows*columns]
	_, _, _ = t.weightScale[:rows], t.weightSum[:rows], t.bias[:rows]
	_ = t.out[:(k.tileRows-1)*t.stride+rows]
}

// check panics if the slices are too short for the rows of queries that a kernel takes.
func (a *attention) check(k *kernel) {
	last := k.queries - 1
	if a.padded < a.tokens || a.tokens <= 0 || a.padded%lanes != 0 {
		panic("the tokens are not padded to a multiple of 16")
	}
	_ = a.queries[:last*attendStride+headPart]
	_ = a.keys[:headPart*a.padded]
	_ = a.values[:a.tokens*headPart]
	_ = a.weights[:k.queries*a.padded]
	_ = a.sums[:k.queries]
	_ = a.out[:last*attendedStride+headPart]
}
