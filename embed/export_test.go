package embed

// Terms returns the terms of a text.
func Terms(text string) []string {
	var terms []string
	eachTerm(text, func(t *term) { terms = append(terms, t.text) })
	return terms
}
