package files_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/embed/lexicon"
	"github.com/loci-memory/loci/files"
)

// Overlapping chunks are one hit with the text of all their lines. The next page starts after them.
func TestChunksThatOverlapAreOneHit(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	folder := fx.folder("f")
	var lines []string
	for i := range 400 {
		lines = append(lines, fmt.Sprintf("Line %d tells of the walnut tree and of nothing else at all.", i+1))
	}
	fx.upload(folder, "long.txt", strings.Join(lines, "\n"))
	agent := fx.agentWith(folder)
	covered, hits := map[int]bool{}, 0
	for offset := 0; ; offset++ {
		got, err := fx.Search(t.Context(), fx.org, files.Of(agent), files.Query{Text: "walnut", Limit: 1, Offset: offset})
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Hits) == 0 {
			break
		}
		hit := got.Hits[0]
		hits++
		if want := strings.Join(lines[hit.FirstLine-1:hit.LastLine], "\n"); strings.TrimSpace(hit.Text) != want {
			t.Errorf("hit %d of lines %d to %d has the text %q, want %q", offset, hit.FirstLine, hit.LastLine, hit.Text, want)
		}
		for line := hit.FirstLine; line <= hit.LastLine; line++ {
			covered[line] = true
		}
	}
	chunks := fx.rows("chunks")
	if len(covered) != len(lines) || chunks < 6 || 3*hits > 2*chunks {
		t.Errorf("%d of %d lines are in %d hits, of %d chunks, want all in two thirds as many hits or fewer",
			len(covered), len(lines), hits, chunks)
	}
}

// No line of a file is in two hits, and no range begins or ends with a blank line, even if a merged hit would be too
// long.
func TestHitsOfAFileRepeatNoLine(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	folder := fx.folder("f")
	var text strings.Builder
	for i := range 30 {
		fmt.Fprintf(&text, "Paragraph %d has the walnut%s. %s\n\n", i+1, strings.Repeat(" walnut", i*7%5),
			strings.Repeat("It tells of hills, of the mill and of the old river there. ", 3))
	}
	fx.upload(folder, "long.txt", text.String())
	agent := fx.agentWith(folder)
	lines := strings.Split(text.String(), "\n")
	for _, limit := range []int{1, 3, 50} {
		seen, hits, most := map[int]int{}, 0, 0
		for offset, more := 0, true; more; offset += limit {
			got, err := fx.Search(t.Context(), fx.org, files.Of(agent),
				files.Query{Text: "walnut", Limit: limit, Offset: offset})
			if err != nil {
				t.Fatal(err)
			}
			for _, hit := range got.Hits {
				if want := strings.Join(lines[hit.FirstLine-1:hit.LastLine], "\n"); hit.Text != strings.TrimSpace(want) ||
					lines[hit.LastLine-1] == "" || lines[hit.FirstLine-1] == "" {
					t.Errorf("lines %d to %d have the text %q, want %q", hit.FirstLine, hit.LastLine, hit.Text, want)
				}
				for line := hit.FirstLine; line <= hit.LastLine; line++ {
					seen[line]++
				}
				most = max(most, len(hit.Text))
			}
			hits, more = hits+len(got.Hits), got.More
		}
		for line := 1; line < len(lines)-1; line += 2 {
			if seen[line] != 1 {
				t.Errorf("by pages of %d line %d is in %d hits, want 1", limit, line, seen[line])
			}
		}
		if most > 4000 || hits > 4 {
			t.Errorf("by pages of %d: got %d hits of up to %d bytes, want 4 of 4,000", limit, hits, most)
		}
	}
}

// Two words may share a term id in the lexicon. A search for one does not find chunks that have only the other.
func TestAWordFindsNoChunkWithAnotherOfItsPlace(t *testing.T) {
	t.Parallel()
	a, b := "xxzlzq", "xvdbbcq" // a pair that Colliding found
	if !slices.Equal(lexicon.TermIDs(a), lexicon.TermIDs(b)) {
		a, b = embedtest.Colliding(t)
	}
	fx := newFixture(t)
	folder := fx.folder("f")
	fx.upload(folder, "a.txt", "Here stands "+a+" alone.")
	fx.upload(folder, "b.txt", "Here stands "+b+" alone.")
	agent := fx.agentWith(folder)
	for word, file := range map[string]string{a: "f/a.txt", b: "f/b.txt"} {
		got, err := fx.Search(t.Context(), fx.org, files.Of(agent), files.Query{Text: word, Limit: 5})
		if err != nil || len(got.Hits) != 1 || got.Hits[0].FileName != file || got.More {
			t.Errorf("%q finds %v (%v), want %s alone", word, got, err, file)
		}
	}
}

// Hits say how they were ranked, and their scores say how much of the query they have.
func TestFilesExplainTheirRanks(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	folder := fx.folder("f")
	fx.upload(folder, "a.txt", "The walnut tree stands by the river.")
	fx.upload(folder, "b.txt", "A tree, and far from it, behind the hills and the old mill of the valley, one walnut.")
	agent := fx.agentWith(folder)
	got, err := fx.Search(t.Context(), fx.org, files.Of(agent), files.Query{Text: "walnut tree", Limit: 5, Explain: true})
	if err != nil || len(got.Hits) != 2 || got.Hits[0].FileName != "f/a.txt" {
		t.Fatalf("got %+v (%v)", got, err)
	}
	embedtest.AddsUp(t, got.Hits[0].Explanation, got.Hits[0].Score, "term", "near")
	embedtest.AddsUp(t, got.Hits[1].Explanation, got.Hits[1].Score)
	e := got.Hits[0].Explanation
	if len(e.Boosts) != 1 || e.Boosts[0].Name != "near" || e.Search != got.Explanation || len(e.Terms) != 2 ||
		got.Hits[0].Score <= got.Hits[1].Score || got.Hits[0].Score > 1 {
		t.Errorf("got %+v and %+v", e, got.Hits)
	}
}

// A reranker reorders the best chunks, even if only a file's name has what it prefers.
func TestARerankerOrdersChunks(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	fx.Store = fx.newStore(fx.pool, files.Options{Reranker: embedtest.Preferring("river")})
	folder := fx.folder("f")
	fx.upload(folder, "a.txt", "The walnut tree.")
	fx.upload(folder, "river.txt", "A tree, and far from it, behind the hills and the old mill of the valley, one walnut.")
	agent := fx.agentWith(folder)
	got, err := fx.Search(t.Context(), fx.org, files.Of(agent), files.Query{Text: "walnut tree", Limit: 5, Explain: true})
	if err != nil || len(got.Hits) != 2 || got.Hits[0].FileName != "f/river.txt" ||
		got.Hits[0].Score < got.Hits[1].Score {
		t.Fatalf("got %+v (%v), want river.txt first", got.Hits, err)
	}
	embedtest.AddsUp(t, got.Hits[0].Explanation, got.Hits[0].Score, "rerank")
	embedtest.AddsUp(t, got.Hits[1].Explanation, got.Hits[1].Score)
	if e := got.Explanation.Rerank; e == nil || e.Rows != 2 || *got.Hits[0].Explanation.Rerank != 1 {
		t.Errorf("the reranking is explained as %+v and %+v", e, got.Hits[0].Explanation)
	}
}
