package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEvidenceAsPeopleWriteIt(t *testing.T) {
	t.Parallel()
	turns := map[string]string{"D8:6": "a", "D9:17": "b", "D11:26": "c", "D30:5": "d"}
	for _, tt := range []struct {
		name  string
		named []string
		want  []string
	}{
		{"turns", []string{"D8:6", "D9:17"}, []string{"a", "b"}},
		{"two in one text", []string{"D8:6; D9:17"}, []string{"a", "b"}},
		{"a colon too many, a nought too many", []string{"D:11:26", "D30:05"}, []string{"c", "d"}},
		{"one twice", []string{"D8:6", "D8:6"}, []string{"a"}},
		{"what is no turn", []string{"D", "D99:1"}, nil},
	} {
		if diff := cmp.Diff(tt.want, evidenceOf(tt.named, turns)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestRecalledIsAMeanOfQuestions(t *testing.T) {
	t.Parallel()
	r := recalled{}
	r.add(4, []string{"x", "a"}, []string{"a"})
	r.add(4, []string{"x", "x", "x", "x", "x", "b"}, []string{"b", "c"})
	r.add(5, nil, []string{"a"})
	want := `| questions | n | recall@5 | @10 | @25 | @50 |
| --- | --- | --- | --- | --- | --- |
| single-hop | 2 | 50.0 | 75.0 | 75.0 | 75.0 |
| adversarial | 1 | 0.0 | 0.0 | 0.0 | 0.0 |
| 1 to 4 | 2 | 50.0 | 75.0 | 75.0 | 75.0 |
| all | 3 | 33.3 | 50.0 | 50.0 | 50.0 |
`
	if diff := cmp.Diff(want, r.table()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
