package local

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// rerankWindow is the most tokens of a question and a text together that a reranker reads.
const rerankWindow = 256

// Reranker judges how well texts answer a question. It is safe for concurrent use.
type Reranker struct {
	encoder *Encoder
	around  tokenization
	hidden  dense // for the first token, before the hyperbolic tangent
	score   dense
}

// dense is a matrix of 32-bit floats with a bias for each row.
type dense struct {
	columns       int
	weights, bias []float32
}

// OpenReranker returns a reranker for a model in the format of OpenDirectory: BERT or XLM-RoBERTa with one label
// (…ForSequenceClassification). Errors are as for OpenDirectory.
func OpenReranker(path string) (*Reranker, error) {
	r, err := openReranker(path)
	if err != nil {
		return nil, fmt.Errorf("the model in %s is not used: %w", path, err)
	}
	return r, nil
}

func openReranker(path string) (*Reranker, error) {
	d, err := readDirectory(path)
	if err != nil {
		return nil, err
	}
	switch c := d.config; {
	case !c.classifies():
		return nil, fmt.Errorf("config.json has the architecture %.100q; a reranker is a Bert%s or an XLMRoberta%[2]s",
			strings.Join(c.Architectures, ", "), classifierSuffix)
	case len(c.Labels) > 1 || c.LabelCount != nil && *c.LabelCount > 1:
		return nil, errors.New("config.json has several labels; a reranker has one")
	}
	read, file, err := d.openTensors()
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	m := &model{name: filepath.Base(d.path)}
	around, err := m.readTransformer(d, read)
	if err != nil {
		return nil, err
	}
	r := &Reranker{encoder: newEncoder(m).WithThreads(runtime.GOMAXPROCS(0)), around: around}
	if err := r.readHead(read, d.config.ModelType == "bert"); err != nil {
		return nil, ofWeights(err)
	}
	p := r.encoder.newPass()
	p.forward([]window{r.pair(0, r.encoder.tokens.cut("a question").pieces, "a text")})
	if score := r.scoreOf(p.row(0)); math.IsNaN(score) || math.IsInf(score, 0) {
		return nil, ofWeights(errors.New("a text gets a score that is not finite: the weights are not those of such a model"))
	}
	return r, nil
}

// readHead reads the layers that turn the first token into a score.
func (r *Reranker) readHead(read *tensors, bert bool) (err error) {
	hidden, score := "classifier.dense", "classifier.out_proj"
	if bert {
		b := builder{read: read}
		if err := b.findPrefix(); err != nil {
			return err
		}
		hidden, score = b.prefix+"pooler.dense", "classifier"
	}
	if r.hidden, err = readDense(read, hidden, r.encoder.hidden, r.encoder.hidden); err != nil {
		return err
	}
	r.score, err = readDense(read, score, 1, r.encoder.hidden)
	return err
}

func readDense(read *tensors, name string, rows, columns int) (d dense, err error) {
	d.columns = columns
	if d.weights, err = read.floats(name+".weight", rows, columns); err != nil {
		return d, err
	}
	d.bias, err = read.floats(name+".bias", 1, rows)
	return d, err
}

// Name returns the name of the model's directory.
func (r *Reranker) Name() string { return r.encoder.name }

// Bytes returns how much memory the weights take.
func (r *Reranker) Bytes() int64 { return r.encoder.Bytes() }

// Scores returns a score for each text: the higher, the better the text answers the question. It reads at most 256
// tokens of the question and a text together. It ends early, with the context's error, if the context is done.
func (r *Reranker) Scores(ctx context.Context, question string, texts []string) ([]float64, error) {
	questionPieces := r.encoder.tokens.cut(question).pieces
	windows := make([]window, len(texts))
	for i, text := range texts {
		windows[i] = r.pair(i, questionPieces, text)
	}
	scores, batches := make([]float64, len(texts)), batched(windows, r.encoder.batchTokens())
	err := r.encoder.run(ctx, batches, func(i int, p *pass) {
		position := 0
		for _, w := range batches[i] {
			scores[w.text] = r.scoreOf(p.row(position))
			position += len(w.ids)
		}
	})
	if err != nil {
		return nil, err
	}
	return scores, nil
}

// pair returns a question and a text as one window. At most half of it is the question.
func (r *Reranker) pair(i int, questionPieces []int32, text string) window {
	e, most := r.encoder, min(r.encoder.window, rerankWindow)
	room := most - len(e.begin) - len(r.around.between) - len(e.end)
	questionPieces = questionPieces[:min(len(questionPieces), room/2)]
	pieces := e.tokens.cut(text).pieces
	pieces = pieces[:min(len(pieces), room-len(questionPieces))]
	w := window{text: i, ids: slices.Concat(e.begin, questionPieces, r.around.between, pieces, e.end)}
	if r.around.secondKind {
		w.second = len(e.begin) + len(questionPieces) + len(r.around.between)
	}
	return w
}

func (r *Reranker) scoreOf(first []float32) float64 {
	hidden := r.hidden.of(first)
	for i, x := range hidden {
		hidden[i] = float32(math.Tanh(float64(x)))
	}
	return float64(r.score.of(hidden)[0])
}

// of returns the product of the matrix with values.
func (d dense) of(values []float32) []float32 {
	outputs := make([]float32, len(d.bias))
	for row := range outputs {
		sum := float64(d.bias[row])
		for i, w := range d.weights[row*d.columns:][:d.columns] {
			sum += float64(w) * float64(values[i])
		}
		outputs[row] = float32(sum)
	}
	return outputs
}
