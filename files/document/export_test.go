package document

// Keeps reports whether a reader keeps its compiled programs.
func Keeps(r Readers) bool { return r.compiled() != nil }
