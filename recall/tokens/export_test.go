package tokens

// Counted returns the tokens of a run of letters or of punctuation, counted without what is remembered.
func Counted(run string) int {
	cost := costOfWord
	if kinds[run[0]] == mark {
		cost = costOfMarks
	}
	return (cost(run, true) + oneToken - 1) / oneToken
}
