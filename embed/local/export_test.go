package local

import (
	"context"
	"slices"
)

// Pieces returns the numbers of a text's word pieces.
func (e *Encoder) Pieces(text string) []int32 { return e.tokens.cut(text).pieces }

// Words returns the words of a text as the vocabulary has them.
func Words(text string) []string { return slices.Collect(uncased.split(text)) }

// Weights and Vocabulary are the embedded files.
func Weights() []byte    { return weights }
func Vocabulary() string { return vocabulary }

// NewGate returns a gate, and Place is the place of a call in its line.
var NewGate = newGate

type Place = place

func (g *gate) Arrive(bulk bool) Place                   { return g.arrive(bulk) }
func (g *gate) Enter(ctx context.Context, p Place) error { return g.enter(ctx, p) }
func (g *gate) Leave()                                   { g.leave() }

// GiveWay is what a background thread does first.
func GiveWay() { giveWay() }
