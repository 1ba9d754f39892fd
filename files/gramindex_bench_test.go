package files_test

import (
	"fmt"
	"testing"

	"github.com/loci-memory/loci/files"
)

// BenchmarkIndexText is the way of 20 MB of text from the database into the index there.
func BenchmarkIndexText(b *testing.B) {
	w := newWorld(b, files.Options{})
	w.SetGramDue(1)
	folder, text := w.folder("f"), benchText()
	for i := range 4 {
		w.store(folder, fmt.Sprintf("%d.txt", i), text[i*len(text)/4:(i+1)*len(text)/4])
	}
	b.SetBytes(int64(len(text)))
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
