package archival_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/loci-memory/loci/archival"
)

// The best hit's score says how much of the query was found, whatever the query; the others have their shares of it.
func TestScoresOfDifferentQueriesCompare(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	texts := []string{"The walnut tree by the river bears fruit.", "A walnut cake needs flour.", "The plum tree is old."}
	for i := range 30 {
		texts = append(texts, fmt.Sprintf("Entry %d is of another matter.", i))
	}
	f.insert(texts...)
	scores := func(text string) (all []float64) {
		t.Helper()
		for _, h := range f.search(archival.Query{Text: text, AgentID: f.agent, Limit: 10}).Hits {
			all = append(all, h.Score)
		}
		if len(all) == 0 || all[0] > 1 || all[len(all)-1] <= 0 || !slices.IsSortedFunc(all, func(a, b float64) int {
			if a < b {
				return 1
			}
			return 0
		}) {
			t.Fatalf("%q: scores %v, want some from 1 to above 0, the highest first", text, all)
		}
		return all
	}
	good, partly := scores("walnut tree by the river"), scores("walnut concerto of an orchestra for saxophone and harp")
	if good[0] < 0.9 || partly[0] > 0.6 {
		t.Errorf("a text with all words scores %.2f, one with a sixth of them %.2f, want above 0.9 and below 0.6",
			good[0], partly[0])
	}
}

// Results say how they were ranked if the query asks for it.
func TestPassagesExplainTheirRanks(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.insert("The walnut tree by the river.", "The plum tree.")
	q := archival.Query{Text: "config of walnut trees", AgentID: f.agent, Limit: 5}
	if got := f.search(q); got.Explanation != nil || got.Hits[0].Explanation != nil {
		t.Errorf("explained without being asked: %+v", got)
	}
	q.Explain = true
	got := f.search(q)
	first, all := got.Hits[0].Explanation, got.Explanation
	if len(got.Hits) != 2 || first.Search != all || !slices.Equal(first.Terms, []string{"tree", "walnut"}) ||
		first.Words != 1 || got.Hits[1].Explanation.Words >= 1 || got.Hits[1].Explanation.Search != nil {
		t.Errorf("got hits %+v", got.Hits)
	}
	var terms []string
	others := 0
	for _, e := range all.Terms {
		terms = append(terms, e.Term)
		if e.Other {
			others++
		}
	}
	if !slices.Contains(terms, "walnut") || !slices.Contains(terms, "configur") || others == 0 || all.Terms[0].Weight <= 0 ||
		len(all.Arms) != 1 || all.Arms[0].Arm != "words" || all.Arms[0].Rows != 2 || all.Arms[0].Best <= 0 ||
		all.Rows != 2 || all.Confidence != got.Hits[0].Score || all.Milliseconds <= 0 {
		t.Errorf("got %+v", all)
	}
}
