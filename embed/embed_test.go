package embed_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/loci-memory/loci/embed"
)

func TestNormalize(t *testing.T) {
	t.Parallel()
	big := float32(math.MaxFloat32)
	tiny := float32(math.SmallestNonzeroFloat32)
	root := float32(math.Sqrt(0.5))
	for _, c := range []struct {
		name    string
		v, want []float32
	}{
		{"a vector keeps its direction", []float32{3, -4}, []float32{0.6, -0.8}},
		{"huge numbers do not overflow", []float32{big, big}, []float32{root, root}},
		{"tiny numbers do not vanish", []float32{tiny, 0}, []float32{1, 0}},
		{"zero has no direction", []float32{0, 0}, nil},
		{"nothing has no direction", nil, nil},
		{"NaN has no direction", []float32{1, float32(math.NaN())}, nil},
		{"infinity has no direction", []float32{1, float32(math.Inf(-1))}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, embed.Normalize(c.v), cmpopts.EquateApprox(0, 1e-6)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}
