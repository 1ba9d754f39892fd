package lexicon

// Pair is two terms of a query, in the query's order, and their distance there.
type Pair struct {
	First, Second int32
	Distance      int
}

const nearInText = 3 // greatest distance in a query

// pairsOf returns the pairs of different terms that are near each other in a text.
func pairsOf(text string) (pairs []Pair) {
	var ids []int32
	EachTerm(text, func(t *Term) { ids = append(ids, t.ID) })
	seen := map[[2]int32]bool{}
	for i, first := range ids[:min(len(ids), MaxTerms)] {
		for k, second := range ids[i+1 : min(len(ids), i+1+nearInText)] {
			if pair := [2]int32{first, second}; first != second && !seen[pair] {
				seen[pair] = true
				pairs = append(pairs, Pair{first, second, k + 1})
			}
		}
	}
	return pairs
}
