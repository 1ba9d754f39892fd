package main

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/db/dbtest/golden"
)

func TestAReportReadsAsATable(t *testing.T) {
	t.Parallel()
	r := Report{Scale: "small", Machine: Machine{At: "2026-01-02T03:04:05Z", CPU: "Some CPU", Cores: 2,
		System: "linux/amd64", Load: "0.10",
		Go: "go1.26", Postgres: "postgres (PostgreSQL) 17.1", Commit: "abcdef0"}}
	fast := Row{What: "ingestion", Unit: "MB/s", AtLeast: 0.5, Versus: "COPY", Note: "3 files"}
	fast.measured(3, 5)
	fast.measured(4, 4)
	fast.measured(2, 8)
	fast.settle(median)
	slow := Row{What: "grep", Unit: "ms", AtMost: 1, Versus: "rg"}
	for pattern, times := range map[string][2]float64{"a|b": {90, 100}, "c": {400, 123.4}} {
		part := Row{Note: "worst of its patterns: `" + pattern + "`"}
		part.measured(times[0], times[1])
		part.settle(least)
		slow.keepWorse(pattern, part)
	}
	memory := Row{What: "memory", Unit: "MB", AtMost: 60, Loci: Side{Raw: []float64{59.96}}}
	memory.settle(median)
	r.add(fast, slow, memory)
	r.skip("pgbench is not installed", Row{What: "search", Unit: "/s", AtLeast: 0.6, Versus: "SQL"})

	golden.Check(t, filepath.Join("testdata", "report.md"), r.Markdown())
}

func TestTargets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		row  Row
		want bool
	}{
		{"a share that is reached", Row{AtLeast: 0.5, Versus: "COPY", Loci: Side{Value: 5}, Against: Side{Value: 10}}, true},
		{"a share that is missed", Row{AtLeast: 0.5, Versus: "COPY", Loci: Side{Value: 4.9}, Against: Side{Value: 10}},
			false},
		{"a multiple that is kept", Row{AtMost: 2, Versus: "SQL", Loci: Side{Value: 20}, Against: Side{Value: 10}}, true},
		{"a multiple that is exceeded", Row{AtMost: 2, Versus: "SQL", Loci: Side{Value: 20.1}, Against: Side{Value: 10}},
			false},
		{"a value that is kept", Row{AtMost: 60, Loci: Side{Value: 60}}, true},
		{"a value that is exceeded", Row{AtMost: 60, Loci: Side{Value: 60.1}}, false},
		{"nothing to compare with", Row{AtMost: 2, Versus: "SQL", Loci: Side{Value: 20}}, false},
	} {
		if got := c.row.met(); got != c.want {
			t.Errorf("%s: met = %t, want %t", c.name, got, c.want)
		}
	}
}

func TestThinKeepsEachTenthOfTheRuns(t *testing.T) {
	t.Parallel()
	r := Row{Note: "p50"}
	for i := range 101 {
		r.measured(float64(100-i), 1)
	}
	r.thin()
	want := []float64{0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100}
	if diff := cmp.Diff(want, r.Loci.Raw); diff != "" || r.Note != "p50; raw: each tenth of the runs, sorted" {
		t.Errorf("note %q (-want +got):\n%s", r.Note, diff)
	}
}

func TestNumbersHaveAboutThreeDigits(t *testing.T) {
	t.Parallel()
	for value, want := range map[float64]string{1234.5: "1234", 99.96: "100.0", 12.34: "12.3",
		1.005: "1.00", 0.1: "0.10"} {
		if got := number(value); got != want {
			t.Errorf("number(%g) = %s, want %s", value, got, want)
		}
	}
}
