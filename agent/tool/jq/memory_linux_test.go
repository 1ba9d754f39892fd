package jq_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/loci-memory/loci/agent/tool/jq"
)

// A child never uses more than its permitted memory plus the pages of its program. The kernel enforces that, however
// fast an expression takes memory.
func TestTheKernelKeepsAChildsMemory(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, expression := range []string{`"x" * 1000000000 | length`, `[limit(1000000000; repeat([1,2,3,4]))] | length`,
		`reduce range(60) as $i ("xxxx"; . + .) | length`, `[range(1000000000)] | length`} {
		peak := t.TempDir() + "/peak"
		r := jq.New(self, "run-jq-measured", peak)
		r.Patience = time.Minute
		q := jq.Query{Expression: expression, Text: "{}", MaxResults: 1, MaxBytes: 100}
		if _, err := r.Run(t.Context(), 1, q); err == nil {
			t.Errorf("%s ends with a result", expression)
		}
		raw, err := os.ReadFile(peak)
		if err != nil {
			t.Fatal(err)
		}
		kib, err := strconv.Atoi(string(raw))
		if err != nil {
			t.Fatal(err)
		}
		if most := jq.DefaultMemoryBytes>>10 + 96<<10; kib > most {
			t.Errorf("%s held %d KiB, want at most %d", expression, kib, most)
		}
	}
}
