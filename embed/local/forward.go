package local

import "sync"

const (
	// leastBatch is how many tokens are computed together if there are enough: a whole window, or many short texts.
	leastBatch = 256
	// blockTokens is how many tokens the widest layers compute together. With so few, the intermediate values stay in the
	// cache.
	blockTokens = 48
	// spareRows is how many rows a tile may write after the last one.
	spareRows = 16
)

// batchTokens returns how many tokens are computed together at most.
func (s shape) batchTokens() int { return max(leastBatch, s.window) }

// workspace is the memory of one pass.
type workspace struct {
	states   []float32 // each token's values
	attend   []float32 // each token's query, key and value
	attended []float32 // what the heads of each token took from the other tokens
	wide     []float32 // each token of a block: the values of a wide matrix
	keys     []float32 // of one head, as columns, part by part
	values   []float32 // of one head, part by part
	weights  []float32 // of some queries
	partial  []float32 // weights of one part of a head, for heads with several parts
	queries  []float32 // some queries of one part of a head, unless kernels can read them in attend
	out      []float32 // results for these queries
	x        activations
	tile     tile
	attn     attention
}

// activations are rows of integers, each with a scale and a zero point.
type activations struct {
	bytes []byte
	scale []float32
	zero  []int32
}

// pool keeps workspaces for the next pass.
type pool struct{ sync.Pool }

func newWorkspace(s shape, k *kernel) *workspace {
	rows, padded := s.batchTokens()+spareRows, roundUp(s.window, lanes)
	w := &workspace{
		states:   make([]float32, rows*s.stored()),
		attend:   make([]float32, rows*s.attend()),
		attended: make([]float32, rows*s.attended()),
		wide:     make([]float32, (blockTokens+spareRows)*s.wide()),
		keys:     make([]float32, s.headStored()*padded),
		values:   make([]float32, s.headStored()*padded),
		weights:  make([]float32, spareRows*padded),
		x: activations{
			bytes: make([]byte, k.width*max(rows*max(s.stored(), s.attended()), (blockTokens+spareRows)*s.wide())),
			scale: make([]float32, rows),
			zero:  make([]int32, rows),
		},
		attn: attention{sums: make([]float32, spareRows)},
	}
	if !s.native() {
		w.partial = make([]float32, spareRows*padded)
		w.queries = make([]float32, spareRows*attendStride)
		w.out = make([]float32, spareRows*attendedStride)
	}
	return w
}

// native reports whether queries and results have the layout of the attention kernels.
func (s shape) native() bool {
	return s.headStored() == headPart && s.attend() == attendStride && s.attended() == attendedStride
}

// pass computes texts with the model.
type pass struct {
	*transformer
	*workspace
	kernel  *kernel
	lengths []int // tokens of each text
	tokens  int   // tokens of all texts
	// Receives the values that each matrix is multiplied with; only for calibration, otherwise nil.
	observe func(m *matrix, values []float32)
}

// forward leaves the final values of the texts' tokens in the workspace. The texts have at most batchTokens tokens
// together, and each has at most a window of them.
func (p *pass) forward(texts []window) {
	p.embed(texts)
	for i := range p.layers {
		l := &p.layers[i]
		p.attention(l)
		for first := 0; first < p.tokens; first += blockTokens {
			p.feed(l, first, min(blockTokens, p.tokens-first))
		}
	}
}

func (p *pass) embed(texts []window) {
	p.lengths, p.tokens = p.lengths[:0], 0
	for _, text := range texts {
		for position, id := range text.ids {
			row := p.row(p.tokens)
			scale := p.wordScale[id]
			for i, b := range p.words[int(id)*p.hidden:][:p.hidden] {
				row[i] = float32(int8(b)) * scale //nolint:gosec // it is a signed byte
			}
			if text.second > 0 && position >= text.second && p.second != nil {
				for i, x := range p.second {
					row[i] += x
				}
			}
			p.normalize(row, p.positions[position*len(row):][:len(row)], &p.norm)
			p.tokens++
		}
		p.lengths = append(p.lengths, len(text.ids))
	}
}

// row returns the values of a token, with the zeros after them.
func (p *pass) row(token int) []float32 {
	stored := p.stored()
	return p.states[token*stored:][:stored]
}

// normalize adds one row to another and normalizes the sum. A kernel takes 16 values at a time.
func (p *pass) normalize(row, add []float32, n *layerNorm) {
	hidden := p.hidden
	if hidden%lanes == 0 {
		p.kernel.normalize(row, add[:hidden], n)
		return
	}
	normalize(row[:hidden], add[:hidden], n)
}

