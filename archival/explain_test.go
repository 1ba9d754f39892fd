package archival_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/embed/embedtest"
)

// The best hit's score is the share of the query that it has, so scores of different queries compare. The other hits
// have lower scores.
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

// A query with Explain gets results that say how they were ranked; other queries do not.
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
	if !slices.Contains(terms, "walnut") || !slices.Contains(terms, "configur") || others == 0 ||
		all.Terms[0].Weight <= 0 || len(all.Arms) != 1 || all.Arms[0].Arm != "words" || all.Arms[0].Rows != 2 ||
		all.Arms[0].Best <= 0 || all.Rows != 2 || all.Confidence != got.Hits[0].Score || all.Milliseconds <= 0 {
		t.Errorf("got %+v", all)
	}
}

// A passage with the words next to each other ranks above one with the words apart. The second page continues that
// order.
func TestPassagesWithThePhraseComeFirst(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.insert("A tree, far away, by the mill of the valley behind all the hills, and one single walnut.",
		"The walnut tree, seen from the hills behind the mill of the valley, is far away, single.",
		"The old mill of the valley.")
	q := archival.Query{Text: "walnut tree", AgentID: f.agent, Limit: 1, Explain: true}
	first := f.search(q)
	if len(first.Hits) != 1 || !strings.HasPrefix(first.Hits[0].Text, "The walnut tree") || first.Hits[0].Score > 1 {
		t.Fatalf("got %+v, want the passage with the phrase", first.Hits)
	}
	embedtest.AddsUp(t, first.Hits[0].Explanation, first.Hits[0].Score, "term", "near")
	if b := first.Hits[0].Explanation.Boosts; len(b) != 1 || b[0].Name != "near" || b[0].Value <= 0 {
		t.Errorf("it gains %+v, want something for the phrase", b)
	}
	q.After = first.Hits[0].ID
	if next := f.search(q); len(next.Hits) != 1 || !strings.HasPrefix(next.Hits[0].Text, "A tree") || next.More {
		t.Errorf("behind it is %+v, want the other passage with the words alone", next)
	}
}

// A word that no passage has is replaced by a word that differs in one letter, and the results say so, on later pages
// too. A word that passages have, or that is like no other, is searched as it is written.
func TestMisspeltWordsAreSearchedInAnotherSpelling(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 3 {
		f.insert(fmt.Sprintf("The budget of offsite %d is 4,000 euros.", i))
	}
	f.insert("Lambs graze.")
	for _, tt := range []struct {
		text, spelling string
		hits           int
	}{
		{"bugdet offiste", "budget offsite", 3}, {"Bugdet?", "budget?", 3}, {"budgett of bugdets", "budget of budget", 3},
		{"budget offsite", "", 3}, {"budget saxophone", "", 3}, {"lamps", "", 0}, {"xylophone", "", 0},
		{"what is the", "", 0}, {"offsyte", "offsite", 3}, {"budget 4001", "", 3},
	} {
		q := archival.Query{Text: tt.text, AgentID: f.agent, Limit: 5}
		got := f.search(q)
		if got.SearchedFor != tt.spelling || len(got.Hits) != tt.hits {
			t.Errorf("%q: searched for %q with %d hits, want %q and %d", tt.text, got.SearchedFor, len(got.Hits), tt.spelling,
				tt.hits)
		}
		q.AsWritten = true
		if written := f.search(q); written.SearchedFor != "" || tt.spelling != "" && len(written.Hits) != 0 {
			t.Errorf("%q as it is written: %d hits for %q, want none", tt.text, len(written.Hits), written.SearchedFor)
		}
		q.AsWritten, q.Offset = false, 2
		if second := f.search(q); tt.hits == 3 && (len(second.Hits) != 1 || second.SearchedFor != tt.spelling) {
			t.Errorf("%q from the third on: %d hits for %q, want 1 for %q", tt.text, len(second.Hits), second.SearchedFor,
				tt.spelling)
		}
	}
}

// A reranker orders the best passages, on all pages. It is not used if the query asks for words alone or meaning alone.
func TestARerankerOrdersPassages(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.store = archival.New(f.pool, archival.Options{Reranker: embedtest.Preferring("river")})
	f.insert("The walnut tree.", "A walnut tree by the old mill.", "There are a walnut and some tree by the river.")
	q := archival.Query{Text: "walnut tree", AgentID: f.agent, Limit: 2, Explain: true}
	got := f.search(q)
	if len(got.Hits) != 2 || !strings.HasSuffix(got.Hits[0].Text, "river.") || got.Hits[0].Score < got.Hits[1].Score {
		t.Fatalf("got %+v, want the passage about the river first", got.Hits)
	}
	embedtest.AddsUp(t, got.Hits[0].Explanation, got.Hits[0].Score, "term")
	embedtest.AddsUp(t, got.Hits[1].Explanation, got.Hits[1].Score)
	if e := got.Explanation.Rerank; e == nil || e.Rows != 3 || e.Model != "preferring-river" {
		t.Errorf("the reranking is explained as %+v", e)
	}
	if e := got.Hits[0].Explanation.Rerank; e == nil || *e != 1 {
		t.Errorf("the first hit is judged as %v, want 1", e)
	}
	q.After = got.Hits[1].ID
	if next := f.search(q); len(next.Hits) != 1 || next.Hits[0].ID == got.Hits[0].ID {
		t.Errorf("the next page is %+v, want the last passage", next.Hits)
	}
	q.After, q.WordsOnly = "", true
	if got := f.search(q); strings.HasSuffix(got.Hits[0].Text, "river.") || got.Explanation.Rerank != nil {
		t.Errorf("by words alone: got %+v", got.Hits)
	}
}
