package chunker_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loci-memory/loci/chunker"
	"github.com/loci-memory/loci/db/dbtest/golden"
)

func TestSplitOfDocumentsCutsWhereAReaderWould(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		size, overlap int
	}{{"manual.md", 90, 15}, {"queue.go", 90, 15}, {"people.csv", 45, 20}, {"tale.txt", 80, 15}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join("testdata", c.name))
			if err != nil {
				t.Fatal(err)
			}
			o := chunker.Options{Kind: chunker.KindOf(c.name, ""), SizeTokens: c.size, OverlapTokens: c.overlap}
			chunks := chunker.Split(string(text), o)
			checkChunks(t, string(text), o, chunks)
			checkGolden(t, filepath.Join("testdata", c.name+".golden"), show(chunks))
		})
	}
}

// show draws chunks. Each line of a body stands after a bar, each line of an overlap after a tilde.
func show(chunks []chunker.Chunk) string {
	var b strings.Builder
	for i, c := range chunks {
		overlap, body := c.Text[:c.OverlapBytes], c.Text[c.OverlapBytes:]
		fmt.Fprintf(&b, "chunk %d: lines %d-%d, bytes %d-%d, %d tokens and %d of overlap\n", i, c.FirstLine, c.LastLine,
			c.StartByte, c.EndByte,
			chunker.Estimate(body), chunker.Estimate(overlap))
		fmt.Fprintf(&b, "heading: %q\n", c.Heading)
		bars(&b, "~", overlap)
		bars(&b, "|", body)
		b.WriteByte('\n')
	}
	return b.String()
}

// bars draws the lines of a text, each after bar. If a line does not end within the text, an ellipsis follows it.
func bars(b *strings.Builder, bar, text string) {
	for line := range strings.Lines(text) {
		whole, ended := strings.CutSuffix(line, "\n")
		b.WriteString(bar + whole)
		if !ended {
			b.WriteString("…")
		}
		b.WriteByte('\n')
	}
}

// checkGolden compares got with a golden file, or writes the file.
func checkGolden(t *testing.T, path, got string) {
	t.Helper()
	golden.Check(t, path, got)
}
