package compaction

// Identifiers is what tests look for.
func Identifiers(text string) []string { return identifiers(text) }
