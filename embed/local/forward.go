package local

import "sync"

const (
	panelRows = 16
	// batchTokens is how many tokens go through the model together: one whole window, or many short texts.
	batchTokens = positions
	// blockTokens is how many tokens go through the widest layers together, so that what is between them stays near.
	blockTokens = 48
	// attendStride is how many values a token has for the attention.
	attendStride = 3 * hidden
	// spareRows are the rows that a tile may write behind the last one.
	spareRows = 16
)

// workspace is the memory of one pass.
type workspace struct {
	hidden   []float32 // of each token, hidden values
	attend   []float32 // of each token, its query, key and value
	attended []float32 // of each token, hidden values
	wide     []float32 // of each token of a block, intermediate values
	keys     []float32 // of one head, as columns
	values   []float32 // of one head
	weights  []float32 // of some queries
	x        activations
	tile     tile
	attn     attention
}

// activations are rows of integers, with a scale and a zero point each.
type activations struct {
	bytes []byte
	scale []float32
	zero  []int32
}

// pool keeps workspaces for the next pass.
type pool struct{ sync.Pool }

func newWorkspace(k *kernel) *workspace {
	const rows = batchTokens + spareRows
	return &workspace{
		hidden:   make([]float32, rows*hidden),
		attend:   make([]float32, rows*attendStride),
		attended: make([]float32, rows*hidden),
		wide:     make([]float32, (blockTokens+spareRows)*intermediate),
		keys:     make([]float32, headSize*positions),
		values:   make([]float32, headSize*positions),
		weights:  make([]float32, spareRows*positions),
		x: activations{
			bytes: make([]byte, k.width*max(rows*hidden, (blockTokens+spareRows)*intermediate)),
			scale: make([]float32, rows),
			zero:  make([]int32, rows),
		},
		attn: attention{sums: make([]float32, spareRows)},
	}
}

// pass is texts on their way through the model.
type pass struct {
	*model
	*workspace
	kernel  *kernel
	lengths []int // tokens of each text
	tokens  int   // of all texts
}

// forward leaves the last hidden values of the texts' tokens in the workspace. The texts have at most batchTokens
// tokens together.
func (p *pass) forward(texts [][]int32) {
	p.embed(texts)
	for i := range p.layers {
		l := &p.layers[i]
		p.attention(l)
		for at := 0; at < p.tokens; at += blockTokens {
			p.feed(l, at, min(blockTokens, p.tokens-at))
		}
	}
}

func (p *pass) embed(texts [][]int32) {
	p.lengths, p.tokens = p.lengths[:0], 0
	for _, ids := range texts {
		for position, id := range ids {
			row := p.hidden[p.tokens*hidden:][:hidden]
			scale := p.wordScale[id]
			for i, b := range p.words[int(id)*hidden:][:hidden] {
				row[i] = float32(int8(b)) * scale //nolint:gosec // it is a signed byte
			}
			p.kernel.normalize(row, p.positions[position*hidden:][:hidden], &p.norm)
			p.tokens++
		}
		p.lengths = append(p.lengths, len(ids))
	}
}

// attention adds to each token what it takes from the others of its text.
func (p *pass) attention(l *layer) {
	p.multiply(p.attend, p.hidden, &l.attend, p.tokens)
	first := 0
	for _, tokens := range p.lengths {
		for head := range heads {
			p.attendHead(first, tokens, head*headSize)
		}
		first += tokens
	}
	for at := 0; at < p.tokens; at += blockTokens {
		count := min(blockTokens, p.tokens-at)
		p.multiply(p.wide, p.attended[at*hidden:], &l.attended, count)
		p.addNormalized(at, count, &l.attendedNorm)
	}
}

// attendHead computes one head of one text. Its last rows may be of the text behind it, which overwrites them.
func (p *pass) attendHead(first, tokens, column int) {
	a := &p.attn
	a.tokens, a.padded = tokens, (tokens+lanes-1)/lanes*lanes
	a.keys, a.values, a.weights = p.keys, p.values, p.weights
	p.gather(first, column)
	for row := first; row < first+tokens; row += p.kernel.queries {
		a.queries = p.attend[row*attendStride+column:]
		a.out = p.attended[row*hidden+column:]
		p.kernel.score(a)
		p.kernel.softmax(a)
		p.kernel.weigh(a)
	}
}

// gather puts the keys and values of a head together, so that they stay in the first cache.
func (p *pass) gather(first, column int) {
	padded := p.attn.padded
	for token := range p.attn.tokens {
		row := p.attend[(first+token)*attendStride+column:][:2*hidden+headSize]
		copy(p.values[token*headSize:][:headSize], row[2*hidden:])
		column := p.keys[token : (headSize-1)*padded+token+1]
		for i, value := range row[hidden:][:headSize] {
			column[i*padded] = value
		}
	}
}

// feed puts some tokens through the two wide matrices.
func (p *pass) feed(l *layer, at, count int) {
	p.multiply(p.wide, p.hidden[at*hidden:], &l.up, count)
	p.kernel.gelu(p.wide[:count*intermediate])
	p.multiply(p.wide, p.wide, &l.down, count)
	p.addNormalized(at, count, &l.downNorm)
}

// addNormalized adds rows of p.wide to hidden values, and normalizes these.
func (p *pass) addNormalized(at, count int, n *layerNorm) {
	for i := range count {
		p.kernel.normalize(p.hidden[(at+i)*hidden:][:hidden], p.wide[i*hidden:][:hidden], n)
	}
}

// multiply writes the product of rows of values with a matrix. It reads the values before it writes.
func (p *pass) multiply(out, values []float32, m *matrix, rows int) {
	x, size := &p.x, m.columns*p.kernel.width
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
