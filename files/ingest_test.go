package files_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/files/document"
)

func TestAFileGoesFromUploadToSearch(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
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
	got, err := fx.Search(t.Context(), fx.org, files.Of(agent), files.Query{Text: "when is the tide highest", Limit: 3})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Hits) == 0 || got.Hits[0].FileName != "notes/tides.md" || got.Ranking != files.ByWords {
		t.Errorf("search: got %+v", got)
	}
}

// If a server is stopped, the file it was parsing is not to blame, however often that happens.
func TestStopsOfTheServerAreNotTheFiles(t *testing.T) {
	t.Parallel()
	fx := newIdleFixture(t, files.Options{})
	folder := fx.folder("f")
	f := fx.send(folder, "harmless.txt", "text\n", files.Suffix)
	fx.exec(`UPDATE river_job SET attempt = 1000 WHERE args @> jsonb_build_object('org', $1::integer)`, fx.org)
	fx.work(files.Queues())
	if got := fx.await(folder, f); got.Status != files.Completed {
		t.Errorf("after 1000 stops: got %+v, want it completed", got)
	}
}

// A file is given up if its child dies each time.
func TestAFileThatKillsItsChildrenIsGivenUp(t *testing.T) {
	t.Parallel()
	var reads atomic.Int32
	fx := newOwnFixture(t, files.Options{Read: func(context.Context, document.Input) (document.Text, error) {
		reads.Add(1)
		return document.Text{}, fmt.Errorf("%w: its process was killed", document.ErrCutShort)
	}}, files.Queues())
	folder := fx.folder("f")
	f := fx.awaitWhere(folder, fx.send(folder, "harmful.txt", "text\n", files.Suffix), func(f files.File) bool {
		fx.exec(`
			UPDATE river_job SET scheduled_at = now()
			WHERE args @> jsonb_build_object('org', $1::integer) AND state = 'available' AND scheduled_at > now()`, fx.org)
		return f.Status == files.Failed
	})
	if want := "the system ended the reading of this file 3 times, as it does when its memory runs out; try it again " +
		"when the machine has more free memory, or split the file"; f.Status != files.Failed ||
		f.ErrorMessage == nil || *f.ErrorMessage != want || reads.Load() != 3 {
		t.Errorf("after %d reads: got %+v, want %q after 3", reads.Load(), f, want)
	}
}

// A machine that has no processor time for a file is not the file's fault, however often that happens.
func TestABusyMachineIsNotTheFilesFault(t *testing.T) {
	t.Parallel()
	var reads atomic.Int32
	fx := newOwnFixture(t, files.Options{Read: func(context.Context, document.Input) (document.Text, error) {
		if reads.Add(1) < 9 {
			return document.Text{}, fmt.Errorf("%w: it was not done in its time", document.ErrBusy)
		}
		return document.Text{Text: "At last.\n"}, nil
	}}, files.Queues())
	folder := fx.folder("f")
	f := fx.awaitWhere(folder, fx.send(folder, "a.txt", "text\n", files.Suffix), func(f files.File) bool {
		fx.exec(`
			UPDATE river_job SET scheduled_at = now(), state = 'available', max_attempts = 5
			WHERE args @> jsonb_build_object('org', $1::integer) AND state IN ('available', 'retryable', 'scheduled')
			  AND scheduled_at > now()`, fx.org)
		return f.Status == files.Failed || f.Status == files.Completed
	})
	if f.Status != files.Completed || reads.Load() != 9 {
		t.Errorf("after %d reads: got %+v, want it completed after 9", reads.Load(), f)
	}
}

// While documents hold all the memory and all the workers that they may have, and others wait for them, a plain text is
// read at once.
func TestPlainTextDoesNotWaitBehindDocuments(t *testing.T) {
	t.Parallel()
	goOn := make(chan bool)
	fx := newOwnFixture(t, files.Options{Read: func(ctx context.Context, in document.Input) (document.Text, error) {
		if in.IsDocument() {
			select {
			case <-goOn:
			case <-ctx.Done():
				return document.Text{}, ctx.Err()
			}
		}
		return document.Text{Text: "The ferry.\n"}, nil
	}}, files.Queues())
	folder := fx.folder("f")
	for i := range 12 {
		fx.send(folder, fmt.Sprintf("%d.pdf", i), "%PDF-1.7\n", files.Suffix)
		fx.send(folder, fmt.Sprintf("%d.html", i), "<!doctype html><p>a page", files.Suffix) // with pictures, perhaps
	}
	for name, lines := range map[string]int{"small.srt": 1, "large.srt": 200_000} {
		if f := fx.upload(folder, name, strings.Repeat("a line\n", lines)); f.Status != files.Completed {
			t.Errorf("got %+v, want it completed", f)
		}
	}
	close(goOn)
}

