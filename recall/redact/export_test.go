package redact

// Work redacts a text and says how many bytes were looked at for it, but for those of placeholders.
func (r *Redactor) Work(text string) (redacted string, bytes int) {
	s := scanner{engine: engineOf(r.o)}
	return r.redact(&s, text), s.work
}

// Keywords are what makes rules look at a text.
func Keywords() (list []string) {
	for _, r := range all().rules {
		list = append(append(list, r.words...), r.folded...)
	}
	return list
}

// Warm compiles what a text of each rule's keywords needs, and says how many patterns there are.
func Warm() (patterns int) {
	for _, r := range all().rules {
		if r.pattern != "" {
			r.regexp()
			patterns++
		}
	}
	return patterns
}
