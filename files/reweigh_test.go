package files_test

import (
	"fmt"
	"testing"

	"github.com/loci-memory/loci/files"
)

// Chunks that an older version of Loci weighed are weighed anew, by their file's name too, with and without an index of
// words.
func TestChunksOfAnOlderVersionAreWeighedAnew(t *testing.T) {
	t.Parallel()
	const chunks = 450
	fx := newFixture(t, files.Options{})
	folder := fx.stock("f", chunks, nil, func(i int) string { return fmt.Sprintf("entry e%de", i) })
	fx.SetWordRows(300, 100)
	agent := fx.agentWith(folder)
	found := func(text string) int {
		t.Helper()
		got, err := fx.Search(t.Context(), org, agent, files.Query{Text: text, Limit: 5})
		if err != nil {
			t.Fatal(err)
		}
		return len(got.Hits)
	}
	if _, err := fx.pool.Exec(t.Context(), `
		UPDATE chunks SET lex_version = 1, lex = '{}/16777216', terms = '{}' WHERE key > (SELECT min(key) FROM chunks)
	`); err != nil {
		t.Fatal(err)
	}
	if n := found("e77e"); n != 0 {
		t.Fatalf("%d chunks without words are found", n)
	}
	if n, err := fx.IndexWords(t.Context()); err != nil || n != 1 {
		t.Fatalf("got %d segments (%v), want 1", n, err)
	}
	if n, err := fx.ReweighWords(t.Context()); err != nil || n != chunks-1 {
		t.Fatalf("%d chunks are weighed anew (%v), want %d", n, err, chunks-1)
	}
	for _, text := range []string{"e77e", "stock"} {
		if n := found(text); n == 0 {
			t.Errorf("%q is not found", text)
		}
	}
	if n, err := fx.PruneWords(t.Context()); err != nil || n != 1 {
		t.Errorf("%d segments are made anew (%v), want 1", n, err)
	}
	if n := found("e77e"); n != 1 {
		t.Errorf("e77e is found in %d chunks through the index, want 1", n)
	}
	if n, err := fx.ReweighWords(t.Context()); err != nil || n != 0 {
		t.Errorf("then %d chunks are weighed anew (%v), want none", n, err)
	}
}
