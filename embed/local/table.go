package local

import (
	"context"
	"fmt"
)

// table is a static model: it has a vector for each piece, and the vector of a text is their mean.
type table struct {
	rows   []byte    // vectors of 8-bit integers, dimensions each
	scale  []float32 // one per row
	rowOf  []int32   // piece → row; nil if the numbers are the same
	weight []float32 // one per piece; nil if all weigh the same
	absent int32     // the unknown piece, which is left out; -1 if there is none
}

// lookUp returns the vectors of texts.
func (e *Encoder) lookUp(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, s := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if text := e.cut(s); e.unsuited(text) == "" {
			vectors[i] = e.sum(append(text.pieces, e.prompt.pieces...), e.dimensions)
			unit(vectors[i])
		}
	}
	return vectors, nil
}

func (t *table) sum(pieces []int32, dimensions int) []float32 {
	sum := make([]float32, dimensions)
	for _, id := range pieces {
		if id == t.absent {
			continue
		}
		row, weight := id, float32(1)
		if t.rowOf != nil {
			row = t.rowOf[id]
		}
		if t.weight != nil {
			weight = t.weight[id]
		}
		weight *= t.scale[row]
		for i, b := range t.rows[int(row)*dimensions:][:dimensions] {
			sum[i] += float32(float32(int8(b)) * weight) //nolint:gosec // it is a signed byte
		}
	}
	return sum
}

// readTable reads a static model of model2vec.
func (m *model) readTable(d *directory, read *tensors) error {
	name := "embeddings"
	if _, found := read.header[name]; !found {
		name = "embedding.weight"
	}
	shape := read.header[name].Shape
	if len(shape) != 2 || shape[0] < 1 || shape[1] < 1 || shape[1] > mostValues {
		return ofWeights(fmt.Errorf("it has no tensor embeddings with a vector of 1 to %d numbers for each piece",
			mostValues))
	}
	t := &table{}
	err := read.rows(name, shape[0], shape[1], func(_ int, row []float32) {
		var scale float32
		t.rows, scale = quantizeRow(t.rows, row)
		t.scale = append(t.scale, scale)
	})
	if err != nil {
		return ofWeights(err)
	}
	if err := t.readPieces(read, shape[0]); err != nil {
		return ofWeights(err)
	}
	pieces := shape[0]
	if t.rowOf != nil {
		pieces = len(t.rowOf)
	}
	tokens, err := d.readTokenizer(pieces)
	if err != nil {
		return err
	}
	m.tokens, m.dimensions, m.table = tokens.pieces, shape[1], t
	t.absent = unknownOf(tokens.pieces)
	return nil
}

// readPieces reads the row and the weight of each piece.
func (t *table) readPieces(read *tensors, rows int) error {
	pieces := rows
	if e, found := read.header["mapping"]; found && len(e.Shape) == 1 {
		pieces = e.Shape[0]
		values, err := read.integers("mapping", pieces)
		if err != nil {
			return err
		}
		t.rowOf = make([]int32, pieces)
		for i, row := range values {
			if row < 0 || row >= int64(rows) {
				return fmt.Errorf("its tensor mapping leads to row %d, and embeddings has %d", row, rows)
			}
			t.rowOf[i] = int32(row) //nolint:gosec // it is below the number of rows
		}
	}
	if _, found := read.header["weights"]; found {
		weights, err := read.floats("weights", pieces, 1)
		t.weight = weights
		return err
	}
	return nil
}

// unknownOf returns the piece for text that a tokenizer does not know.
func unknownOf(t tokenizer) int32 {
	switch t := t.(type) {
	case *wordPieces:
		return t.unknown
	case *unigram:
		return t.unknown
	case normalized:
		return unknownOf(t.tokenizer)
	}
	return -1
}
