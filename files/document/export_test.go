package document

// Keeps reports whether a reader keeps what it compiles.
func Keeps(r Readers) bool { return r.compiled() != nil }