// attention adds to each token what its heads take from the other tokens of its text.
func (p *pass) attention(l *layer) {
	p.multiply(p.attend, p.states, &l.attend, p.tokens)
	head := p.attendHead
	if p.native() {
		head = p.attendNativeHead
	}
	first := 0
	for _, tokens := range p.lengths {
		for i := range p.heads {
			p.gather(first, tokens, i*p.headStored())
			head(first, i*p.headStored())
		}
		first += tokens
	}
	for start := 0; start < p.tokens; start += blockTokens {
		count := min(blockTokens, p.tokens-start)
		p.multiply(p.wide, p.attended[start*l.attended.columns:], &l.attended, count)
		p.addNormalized(start, count, l.attended.rows, &l.attendedNorm)
	}
}

// gather puts the keys and values of a head together, so that they stay in the first-level cache.
func (p *pass) gather(first, tokens, column int) {
	a, stride, all := &p.attn, p.shape.attend(), p.shape.attended()
	a.tokens, a.padded = tokens, roundUp(tokens, lanes)
	for token := range tokens {
		row := p.attend[(first+token)*stride:][:3*all]
		for part := 0; part < p.headStored(); part += headPart {
			copy(p.values[part*a.padded+token*headPart:][:headPart], row[2*all+column+part:])
		}
		keys := p.keys[token : (p.headStored()-1)*a.padded+token+1]
		for i, value := range row[all+column:][:p.headStored()] {
			keys[i*a.padded] = value
		}
	}
}

// attendNativeHead computes one head of one text. Its last rows may belong to the next text, which overwrites them
// later.
func (p *pass) attendNativeHead(first, column int) {
	a := &p.attn
	a.keys, a.values, a.weights = p.keys, p.values, p.weights
	for row := first; row < first+a.tokens; row += p.kernel.queries {
		a.queries = p.attend[row*attendStride+column:]
		a.out = p.attended[row*attendedStride+column:]
		p.kernel.score(a)
		p.kernel.softmax(a)
		p.kernel.weigh(a)
	}
}

// attendHead computes one head of one text, part by part: a query's score is the sum of its scores in the parts.
func (p *pass) attendHead(first, column int) {
	a := &p.attn
	a.queries, a.values, a.out = p.queries, p.values, p.out
	for row := first; row < first+a.tokens; row += p.kernel.queries {
		count := min(p.kernel.queries, first+a.tokens-row)
		for part := 0; part < p.headStored(); part += headPart {
			for i := range count {
				copy(p.queries[i*attendStride:][:headPart], p.attend[(row+i)*p.shape.attend()+column+part:])
			}
			a.keys, a.weights = p.keys[part*a.padded:], p.weights
			if part > 0 {
				a.weights = p.partial
			}
			p.kernel.score(a)
			if part > 0 {
				for i, x := range p.partial[:count*a.padded] {
					p.weights[i] += x
				}
			}
		}
		a.weights = p.weights
		p.kernel.softmax(a)
		for part := 0; part < p.headStored(); part += headPart {
			a.values = p.values[part*a.padded:]
			p.kernel.weigh(a)
			for i := range count {
				copy(p.attended[(row+i)*p.shape.attended()+column+part:][:headPart], p.out[i*attendedStride:])
			}
		}
	}
}

// feed computes the two wide matrices for some tokens.
func (p *pass) feed(l *layer, first, count int) {
	p.multiply(p.wide, p.states[first*p.stored():], &l.up, count)
	if wide := p.wide[:count*l.up.rows]; p.relu {
		for i, x := range wide {
			wide[i] = max(0, x)
		}
	} else {
		p.kernel.gelu(wide)
	}
	p.multiply(p.wide, p.wide, &l.down, count)
	p.addNormalized(first, count, l.down.rows, &l.downNorm)
}

// addNormalized adds rows of p.wide, which are stride values apart, to the rows of tokens, and normalizes the sums.
func (p *pass) addNormalized(at, count, stride int, n *layerNorm) {
	for i := range count {
		p.normalize(p.row(at+i), p.wide[i*stride:], n)
	}
}

// multiply writes the product of rows of values with a matrix. It reads the values before it writes.
func (p *pass) multiply(out, values []float32, m *matrix, rows int) {
	x, size := &p.x, m.columns*p.kernel.width
	if p.observe != nil {
		p.observe(m, values[:rows*m.columns])
	}
	for i := range rows {
		row := values[i*m.columns:][:m.columns]
		x.scale[i], x.zero[i] = p.kernel.quantize(x.bytes[i*size:][:size], row, m.smooth)
	}
	t, count := &p.tile, p.kernel.tileRows
	t.columns, t.stride = m.columns, m.rows
	for row := 0; row < m.rows; row += p.kernel.tilePanels * panelRows {
		t.weights = m.panels[row*m.columns:][:p.kernel.tilePanels*panelRows*m.columns]
		t.weightScale, t.weightSum, t.bias = m.scale[row:], m.sum[row:], m.bias[row:]
		for i := 0; i < rows; i += count {
			t.x, t.scale, t.zero = x.bytes[i*size:][:count*size], x.scale[i:][:count], x.zero[i:][:count]
			t.out = out[i*m.rows+row:]
			p.kernel.tile(t)
		}
	}
}
