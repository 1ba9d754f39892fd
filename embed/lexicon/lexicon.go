// Package lexicon turns texts into terms and their BM25 weights. It needs neither a database nor a model: [Document]
// weighs a text without knowing any other text, [IDF] weighs a query by a sample of the texts that it searches, and the
// inner product of both is BM25.
//
// Each file uses those that are named before it:
//   - from a text to its terms: stem.go wordlists.go words.go propernames.go sieve.go tokenize.go
//   - weights of words, of texts and of queries: expand.go lexicon.go pairs.go idf.go query.go
package lexicon

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/pgvector/pgvector-go"
)

// Lexicon is the dimension of word weights: a term's place is the low 24 bits of its CRC-32. Terms of the same place
// count as one.
const Lexicon = 1 << 24

// MaxTerms is how many different terms of a text are kept, those of highest weight first. pgvector takes 16,000.
const MaxTerms = 8_000

// BM25's constants, chosen by measuring chat turns and chunks of files together. The length is compared with a constant
// in place of the corpus' mean, so that a stored weight stays valid. Texts shorter than the floor count as that long.
const (
	saturation  = 1.2
	lengthShare = 0.75
	pivotTerms  = 40
	floorTerms  = 20
)

// Lex is a text as rows store it for search by words.
type Lex struct {
	// Vector holds the weight of each term, for a column of type sparsevec(16777216). Its indices are 0-based and
	// ascending here; Postgres prints them 1-based. A text without terms has the vector {}/16777216: a valid value, whose
	// inner product with any query is 0. (pgvector-go sends and reads it in binary only; its text parser does not take the
	// empty vector.)
	Vector pgvector.SparseVector
	// Terms are the vector's indices, for a column of type int[] under GIN. Never nil, so never NULL. Shared with Vector.
	Terms []int32
}

// Document returns the BM25 weights of a text's terms: all of BM25 but the idf, which belongs to the query.
func Document(text string) Lex {
	ids := TermIDs(text)
	length := len(ids)
	weights := counted(ids)
	for i, w := range weights {
		weights[i].value = float32(Saturated(float64(w.value), float64(length)))
	}
	v := sparse(heaviest(weights))
	return Lex{Vector: v, Terms: v.Indices()}
}

// Saturated is BM25's weight of a term that a text of a given number of terms has tf times.
func Saturated(tf, length float64) float64 {
	damp := saturation * (1 - lengthShare + lengthShare*max(length, floorTerms)/pivotTerms)
	return tf * (saturation + 1) / (tf + damp)
}

// ownedBits is how many bits of an owned term are the word's: as many as the Lexicon needs.
const ownedBits = 24

// Owned returns terms with their owner's key in the bits above the word's, so that an entry of an index on the terms of
// many owners belongs to one owner. A key has at most 39 bits; with key 0 the terms are plain. Never nil.
func Owned(owner int64, terms []int32) []int64 {
	owned := make([]int64, len(terms))
	for i, t := range terms {
		owned[i] = owner<<ownedBits | int64(t)
	}
	return owned
}

// TermIDs returns the places of a text's terms, ascending and as often as the text has them.
func TermIDs(text string) []int32 {
	ids := make([]int32, 0, 128)
	EachTerm(text, func(t *Term) { ids = append(ids, t.ID) })
	slices.Sort(ids)
	return ids
}

// TermsOf returns the different terms of a text, in the order of their places.
func TermsOf(text string) []*Term {
	var all []*Term
	EachTerm(text, func(t *Term) { all = append(all, t) })
	return different(all)
}

// namesOf returns a text's stop words as names, as termsOf returns other terms.
func namesOf(text string) []*Term {
	var all []*Term
	eachWord(plain(text), func(w word) {
		if t := lookup(w.text); t.name != nil && len(w.text) > 1 {
			all = append(all, t.name)
		}
	})
	return different(all)
}

// different returns terms in the order of their places, each once.
func different(all []*Term) []*Term {
	slices.SortFunc(all, func(a, b *Term) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Text, b.Text)) })
	return slices.CompactFunc(all, func(a, b *Term) bool { return a.Text == b.Text })
}

// weight is one element of a sparse vector.
type weight struct {
	id    int32
	value float32
}

// counted returns how often each of sorted ids occurs.
func counted(ids []int32) []weight {
	counts := make([]weight, 0, len(ids))
	for i, id := range ids {
		if i == 0 || id != ids[i-1] {
			counts = append(counts, weight{id: id})
		}
		counts[len(counts)-1].value++
	}
	return counts
}

// heaviest keeps the MaxTerms elements of highest value, the lower id first among equals, in the order of their ids.
func heaviest(weights []weight) []weight {
	if len(weights) <= MaxTerms {
		return weights
	}
	slices.SortFunc(weights, func(a, b weight) int {
		return cmp.Or(cmp.Compare(b.value, a.value), cmp.Compare(a.id, b.id))
	})
	weights = weights[:MaxTerms]
	slices.SortFunc(weights, func(a, b weight) int { return cmp.Compare(a.id, b.id) })
	return weights
}

// sparse builds a vector from elements in the order of their ids. pgvector-go builds one from a map only, or from its
// wire format: the latter costs a tenth.
func sparse(weights []weight) pgvector.SparseVector {
	wire := make([]byte, 0, 12+8*len(weights))
	wire = binary.BigEndian.AppendUint32(wire, Lexicon)
	wire = binary.BigEndian.AppendUint32(wire, uint32(len(weights))) //nolint:gosec // at most MaxTerms
	wire = binary.BigEndian.AppendUint32(wire, 0)
	for _, w := range weights {
		wire = binary.BigEndian.AppendUint32(wire, uint32(w.id)) //nolint:gosec // an id has 24 bits
	}
	for _, w := range weights {
		wire = binary.BigEndian.AppendUint32(wire, math.Float32bits(w.value))
	}
	var v pgvector.SparseVector
	if err := v.DecodeBinary(wire); err != nil {
		panic("embed: pgvector-go refuses its own wire format: " + err.Error())
	}
	return v
}
