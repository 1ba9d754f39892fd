package local

import (
	_ "embed" // the weights
)

//go:generate sh -c "cd ../../tools && go run ./encoderweights -out ../embed/local $MINILM"

// shape says how large a model is.
type shape struct {
	hidden int // values of a token
	heads  int // hidden is a multiple of it
	layers int
	inner  int // values of a token between the two wide matrices
	window int // tokens of a text that go through the model at once, with those that begin and end it
}

// What rows lie in is a multiple of these numbers of values, the rest zeros.
const (
	panelRows = 16            // rows of weights in a panel
	tileWidth = 4 * panelRows // rows of weights in the widest tile
)

// stored returns how far the values of tokens lie apart.
func (s shape) stored() int { return roundUp(s.hidden, lanes) }

// headValues returns how many values a head has, and headStored how many are stored.
func (s shape) headValues() int { return s.hidden / s.heads }
func (s shape) headStored() int { return roundUp(s.headValues(), headPart) }

// attended returns how many values of a token its heads take together.
func (s shape) attended() int { return s.heads * s.headStored() }

// attend returns how many values of a token are its queries, keys and values together.
func (s shape) attend() int { return roundUp(3*s.attended(), tileWidth) }

// wide returns how many values of a token the widest matrix gives.
func (s shape) wide() int { return max(roundUp(s.inner, tileWidth), roundUp(s.hidden, tileWidth)) }

func roundUp(n, multiple int) int { return (n + multiple - 1) / multiple * multiple }

// transformer is the weights of BERT as they are read. Matrices of the embedded model stay in its file.
type transformer struct {
	shape
	words     []byte // of each word piece, hidden values
	wordScale []float32
	positions []float32 // of each token of a window, stored values
	second    []float32 // what the tokens of a second text have in addition, stored values; nil if nothing
	norm      layerNorm
	layers    []layer
	relu      bool // the activation function is not GELU
}

type layer struct {
	attend       matrix // the queries, keys and values of all heads
	attended     matrix
	attendedNorm layerNorm
	up, down     matrix
	downNorm     layerNorm
}

// matrix is rows of 8-bit integers in panels of 16 rows: first four columns of each row, then the next four. A row's
// scale gives the weights of the model. The sum of a row's integers corrects for the zero point of activations.
// Activations are multiplied with smooth, column by column, before they become integers.
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