// A job that comes twice or late changes nothing.
func TestAnOldJobChangesNothing(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	folder := fx.folder("f")
	f := fx.upload(folder, "a.txt", "text\n")
	fx.idle()
	newest := func() int { return fx.count(`SELECT max(key) FROM chunks WHERE org = $1`, fx.org) }
	before := newest()
	tx, err := fx.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var key int64
	if err := tx.QueryRow(t.Context(), `SELECT key FROM files WHERE id = $1`, f.ID).Scan(&key); err != nil {
		t.Fatal(err)
	}
	for _, args := range []files.ParseArgs{{Org: fx.org, FileKey: key, Generation: 1},
		{Org: fx.org, FileKey: key, Generation: 2}, {Org: fx.org, FileKey: key + 1<<40, Generation: 1}} {
		if _, err := fx.jobs.InsertTx(t.Context(), tx, args, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	fx.idle()
	if n := fx.jobsWhere("state = 'completed'"); n != 4 {
		t.Errorf("%d jobs are completed, want the upload's and three old ones", n)
	}
	if after := newest(); after != before {
		t.Errorf("an old job made chunk %d after %d", after, before)
	}
	if got := fx.await(folder, f); got.Status != files.Completed || got.ErrorMessage != nil {
		t.Errorf("got %+v", got)
	}
}

func TestCharsetsAndHTMLAreRead(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
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

// What a document holds and its text does not is stored with the file. It is not known of a file without text.
func TestAFileSaysWhatItsTextOmits(t *testing.T) {
	t.Parallel()
	omitted := []files.Omission{{Kind: "picture without text", Count: 5, Where: "pages 3–5, 9"},
		{Kind: "hidden sheet", Count: 1, Where: `sheet "Costs"`}}
	fx := newOwnFixture(t, files.Options{Read: func(_ context.Context, in document.Input) (document.Text, error) {
		raw, err := io.ReadAll(in.Body)
		switch {
		case err != nil:
			return document.Text{}, err
		case string(raw) == "bad\n":
			return document.Text{}, &document.UnreadableError{Reason: "It is bad."}
		case string(raw) == "some\n":
			return document.Text{Text: string(raw), Omitted: omitted}, nil
		}
		return document.Text{Text: string(raw), Omitted: []files.Omission{}}, nil
	}}, files.Queues())
	folder := fx.folder("docs")
	for name, want := range map[string][]files.Omission{"some": omitted, "none": {}, "bad": nil} {
		f := fx.upload(folder, name+".txt", name+"\n")
		if diff := cmp.Diff(want, f.Omitted); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	agent := fx.agentWith(folder)
	list, err := fx.List(t.Context(), fx.org, files.Of(agent), files.ListQuery{Limit: 10})
	if err != nil || len(list.Files) != 3 {
		t.Fatalf("got %+v, %v", list, err)
	}
	const want = `5 pictures without text (pages 3–5, 9), 1 hidden sheet (sheet "Costs")`
	if got := list.Files[2].LeftOut(); got != want || list.Files[0].LeftOut()+list.Files[1].LeftOut() != "" {
		t.Errorf("the listing says %q, want %q: %+v", got, want, list)
	}
}

// The encoding that an uploader names decides; otherwise a file says which one was taken, and how sure that is.
func TestTheEncodingOfAnUploadDecides(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	folder := fx.folder("docs")
	const czech = "P\xf8\xedli\x9a \x9elu\x9dou\xe8k\xfd k\xf9\xf2 \xfap\xecl \xef\xe1belsk\xe9 \xf3dy"
	for _, tt := range []struct{ claim, name, encoding, raw, text, found string }{
		{"found", "found.txt", "", czech, "Příliš žluťoučký kůň úpěl ďábelské ódy", "windows-1250"},
		{"chosen", "chosen.txt", "ISO-8859-1", "\xe8", "è", "windows-1252"},
		{"chosen for text of mainframes", "host.txt", "cp037", "\xc8\x85\x93\x93\x96\x40\x00\x00\x00", "Hello ␀",
			"ibm037"},
		{"chosen for what does not look like a text", "mac.txt", "macintosh", "\x8e\x81\x8f\x90\x9d", "éÅèêù", "macintosh"},
	} {
		f, _, err := fx.Upload(t.Context(), fx.org, folder.ID, files.Upload{Name: tt.name, Encoding: tt.encoding,
			Body: strings.NewReader(tt.raw)})
		if err != nil {
			t.Fatal(tt.claim, err)
		}
		f = fx.await(folder, f)
		for _, again := range []bool{false, true} {
			if got := fx.content(folder, f); got != tt.text || f.Encoding == nil || *f.Encoding != tt.found {
				t.Errorf("%s: got %q in %v, want %q in %s", tt.claim, got, f.Encoding, tt.text, tt.found)
			}
			if sure := f.Confidence; sure == nil || *sure != 0.999 && tt.encoding == "" || tt.encoding != "" && *sure != 1 {
				t.Errorf("%s: the encoding is sure by %v", tt.claim, sure)
			}
			if again {
				continue
			}
			if _, err := fx.Reparse(t.Context(), fx.org, folder.ID, f.ID); err != nil {
				t.Fatal(err)
			}
			f = fx.await(folder, f)
		}
	}
	for claim, u := range map[string]files.Upload{
		"an unknown encoding":   {Name: "a.txt", Encoding: "klingon", Body: strings.NewReader("a")},
		"a format with its own": {Name: "a.pdf", Encoding: "utf-8", Body: strings.NewReader("%PDF-1.4\n")},
	} {
		if f, _, err := fx.Upload(t.Context(), fx.org, folder.ID, u); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("%s: got %+v, %v, want ErrInvalid", claim, f, err)
		}
	}
}
