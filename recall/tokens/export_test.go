package tokens

// Counted returns the tokens of a run of letters or of punctuation, without the table of remembered costs.
func Counted(run string) int {
	cost := costOfWord
	if kinds[run[0]] == mark {
		cost = costOfMarks
	}
	return (cost(run, true) + oneToken - 1) / oneToken
}
