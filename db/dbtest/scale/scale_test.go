package scale_test

import (
	"testing"

	"github.com/loci-memory/loci/db/dbtest/scale"
)

func TestAScaleThatDoesNotExistIsNoScale(t *testing.T) {
	t.Setenv("LOCI_TEST_SCALE", "verfy")
	defer func() {
		if recover() == nil {
			t.Error("a scale that does not exist runs the short tests")
		}
	}()
	scale.Of(1, 2)
}

func TestLongTestsRunAtTheLongScale(t *testing.T) {
	for name, want := range map[string]bool{"": false, "test": false, "long": true} {
		t.Setenv("LOCI_TEST_SCALE", name)
		ran := false
		t.Run("at "+name, func(t *testing.T) {
			scale.Long(t)
			ran = true
		})
		if ran != want {
			t.Errorf("at the scale %q a long test runs: %t", name, ran)
		}
	}
}
