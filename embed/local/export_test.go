package local

import "slices"

// Pieces returns the numbers of a text's word pieces.
func (e *Encoder) Pieces(text string) []int32 { return e.pieces.cut(text).pieces }

// Words returns the words of a text as the vocabulary has them.
func Words(text string) []string { return slices.Collect(words(text)) }

// Weights and Vocabulary are the embedded files.
func Weights() []byte    { return weights }
func Vocabulary() string { return vocabulary }
