package lab_test

import (
	"syscall"
	"testing"

	"github.com/loci-memory/loci/compaction/lab"
	"github.com/loci-memory/loci/compaction/policy"
)

// BenchmarkAThousandTurns replays a session of 1,000 turns (4,000 messages, 2,000 prompts) under all presets, without a
// model. It reports the processor time per round of replays.
func BenchmarkAThousandTurns(b *testing.B) {
	var before, after syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &before); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		session := lab.NewSession(work(1_000))
		for _, p := range policy.Presets() {
			under := lab.Settings{Name: p.Name, Policy: p.Policy(), Window: 128_000, Prices: policy.UsualPrices}
			if _, err := lab.ReplayOf(b.Context(), session, under); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &after); err != nil {
		b.Fatal(err)
	}
	used := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
	b.ReportMetric(float64(used)/1e9/float64(b.N), "cpu-s/op")
}
