package files_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/files/document"
)

func TestAFileGoesFromUploadToSearch(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, files.Options{})
	notes := fx.folder("notes")
	text := "# Tides\n\nThe moon pulls the sea.\r\n\r\n## Springs\n\nAt new moon the tide is highest.\n"
	f := fx.upload(notes, "tides.md", text)
	if f.Status != files.Completed || f.ErrorMessage != nil || f.TotalChunks == 0 || f.ChunksEmbedded != f.TotalChunks {
		t.Fatalf("got %+v, want it completed with chunks", f)
	}
	want := "# Tides\n\nThe moon pulls the sea.\n\n## Springs\n\nAt new moon the tide is highest.\n"
	if diff := cmp.Diff(want, fx.content(notes, f)); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
	agent := fx.agentWith(notes)
	got, err := fx.Search(t.Context(), org, agent, files.Query{Text: "when is the tide highest", Limit: 3})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Hits) == 0 || got.Hits[0].FileName != "notes/tides.md" || got.Ranking != files.ByWords {
		t.Errorf("search: got %+v", got)
	}
}

// A server is stopped from outside: what it parsed then is not to blame, however often.
func TestStopsOfTheServerAreNotTheFiles(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, files.Options{})
	folder := fx.folder("f")
	resume := fx.pause()
	f := fx.send(folder, "harmless.txt", "text\n", files.Suffix)
	if _, err := fx.pool.Exec(t.Context(), `
		UPDATE river_job SET attempt = 1000
		WHERE (args ->> 'file_key')::bigint = (SELECT key FROM files WHERE id = $1)`, f.ID); err != nil {
		t.Fatal(err)
	}
	resume()
	if got := fx.await(folder, f); got.Status != files.Completed {
		t.Errorf("after 1000 stops: got %+v, want it completed", got)
	}
}

// A file whose child dies each time is given up.
func TestAFileThatKillsItsChildrenIsGivenUp(t *testing.T) {
	t.Parallel()
	var reads atomic.Int32
	fx := newFixture(t, files.Options{Read: func(context.Context, document.Input) (document.Text, error) {
		reads.Add(1)
		return document.Text{}, fmt.Errorf("%w: its process was killed", document.ErrCutShort)
	}})
	folder := fx.folder("f")
	f := fx.await(folder, fx.send(folder, "harmful.txt", "text\n", files.Suffix))
	if want := "parsing this file takes too long or too much memory; split it into smaller files"; f.Status !=
		files.Failed || f.ErrorMessage == nil || *f.ErrorMessage != want || reads.Load() != 3 {
		t.Errorf("after %d reads: got %+v, want %q after 3", reads.Load(), f, want)
	}
}

// A job that comes twice, or late, changes nothing.
func TestAnOldJobChangesNothing(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, files.Options{})
	folder := fx.folder("f")
	f := fx.upload(folder, "a.txt", "text\n")
	completed := func() int { return fx.count(`SELECT count(*) FROM river_job WHERE state = 'completed'`) }
	embedtest.Eventually(t, "the upload's own job ends", func() bool { return completed() == 1 })
	before := fx.count(`SELECT max(key) FROM chunks`)
	tx, err := fx.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var key int64
	if err := tx.QueryRow(t.Context(), `SELECT key FROM files WHERE id = $1`, f.ID).Scan(&key); err != nil {
		t.Fatal(err)
	}
	for _, args := range []files.ParseArgs{{Org: org, FileKey: key, Generation: 1},
		{Org: org, FileKey: key, Generation: 2}, {Org: org, FileKey: key + 99, Generation: 1}} {
		if _, err := fx.jobs.InsertTx(t.Context(), tx, args, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	embedtest.Eventually(t, "the old jobs end", func() bool { return completed() == 4 })
	if after := fx.count(`SELECT max(key) FROM chunks`); after != before {
		t.Errorf("an old job made chunk %d after %d", after, before)
	}
	if got := fx.await(folder, f); got.Status != files.Completed || got.ErrorMessage != nil {
		t.Errorf("got %+v", got)
	}
}

func TestCharsetsAndHTMLAreRead(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, files.Options{})
	folder := fx.folder("f")
	for name, c := range map[string]struct{ body, want string }{
		"latin1.txt": {"Die Stra\xdfe f\xfchrt \xfcber die Br\xfccke in die sch\xf6ne Altstadt von K\xf6ln.\n",
			"Die Straße führt über die Brücke in die schöne Altstadt von Köln.\n"},
		"utf16.txt": {"\xff\xfeh\x00i\x00\n\x00", "hi\n"},
		"page.html": {"<html><head><title>Tides</title><script>var x = 1</script></head>" +
			"<body><h2>Springs</h2><p>High &amp; low</p></body></html>",
			"# Tides\n\n## Springs\n\nHigh & low"},
		"bom.md": {"\xef\xbb\xbf# Title\r\n", "# Title\n"},
	} {
		f := fx.upload(folder, name, c.body)
		if got := fx.content(folder, f); strings.TrimSpace(got) != strings.TrimSpace(c.want) || f.Status != files.Completed {
			t.Errorf("%s: got %q (%+v), want %q", name, got, f, c.want)
		}
	}
}
