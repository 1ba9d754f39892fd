package local

import (
	_ "embed" // for the texts of calibration
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// activationFunctions maps the activation functions that this package can run → whether they are ReLU. Two forms of
// GELU differ by less than 0.0005: less than one step of the integers that the results become.
var activationFunctions = map[string]bool{"gelu": false, "gelu_new": false, "gelu_python": false, "gelu_fast": false,
	"gelu_pytorch_tanh": false, "relu": true}

// readEncoder reads a BERT or XLM-RoBERTa model.
func (m *model) readEncoder(d *directory, read *tensors) (err error) {
	_, err = m.readTransformer(d, read)
	if err == nil {
		m.pooling, err = d.readPooling(m.hidden)
	}
	return err
}

// readTransformer reads the layers and the tokenizer.
func (m *model) readTransformer(d *directory, read *tensors) (t tokenization, err error) {
	c := d.config
	first, err := c.firstPosition()
	if err != nil {
		return t, err
	}
	relu, known := activationFunctions[c.Activation]
	if !known {
		return t, fmt.Errorf("config.json has the hidden_act %.50q; gelu and relu are run", c.Activation)
	}
	window, err := d.windowOf(c.Positions - first)
	if err != nil {
		return t, err
	}
	m.transformer = &transformer{relu: relu, shape: shape{hidden: c.Hidden, heads: c.Heads, layers: c.Layers,
		inner: c.Intermediate, window: window}}
	b := &builder{transformer: m.transformer, read: read, epsilon: c.Epsilon}
	if err := b.findPrefix(); err != nil {
		return t, ofWeights(err)
	}
	if t, err = d.readTokenizer(b.vocabulary()); err != nil {
		return t, err
	}
	if len(t.begin) == 0 {
		return t, errors.New("tokenizer.json has no post_processor that says what begins a text")
	}
	m.tokens, m.begin, m.end, m.dimensions = t.pieces, t.begin, t.end, c.Hidden
	b.embeddings(first, c.Positions, c.Kinds)
	b.readLayers()
	if b.err == nil {
		b.observed = newEncoder(m).calibrate()
		b.readLayers()
	}
	if b.err != nil {
		return t, ofWeights(b.err)
	}
	return t, nil
}

// calibration has one text per line.
//
//go:embed calibration.txt
var calibration string

// calibrate embeds the texts of calibration.txt. It returns, for each matrix and column, the largest value that the
// column was multiplied with. It is the same on every processor.
func (e *Encoder) calibrate() map[*matrix][]float32 {
	var windows []window
	for line := range strings.Lines(calibration) {
		pieces := slices.Concat(e.begin, e.tokens.cut(strings.TrimSpace(line)).pieces, e.end)
		windows = append(windows, window{ids: pieces[:min(len(pieces), e.window)]})
	}
	largest := map[*matrix][]float32{}
	p := e.newPass()
	p.observe = func(m *matrix, values []float32) {
		columns := largest[m]
		if columns == nil {
			columns = make([]float32, m.columns)
			largest[m] = columns
		}
		for i, x := range values {
			columns[i%m.columns] = max(columns[i%m.columns], abs(x))
		}
	}
	for _, batch := range batched(windows, e.batchTokens()) {
		p.forward(batch)
	}
	return largest
}

// leastHead is the least number of values of a head. Memory is taken for 32.
const leastHead = 8

// firstPosition checks the settings of a transformer, and returns the position of the first token.
func (c config) firstPosition() (int, error) {
	first := 0
	switch c.ModelType {
	case "bert":
	case "xlm-roberta", "roberta", "camembert":
		first = 2
		if c.Padding != nil {
			first = *c.Padding + 1
		}
	default:
		return 0, fmt.Errorf("config.json has the model_type %.50q; bert, xlm-roberta and model2vec are run", c.ModelType)
	}
	between := func(n, most int) bool { return n >= 1 && n <= most }
	switch {
	case c.PositionType != "" && c.PositionType != "absolute":
		return 0, fmt.Errorf("config.json has the position_embedding_type %.50q; absolute is run", c.PositionType)
	case c.Decoder:
		return 0, errors.New("config.json has is_decoder; only encoders are run")
	case len(c.Pruned) > 0:
		return 0, errors.New("config.json has pruned_heads, which is not supported")
	case !between(c.Hidden, mostValues) || !between(c.Intermediate, mostValues) || !between(c.Layers, mostLayers) ||
		!between(c.Heads, c.Hidden) || !between(c.Positions, 1<<20) || first < 0 || first >= c.Positions:
		return 0, fmt.Errorf("config.json has a hidden_size of %d, an intermediate_size of %d, %d layers, %d heads and %d "+
			"positions, which is no encoder that can be run", c.Hidden, c.Intermediate, c.Layers, c.Heads, c.Positions)
	case c.Hidden%c.Heads != 0 || c.Hidden/c.Heads < leastHead:
		return 0, fmt.Errorf("config.json has %d heads of a hidden_size of %d; each must have the same number of values, at "+
			"least %d", c.Heads, c.Hidden, leastHead)
	case c.Epsilon < 0 || notFinite(c.Epsilon):
		return 0, fmt.Errorf("config.json has a layer_norm_eps of %v; it must not be negative", c.Epsilon)
	}
	return first, nil
}

// builder reads the weights of a transformer. It keeps its first error.
type builder struct {
	*transformer
	read    *tensors
	prefix  string
	epsilon float32
	err     error

	// observed are the largest values that matrices were multiplied with, see calibrate; nil until the model has been read
	// roughly.
	observed map[*matrix][]float32
}

const wordTable = "embeddings.word_embeddings.weight"

// findPrefix finds the common prefix of the tensors' names.
func (b *builder) findPrefix() error {
	for _, name := range slices.Sorted(maps.Keys(b.read.header)) {
		if prefix, found := strings.CutSuffix(name, wordTable); found {
			b.prefix = prefix
			return nil
		}
	}
	return fmt.Errorf("it has no tensor %s", wordTable)
}

func (b *builder) rows(name string, rows, columns int, f func(i int, row []float32)) {
	if b.err == nil {
		b.err = b.read.rows(b.prefix+name, rows, columns, f)
	}
}

func (b *builder) embeddings(first, positions, kinds int) {
	b.rows(wordTable, b.vocabulary(), b.hidden, func(_ int, row []float32) {
		var scale float32
		b.words, scale = quantizeRow(b.words, row)
		b.wordScale = append(b.wordScale, scale)
	})
	stored := b.stored()
	b.rows("embeddings.position_embeddings.weight", positions, b.hidden, func(i int, row []float32) {
		if i >= first && i < first+b.window {
			b.positions = append(append(b.positions, row...), make([]float32, stored-b.hidden)...)
		}
	})
	const kindTable = "embeddings.token_type_embeddings.weight"
	if _, found := b.read.header[b.prefix+kindTable]; !found && kinds <= 1 {
		kinds = 0
	}
	var ofFirst []float32
	if kinds > 0 {
		b.rows(kindTable, kinds, b.hidden, func(i int, row []float32) {
			switch i {
			case 0:
				ofFirst = append(ofFirst, row...)
				for i := range b.positions {
					if column := i % stored; column < b.hidden {
						b.positions[i] += row[column]
					}
				}
			case 1:
				b.second = make([]float32, b.hidden)
				for i, x := range row {
					b.second[i] = x - ofFirst[i]
				}
			}
		})
	}
	b.norm = b.layerNorm("embeddings.LayerNorm")
}

// vocabulary returns how many pieces the model has.
func (b *builder) vocabulary() int { return b.read.header[b.prefix+wordTable].rowsOf(b.hidden) }

// rowsOf returns how many rows a tensor with the given number of columns has, or 0 if it has another number of columns.
func (e entry) rowsOf(columns int) int {
	if len(e.Shape) == 2 && e.Shape[1] == columns {
		return e.Shape[0]
	}
	return 0
}

// layerNorm reads a layer normalization. Old files have other names for its tensors.
func (b *builder) layerNorm(name string) layerNorm {
	n := layerNorm{epsilon: b.epsilon}
	for _, part := range []struct {
		to       *[]float32
		now, old string
	}{{&n.weight, ".weight", ".gamma"}, {&n.bias, ".bias", ".beta"}} {
		tensor := name + part.now
		if _, found := b.read.header[b.prefix+name+part.old]; found {
			tensor = name + part.old
		}
		b.rows(tensor, 1, b.hidden, func(_ int, row []float32) { *part.to = append(*part.to, row...) })
	}
	return n
}

// readLayers reads the layers: roughly if nothing was observed.
func (b *builder) readLayers() {
	x := spreadOf(b.norm)
	for i := 0; i < b.shape.layers && b.err == nil; i++ {
		if len(b.layers) == i {
			b.layers = append(b.layers, layer{})
		}
		prefix := fmt.Sprintf("encoder.layer.%d.", i)
		x = b.attention(&b.layers[i], prefix+"attention.", x)
		x = b.feed(&b.layers[i], prefix, x)
	}
}

// quantize sets a matrix, with the observed largest activations or, before there are any, with the estimated ones.
func (b *builder) quantize(m *matrix, f *floats, largest []float32) {
	if b.observed == nil {
		*m = f.matrix(largest, true)
		return
	}
	*m = f.matrix(b.observed[m], false)
}

// attention reads the first half of a layer, and returns the spread of its results.
func (b *builder) attention(l *layer, prefix string, x spread) spread {
	values, stored := b.headValues(), b.headStored()
	inHead := func(i int) int { return i/values*stored + i%values }
	parts := []string{"query", "key", "value"}
	for _, name := range parts {
		b.check(prefix+"self."+name, b.hidden, b.hidden)
	}
	b.check(prefix+"output.dense", b.hidden, b.hidden)
	if b.err != nil {
		return x
	}
	attend := newFloats(b.attend(), b.stored())
	for i, name := range parts {
		from := i * b.attended()
		b.linear(attend, prefix+"self."+name, b.hidden, b.hidden, func(row, column int) (int, int) {
			return from + inHead(row), column
		})
	}
	attended := newFloats(roundUp(b.hidden, tileWidth), b.attended())
	b.linear(attended, prefix+"output.dense", b.hidden, b.hidden, func(row, column int) (int, int) {
		return row, inHead(column)
	})
	l.attendedNorm = b.layerNorm(prefix + "output.LayerNorm")
	if b.err != nil {
		return x
	}
	taken := attend.through(x).part(2*b.attended(), 3*b.attended())
	b.quantize(&l.attend, attend, x.largest(ofNorm))
	l.attend.scaleQueries(b.shape)
	b.quantize(&l.attended, attended, taken.largest(ofAttention))
	return spreadOf(l.attendedNorm)
}

// feed reads the second half of a layer, and returns the spread of its results.
func (b *builder) feed(l *layer, prefix string, x spread) spread {
	b.check(prefix+"intermediate.dense", b.inner, b.hidden)
	b.check(prefix+"output.dense", b.hidden, b.inner)
	if b.err != nil {
		return x
	}
	same := func(row, column int) (int, int) { return row, column }
	up := newFloats(roundUp(b.inner, tileWidth), b.stored())
	b.linear(up, prefix+"intermediate.dense", b.inner, b.hidden, same)
	down := newFloats(roundUp(b.hidden, tileWidth), up.rows)
	b.linear(down, prefix+"output.dense", b.hidden, b.inner, same)
	l.downNorm = b.layerNorm(prefix + "output.LayerNorm")
	if b.err != nil {
		return x
	}
	wide := up.through(x).activated()
	b.quantize(&l.up, up, x.largest(ofNorm))
	b.quantize(&l.down, down, wide)
	return spreadOf(l.downNorm)
}

// check makes sure that a matrix is in the file, before memory is taken for it.
func (b *builder) check(name string, rows, columns int) {
	if b.err == nil {
		_, b.err = b.read.entry(b.prefix+name+".weight", rows, columns)
	}
}

// linear reads a matrix and its biases into f. place returns the position in f for each row and column.
func (b *builder) linear(f *floats, name string, rows, columns int, place func(row, column int) (int, int)) {
	b.rows(name+".weight", rows, columns, func(i int, row []float32) {
		for j, x := range row {
			r, c := place(i, j)
			f.weights[r*f.columns+c] = x
		}
	})
	b.rows(name+".bias", 1, rows, func(_ int, row []float32) {
		for i, x := range row {
			r, _ := place(i, 0)
			f.bias[r] = x
		}
	})
}
