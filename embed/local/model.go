package local

import (
	_ "embed" // for the weights
)

//go:generate sh -c "cd ../../tools && go run ./encoderweights -out ../embed/local $MINILM"

// shape is the size of a model.
type shape struct {
	hidden int // values of a token
	heads  int // hidden is a multiple of it
	layers int
	inner  int // values of a token between the two wide matrices
	window int // tokens that are computed at once, including those before and after the text
}

// The memory of rows is rounded up to a multiple of these numbers, and filled with zeros.
const (
	panelRows = 16            // rows of weights in a panel
	tileWidth = 4 * panelRows // rows of weights in the widest tile
)

// stored returns the distance between the values of two tokens.
func (s shape) stored() int { return roundUp(s.hidden, lanes) }

// headValues returns how many values a head has, and headStored how many are stored.
func (s shape) headValues() int { return s.hidden / s.heads }
func (s shape) headStored() int { return roundUp(s.headValues(), headPart) }

// attended returns how many values the heads of a token take, all together.
func (s shape) attended() int { return s.heads * s.headStored() }

// attend returns how many values the queries, keys and values of a token have, all together.
func (s shape) attend() int { return roundUp(3*s.attended(), tileWidth) }

// wide returns how many values the widest matrix gives per token.
func (s shape) wide() int { return max(roundUp(s.inner, tileWidth), roundUp(s.hidden, tileWidth)) }

func roundUp(n, multiple int) int { return (n + multiple - 1) / multiple * multiple }

// transformer is the weights of BERT as they are read. Matrices of the embedded model stay in its file.
type transformer struct {
	shape
	words     []byte // hidden values per word piece
	wordScale []float32
	positions []float32 // stored values per position in a window
	second    []float32 // stored values that are added to the tokens of a second text; nil if none
	norm      layerNorm
	layers    []layer
	relu      bool // the activation function is ReLU, not GELU
}

type layer struct {
	attend       matrix // queries, keys and values of all heads
	attended     matrix
	attendedNorm layerNorm
	up, down     matrix
	downNorm     layerNorm
}

// matrix is rows of 8-bit integers in panels of 16 rows: first four columns of each row, then the next four. A row's
// integers times its scale are the weights of the model. The sum of a row's integers corrects for the zero point of
// activations. Activations are multiplied with smooth, column by column, before they become integers.
type matrix struct {
	rows, columns int
	panels        []byte
	scale, bias   []float32
	sum           []int32
	smooth        []float32
}

// layerNorm is a layer normalization. The epsilon is added to the variance.
type layerNorm struct {
	weight, bias []float32
	epsilon      float32
}
