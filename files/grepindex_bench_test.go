package files_test

import (
	"fmt"
	"testing"

	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/files"
)

// BenchmarkIndexText reads 20 MB of text from the database and indexes it there.
func BenchmarkIndexText(b *testing.B) {
	fx := newFixtureIn(b, dbtest.New(b), files.Options{})
	fx.SetIndexChars(1)
	folder, text := fx.folder("f"), manyLines(250_000)
	for i := range 4 {
		fx.store(folder, fmt.Sprintf("%d.txt", i), text)
	}
	b.SetBytes(int64(4 * len(text)))
	for b.Loop() {
		if fx.indexText() != 1 {
			b.Fatal("no block was made")
		}
		b.StopTimer()
		for _, sql := range []string{`DELETE FROM gram_blocks`, `UPDATE files SET gram_generation = 0`} {
			if _, err := fx.pool.Exec(b.Context(), sql); err != nil {
				b.Fatal(err)
			}
		}
		b.StartTimer()
	}
}
