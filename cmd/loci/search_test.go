package main

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/loci-memory/loci/embed/rank"
	"github.com/loci-memory/loci/server"
)

// A query in a URL may have as many characters as one in a body, in each script.
func TestALongQueryInAURLIsSearched(t *testing.T) {
	t.Parallel()
	p := tenant(t)
	base := "/v1/agents/" + call[identified](p, "POST", "/v1/agents/", map[string]any{}).ID
	for _, route := range []string{"/memory-search?query=", "/archival-memory/search?query="} {
		for _, letter := range []string{"가", "𝔸", "a"} {
			query := strings.Repeat(letter, rank.MaxQueryChars)
			if status, answer := p.send("GET", base+route+url.QueryEscape(query), nil); status != http.StatusOK {
				t.Errorf("%s%s…: got %d %.300s, want 200", route, letter, status, answer)
			}
			status, answer := p.send("GET", base+route+url.QueryEscape(query+letter), nil)
			if status/100 != 4 || !strings.Contains(string(answer), "32001 characters") {
				t.Errorf("%s%s…, one more: got %d %.300s, want the number of characters", route, letter, status, answer)
			}
		}
	}
}

// If a search replaces misspelt words, the output says by which words.
func TestWhatASearchFoundIsPrinted(t *testing.T) {
	t.Parallel()
	out := newLines()
	found := server.MemorySearch{SearchedFor: "budget offsite", Note: "by words"}
	printFound(out, found)
	if want := "Nothing was found.\nSearched for 'budget offsite'.\nby words\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out, want)
	}
}
