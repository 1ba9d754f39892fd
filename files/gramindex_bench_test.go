package files_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

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

// store puts the text of a file where a search reads it, and nothing else.
func (w *world) store(folder files.Folder, name, text string) {
	w.t.Helper()
	var key int64
	if err := w.pool.QueryRow(w.t.Context(), `
		INSERT INTO files (org, folder_key, name, original_name, media_type, size_bytes, sha256, generation, chars)
		VALUES ($1, $2, $3, $3, 'text/plain', $4, '', 1, $4) RETURNING key`, org, folder.Key, name, len(text)).Scan(&key); err != nil {
		w.t.Fatal(err)
	}
	var rows [][]any
	for g := range files.Segments(text) {
		rows = append(rows, []any{key, 1, g.Ordinal, org, g.FirstLine, g.Lines, g.Continues, g.Text})
	}
	columns := []string{"file_key", "generation", "ordinal", "org", "first_line", "lines", "continues", "text"}
	if _, err := w.pool.CopyFrom(w.t.Context(), pgx.Identifier{"file_segments"}, columns, pgx.CopyFromRows(rows)); err != nil {
		w.t.Fatal(err)
	}
}
