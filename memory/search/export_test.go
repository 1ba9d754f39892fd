package search

// Ranked returns the best hits of several memories; each list has its best hit first.
func (q Query) Ranked(memories ...[]MemoryFound) []MemoryFound {
	var arms []found
	for _, hits := range memories {
		arms = append(arms, found{hits: hits})
	}
	return q.ranked(arms)
}

// Known returns the place of the hits of a near layer that answers the query.
func (q Query) Known(hits ...MemoryFound) string { return q.known([]found{{hits: hits}}) }

// Best returns the hits that share words with the query.
func (q Query) Best(hits ...MemoryFound) []MemoryFound { return q.best(hits) }

// BestLines returns the part of a text around the line with the most words of the query.
func (q Query) BestLines(text string) (part string, first, last int) { return q.bestLines(text) }

// Names reports whether a text contains a path or its last name.
func Names(text, of string) bool { return names(text, of) }

// MaxTextBytes is the most bytes of a hit's text.
const MaxTextBytes = maxTextBytes
