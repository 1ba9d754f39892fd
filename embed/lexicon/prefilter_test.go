package lexicon_test

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/embed/lexicon"
)

// The prefilter of a term passes each word of the term: words of the lists, of source code, and random ones with
// endings that the stemmer knows.
func TestAPrefilterPassesEachWordOfItsTerms(t *testing.T) {
	t.Parallel()
	words := lexicon.ListedWords()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output() // -trimpath hides it
	if err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(root)), "src", "net", "*", "*.go"))
	if err != nil || len(sources) == 0 {
		t.Fatalf("no source code of Go is found: %v", err)
	}
	for _, name := range sources {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		words = append(words, lexicon.Words(string(text))...)
	}
	random := rand.New(rand.NewPCG(5, 5))
	endings := strings.Fields("s es ed ing ies ied y ly ying yed ys eed edly ingly ational ization ss us e er est able")
	for range scale.Pure(20_000, 200_000) {
		word := make([]byte, 1+random.IntN(4))
		for i := range word {
			word[i] = "aeiouybcdlstxAEYÜ1"[random.IntN(18)]
		}
		words = append(words, string(word)+endings[random.IntN(len(endings))], string(word))
	}
	slices.Sort(words)
	for _, word := range slices.Compact(words) {
		if !lexicon.PrefilterPasses(word, word) {
			t.Fatalf("the sieve of %q holds the word back", word)
		}
	}
	for _, word := range []string{"river", "Concerto", "xylophone"} {
		if lexicon.PrefilterPasses("walnut", word) {
			t.Errorf("the sieve of walnut passes %q", word)
		}
	}
}
