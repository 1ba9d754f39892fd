package embed

// ownedBits is how many bits of an owned term are the word's: as many as the Lexicon needs.
const ownedBits = 24

// Owned are terms as an index has them whose rows belong to many owners: with the owner's key in the bits above the
// word's, so that an entry of the index is one owner's. A key has at most 39 bits. Never nil.
func Owned(owner int64, terms []int32) []int64 {
	owned := make([]int64, len(terms))
	for i, t := range terms {
		owned[i] = owner<<ownedBits | int64(t)
	}
	return owned
}

// Words are the terms of rows without their owners, as NewIDF takes them.
func Words(rows [][]int64) [][]int32 {
	words := make([][]int32, len(rows))
	for i, row := range rows {
		words[i] = make([]int32, len(row))
		for k, t := range row {
			words[i][k] = int32(t & (Lexicon - 1)) //nolint:gosec // 24 bits
		}
	}
	return words
}

// What candidates from an index should be: more are read faster one after the other.
const (
	candidateShare = 0.03   // of the scope's rows
	candidateRows  = 10_000 // of more than the rarest term
	candidateTerms = 8      // of a query
)

// Candidates are as many of a query's terms, the rarest first, as few rows of the scope have: its rows that have one of
// them are read through an index, and ranked. None if even the rarest is too frequent.
func (f *IDF) Candidates(q Query) []int32 {
	n := 0
	for n < min(len(q.Rarest), candidateTerms) {
		share := f.Share(q.Rarest[:n+1])
		if share > candidateShare || n > 0 && share*float64(f.rows) > candidateRows {
			break
		}
		n++
	}
	return q.Rarest[:n]
}
