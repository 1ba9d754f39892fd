// Package lexicon turns texts into terms and their BM25 weights. It needs neither a database nor a model: [Document]
// weighs a text without knowing any other text, [IDF] weighs a query with a sample of the texts that it searches, and
// the inner product of both is BM25.
// Each file uses only the files named before it:
//   - from a text to its terms: wordlists.go language.go lightstem.go stem.go numbers.go words.go
//     propernames.go tokenize.go
//   - weights of words, of texts and of queries: expand.go lexicon.go given.go idf.go prefilter.go pairs.go compound.go
//     weighedquery.go query.go wanted.go
package lexicon

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/pgvector/pgvector-go"
)

// Lexicon is the dimension of word weights. A term's id is the low 24 bits of its CRC-32. Terms with the same id count
// as one.
const Lexicon = 1 << 24

// MaxTerms is how many different terms of a text are kept: those with the highest weight. pgvector takes 16,000.
const MaxTerms = 8_000

// BM25's constants were chosen by measuring chat turns and chunks of files together. A text's length is compared with a
// constant instead of the corpus' mean, so that a stored weight stays valid. Texts with fewer terms than floorTerms
// count as that long.
const (
	saturation  = 1.2
	lengthShare = 0.75
	pivotTerms  = 40
	floorTerms  = 20
)

// Lex is a text as rows store it for search by words.
type Lex struct {
	// Vector has the weight of each term, for a column of type sparsevec(16777216). Its indices are 0-based and ascending
	// here; Postgres prints them 1-based. A text without terms has the vector {}/16777216. That is a valid value: its
	// inner product with any query is 0. (pgvector-go sends and reads it in binary only; its text parser does not take
	// the empty vector.)
	Vector pgvector.SparseVector
	// Terms are the vector's indices, for a column of type int[] under GIN. Never nil, so never NULL. It shares memory
	// with Vector.
	Terms []int32
	// Language is the code of the text's language in ISO 639-1; "" if the text has no letters.
	Language string
}

// Document returns the BM25 weights of a text's terms without the idf, which is part of the query.
func Document(text string) Lex {
	text = compatible(text)
	in := spokenIn(text)
	lex := document(text, in)
	lex.Language = languageIn(text, in)
	return lex
}

// document is Document for a text in compatibility form and in a known language.
func document(text string, in spoken) Lex {
	ids := termIDs(text, in)
	length := len(ids)
	weights := counted(ids)
	for i, w := range weights {
		weights[i].value = float32(Saturated(float64(w.value), float64(length)))
	}
	if in.Language != English {
		weights = marked(weights, in)
	}
	v := sparse(heaviest(weights))
	return Lex{Vector: v, Terms: v.Indices()}
}

// Scale multiplies the weights by a factor above 0.
func (l Lex) Scale(factor float32) {
	values := l.Vector.Values() // shares the vector's memory
	for i := range values {
		values[i] *= factor
	}
}

// Saturated returns BM25's weight of a term that occurs tf times in a text of length terms.
func Saturated(tf, length float64) float64 {
	damp := saturation * (1 - lengthShare + lengthShare*max(length, floorTerms)/pivotTerms)
	return tf * (saturation + 1) / (tf + damp)
}

// ownedBits is how many bits of an owned term hold the term: as many as Lexicon needs.
const ownedBits = 24

// Owned returns terms with their owner's key in the bits above the term. So in an index on the terms of many owners,
// each entry belongs to one owner. A key has at most 39 bits; with key 0 the terms are plain. Never nil.
func Owned(owner int64, terms []int32) []int64 {
	owned := make([]int64, len(terms))
	for i, t := range terms {
		owned[i] = owner<<ownedBits | int64(t)
	}
	return owned
}

// marks and doubts are the ids of terms that say in which language a text is, for sure or not. No query has them.
var (
	marks  = marksOf("\x00")
	doubts = marksOf("\x00?")
)

func marksOf(prefix string) (ids [len(languages)]int32) {
	for l, code := range languages {
		ids[l] = idOf(prefix + code)
	}
	return ids
}

// markWeight is the weight of such a term. It must not be 0, or vectors would lack the term.
const markWeight = 1e-6

// marked adds the term of a language to the weights of a text.
func marked(weights []weight, in spoken) []weight {
	mark := doubts[in.Language]
	if in.sure {
		mark = marks[in.Language]
	}
	i, found := slices.BinarySearchFunc(weights, mark, func(w weight, id int32) int { return cmp.Compare(w.id, id) })
	if found {
		return weights
	}
	return slices.Insert(weights, i, weight{mark, markWeight})
}

// TermIDs returns the ids of a text's terms, ascending, each as often as the text has it.
func TermIDs(text string) []int32 {
	text = compatible(text)
	return termIDs(text, spokenIn(text))
}

func termIDs(text string, in spoken) []int32 {
	ids := make([]int32, 0, 128)
	eachTermIn(text, in, func(t *Term) { ids = append(ids, t.ID) })
	slices.Sort(ids)
	return ids
}

// TermsOf returns the different terms of a text, ordered by id.
func TermsOf(text string) []*Term {
	var all []*Term
	EachTerm(text, func(t *Term) { all = append(all, t) })
	return different(all)
}

// namesOf returns the terms of a text's stop words that may also be names, such as "IT".
func namesOf(text string) []*Term {
	var all []*Term
	eachWord(compatible(text), func(w word) {
		if t := lookup(w.text, English); t.name != nil && len(w.text) > 1 {
			all = append(all, t.name)
		}
	})
	return different(all)
}

// different returns each term once, ordered by id.
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

// heaviest keeps the MaxTerms elements with the highest values, and orders them by id. Of equal values, the lower id is
// kept.
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

// sparse builds a vector from elements that are ordered by id. pgvector-go builds one only from a map or from its wire
// format; the latter costs a tenth.
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
