package embedtest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/loci-memory/loci/embed/rank"
)

// Quality measures a ranking on questions: the share of their evidence among the first 5 and 10 hits, and the mean
// reciprocal rank of the first hit that is evidence.
type Quality struct {
	n             int
	at5, at10, rr float64
}

// Add counts a question. found are the hits, best first; evidence are the right ones.
func (q *Quality) Add(found, evidence []string) {
	q.n++
	share := func(k int) float64 {
		hits := 0
		for _, e := range evidence {
			if slices.Contains(found[:min(k, len(found))], e) {
				hits++
			}
		}
		return float64(hits) / float64(len(evidence))
	}
	q.at5 += share(5)
	q.at10 += share(10)
	if i := slices.IndexFunc(found, func(id string) bool { return slices.Contains(evidence, id) }); i >= 0 {
		q.rr += 1 / float64(i+1)
	}
}

// QualityHead is the heading of a table of qualities.
const QualityHead = "questions    ranking     n    R@5  R@10   MRR\n"

// Row returns one line of that table: the questions, the ranking, the number of questions, and the measures.
func (q *Quality) Row(of, ranking string) string {
	n := float64(q.n)
	return fmt.Sprintf("%-12s %-8s %4d  %5.1f %5.1f %5.3f\n", of, ranking, q.n, 100*q.at5/n, 100*q.at10/n, q.rr/n)
}

// AddsUp checks that the parts of a hit's score add up to it, and that there are parts of each of the given kinds.
func AddsUp(t testing.TB, e *rank.HitExplanation, score float64, kinds ...string) {
	t.Helper()
	if e == nil {
		t.Error("the hit is not explained")
		return
	}
	sum, has := 0.0, map[string]bool{}
	for _, a := range e.Added {
		sum += a.Value
		has[a.Of] = true
	}
	if math.Abs(sum-score) > 1e-6 || e.Score != score {
		t.Errorf("a score of %v is explained as %v, and adds up to %v: %+v", score, e.Score, sum, e.Added)
	}
	for _, kind := range kinds {
		if !has[kind] {
			t.Errorf("nothing of a hit's score is of its %s: %+v", kind, e.Added)
		}
	}
}
