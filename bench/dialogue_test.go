package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRecalledIsAMeanOfQuestions(t *testing.T) {
	t.Parallel()
	r := recalled{}
	r.add("single-hop", []string{"x", "a"}, [][]string{{"a"}})
	r.add("single-hop", []string{"x", "x", "x", "x", "x", "b"}, [][]string{{"b"}, {"c"}})
	r.add("adversarial", nil, [][]string{{"a"}})
	want := `| questions | n | recall@5 | @10 | @25 | @50 |
| --- | --- | --- | --- | --- | --- |
| single-hop | 2 | 50.0 | 75.0 | 75.0 | 75.0 |
| adversarial | 1 | 0.0 | 0.0 | 0.0 | 0.0 |
| 1 to 4 | 2 | 50.0 | 75.0 | 75.0 | 75.0 |
| all | 3 | 33.3 | 50.0 | 50.0 | 50.0 |
`
	if diff := cmp.Diff(want, r.table(locomoRows())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEvidenceIsFoundByOneOfItsMessages(t *testing.T) {
	t.Parallel()
	r := recalled{}
	r.add("summarization", []string{"b"}, [][]string{{"a", "b"}, {"c"}})
	if got := r["summarization"].share[0]; got != 0.5 {
		t.Errorf("the share is %v, want 0.5", got)
	}
}
