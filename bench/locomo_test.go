package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEvidenceAsPeopleWriteIt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		texts []string
		want  []string
	}{
		{"turns", []string{"D8:6", "D9:17"}, []string{"D8:6", "D9:17"}},
		{"two in one text", []string{"D8:6; D9:17"}, []string{"D8:6", "D9:17"}},
		{"a colon too many, a nought too many", []string{"D:11:26", "D30:05"}, []string{"D11:26", "D30:5"}},
		{"one twice", []string{"D8:6", "D8:6"}, []string{"D8:6"}},
		{"what is no turn", []string{"D", "the end"}, nil},
	} {
		if diff := cmp.Diff(tt.want, turnsNamed(tt.texts)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
