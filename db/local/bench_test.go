package local_test

import (
	"testing"

	"github.com/loci-memory/loci/db/local"
)

// BenchmarkFirstStart measures from an empty home to a database that answers, with everything written to disk, and its
// stop.
func BenchmarkFirstStart(b *testing.B) {
	for b.Loop() {
		cycle(b, newHome(b))
	}
}

// BenchmarkRestart measures from a stopped cluster to a database that answers, and its stop.
func BenchmarkRestart(b *testing.B) {
	home := newHome(b)
	cycle(b, home)
	for b.Loop() {
		cycle(b, home)
	}
}

func cycle(b *testing.B, home string) {
	b.Helper()
	s, err := local.Start(b.Context(), local.Options{Home: home})
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Stop(b.Context()); err != nil {
		b.Fatal(err)
	}
}
