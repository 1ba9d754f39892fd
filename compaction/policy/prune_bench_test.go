package policy_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/policy"
)

// BenchmarkPrune measures each preset before a prompt of 2,000 messages with 750,000 tokens, in a window of a million:
// once without earlier edits, and once with the edits of the previous prompt and one more turn.
func BenchmarkPrune(b *testing.B) {
	v := window(1_000_000)
	for i := 0; len(v.Messages) < 2000; i++ {
		if i%10 == 0 {
			v.user(200)
		}
		chars := 1000
		if i%5 == 0 {
			chars = 12_000
		}
		v.calling("read_file", fmt.Sprintf(`{"path":"src/file_%d.go"}`, i%97), fmt.Sprint(i%700)+sea(chars))
	}
	at := policy.Moment{Now: epoch.Add(24 * time.Hour), Touched: epoch.Add(23 * time.Hour), Sent: 1990}
	for _, p := range policy.Presets() {
		b.Run(p.Name+"/first", func(b *testing.B) { prunings(b, p.Policy(), v.View, at) })
		next := *v
		after, _ := p.Policy().Prune(v.View, at)
		next.Edits = after.Edits
		next.says(200).user(200)
		b.Run(p.Name+"/next", func(b *testing.B) { prunings(b, p.Policy(), next.View, at) })
	}
}

// prunings prunes a view again and again, and reports the processor time of each time.
func prunings(b *testing.B, p policy.Policy, v clip.View, at policy.Moment) {
	var before, after syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &before); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		p.Prune(v, at)
	}
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &after); err != nil {
		b.Fatal(err)
	}
	used := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
	b.ReportMetric(float64(used)/1e6/float64(b.N), "cpu-ms/op")
}
