package document

// Keeps reports whether a reader keeps its compiled programs.
func Keeps(r Readers) bool { return r.compiled() != nil }

// Omitted is a collector of omissions.
type Omitted struct{ omissions }

// Add notes n things of a kind at a numbered place, at a named one, or (without a word) at none.
func (o *Omitted) Add(n int, kind, word string, number int, name string) {
	at := named(word, name)
	if number > 0 {
		at = numbered(word, number)
	}
	o.addAt(kind, at, n)
}

// List returns what was noted.
func (o *Omitted) List() []Omission { return o.list() }
