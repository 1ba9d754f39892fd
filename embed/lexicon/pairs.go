package lexicon

// Pair is two words of a query, in the query's order, and their distance there. A word is named by the id of its first
// term.
type Pair struct {
	First, Second int32
	Distance      int
}

const nearInText = 3 // greatest distance in a query

// pairsOf returns the pairs of different words that are near each other in a query.
func pairsOf(words []queryWord) (pairs []Pair) {
	seen := map[[2]int32]bool{}
	words = words[:min(len(words), MaxTerms)]
	for i, first := range words {
		for k, second := range words[i+1 : min(len(words), i+1+nearInText)] {
			pair := [2]int32{first[0].ID, second[0].ID}
			if pair[0] != pair[1] && !seen[pair] {
				seen[pair] = true
				pairs = append(pairs, Pair{pair[0], pair[1], k + 1})
			}
		}
	}
	return pairs
}
