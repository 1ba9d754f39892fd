package redact

var HasMoreThanSamples = hasMoreThanSamples

// Work redacts a text and returns how many bytes of it were read, not counting placeholders.
func (r *Redactor) Work(text string) (redacted string, bytes int) {
	s := scanner{engine: engineOf(r.o)}
	return r.redact(&s, text), s.work
}

// Keywords returns the keywords of all rules.
func Keywords() (list []string) {
	for _, r := range fullEngine().rules {
		list = append(append(list, r.Exact...), r.Folded...)
	}
	return list
}

// Warm compiles all patterns and returns their number.
func Warm() (patterns int) {
	for _, r := range fullEngine().rules {
		if r.Pattern != "" {
			r.regexp()
			patterns++
		}
	}
	return patterns
}

// Exempting returns the rules that exempt a secret by their exceptions, not counting their lists of words.
func Exempting(secret string) (ids []string) {
	for _, r := range fullEngine().rules {
		exempt := gitleaks().Allow.allows(secret, secret)
		for i := range r.Allow {
			patterns := allowlist{Patterns: r.Allow[i].Patterns}
			exempt = exempt || !r.Allow[i].Match && patterns.allows(secret, secret)
		}
		if exempt {
			ids = append(ids, r.ID)
		}
	}
	return ids
}
