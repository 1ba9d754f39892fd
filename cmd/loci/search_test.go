package main

import (
	"testing"

	"github.com/loci-memory/loci/server"
)

// What was searched in place of misspelt words is said.
func TestWhatASearchFoundIsPrinted(t *testing.T) {
	t.Parallel()
	out := newLines()
	found := server.MemorySearch{SearchedFor: "budget offsite", Note: "by words"}
	printFound(out, found)
	if want := "Nothing was found.\nSearched for 'budget offsite'.\nby words\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out, want)
	}
}
