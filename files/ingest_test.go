package files_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/files"
)

func TestAFileGoesFromUploadToSearch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, files.Options{})
	notes := w.folder("notes")
	text := "# Tides\n\nThe moon pulls the sea.\r\n\r\n## Springs\n\nAt new moon the tide is highest.\n"
	f := w.upload(notes, "tides.md", text)
	if f.Status != files.Completed || f.ErrorMessage != nil || f.TotalChunks == 0 || f.ChunksEmbedded != f.TotalChunks {
		t.Fatalf("got %+v, want it completed with chunks", f)
	}
	want := "# Tides\n\nThe moon pulls the sea.\n\n## Springs\n\nAt new moon the tide is highest.\n"
	if diff := cmp.Diff(want, w.content(notes, f)); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
	agent := w.agentWith(notes)
	got, err := w.Search(t.Context(), org, agent, files.Query{Text: "when is the tide highest", Limit: 3})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Hits) == 0 || got.Hits[0].FileName != "notes/tides.md" || got.Ranking != files.ByWords {
		t.Errorf("search: got %+v", got)
	}
}
