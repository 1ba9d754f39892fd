package files_test

import (
	"fmt"
	"testing"

	"github.com/loci-memory/loci/files"
)

// BenchmarkIndexText reads 20 MB of text from the database and indexes it there.
func BenchmarkIndexText(b *testing.B) {
	w := newWorld(b, files.Options{})
	w.SetIndexChars(1)
	folder, text := w.folder("f"), manyLines(250_000)
	for i := range 4 {
		w.store(folder, fmt.Sprintf("%d.txt", i), text)
	}
	b.SetBytes(int64(4 * len(text)))
	for b.Loop() {
		if w.indexText() != 1 {
			b.Fatal("no block was made")
		}
		b.StopTimer()
		for _, sql := range []string{`DELETE FROM gram_blocks`, `UPDATE files SET gram_generation = 0`} {
			if _, err := w.pool.Exec(b.Context(), sql); err != nil {
				b.Fatal(err)
			}
		}
		b.StartTimer()
	}
}
