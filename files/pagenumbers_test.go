package files_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/files/document"
	"github.com/loci-memory/loci/files/document/documenttest"
)

func TestPagesOfLines(t *testing.T) {
	t.Parallel()
	pdf := files.Paging{Starts: []int{1, 5, 6, 9}, MediaType: "application/pdf"}
	slides := files.Paging{Starts: []int{2},
		MediaType: "application/vnd.openxmlformats-officedocument.presentationml.presentation"}
	sheets := files.Paging{Starts: []int{1, 3}, MediaType: "application/vnd.oasis.opendocument.spreadsheet"}
	for _, tt := range []struct {
		name        string
		paging      files.Paging
		first, last int
		want        string
	}{
		{"one page", pdf, 1, 4, "page 1"},
		{"its first line", pdf, 5, 5, "page 2"},
		{"a page of one line, and the next", pdf, 5, 6, "pages 2-3"},
		{"all", pdf, 1, 99, "pages 1-4"},
		{"before the first", slides, 1, 1, "slide 1"},
		{"sheets", sheets, 2, 3, "sheets 1-2"},
		{"no pages", files.Paging{}, 1, 9, ""},
	} {
		if got := tt.paging.Of(tt.first, tt.last).String(); got != tt.want {
			t.Errorf("%s: lines %d-%d are on %q, want %q", tt.name, tt.first, tt.last, got, tt.want)
		}
	}
}

func TestPagesOfAPDFReachTheResults(t *testing.T) {
	t.Parallel()
	fx := newOwnFixture(t, files.Options{Read: documenttest.Readers().Read}, files.Queues())
	folder := fx.folder("docs")
	raw, err := os.ReadFile("document/testdata/pdf/libreoffice.pdf")
	if err != nil {
		t.Fatal(err)
	}
	f := fx.upload(folder, "harbour.pdf", string(raw))
	if f.Status != files.Completed || f.MediaType != "application/pdf" || f.TotalPages == nil || *f.TotalPages != 3 {
		t.Fatalf("got %+v", f)
	}
	if plain := fx.upload(folder, "plain.txt", "the lighthouse keeper\n"); plain.TotalPages != nil {
		t.Errorf("a text has %d pages", *plain.TotalPages)
	}
	agent := fx.agentWith(folder)
	found, err := fx.Search(t.Context(), fx.org, files.Of(agent),
		files.Query{Text: "lighthouse keeper channel twelve", Limit: 5, Include: "*.pdf"})
	if err != nil || len(found.Hits) == 0 {
		t.Fatalf("got %+v, %v", found, err)
	}
	if got := found.Hits[0]; got.Pages() != (files.Pages{Word: "page", First: 1, Last: 3}) ||
		!strings.Contains(got.Text, "lighthouse") {
		t.Errorf("the best hit is on %v: %q", got.Pages(), got.Text)
	}
	grep, err := fx.Grep(t.Context(), fx.org, files.Of(agent), files.GrepQuery{Pattern: "lighthouse|penalty"})
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{}
	for _, m := range grep.Matches {
		pages[m.Text] = m.Pages.String()
	}
	want := map[string]string{"the lighthouse keeper": "",
		"Third page: the lighthouse keeper answers on channel twelve.":                      "page 3",
		"Second page: dues are payable in advance. The penalty clause is number forty-two.": "page 2"}
	if diff := cmp.Diff(want, pages); diff != "" {
		t.Errorf("pages of matches (-want +got):\n%s", diff)
	}
	opened, err := fx.Open(t.Context(), fx.org, files.Of(agent),
		files.OpenArgs{Limits: files.Limits{MaxOpen: 5, ViewChars: 5000},
			Requests: []files.OpenRequest{{FileName: "docs/harbour.pdf", Offset: new(4)}}})
	if err != nil || !strings.HasPrefix(opened.Files[0].Content,
		"[Viewing lines 5 to end (out of 7 lines, pages 2-3 of 3)]\n5: Second page") {
		t.Errorf("got %+v, %v", opened, err)
	}
	passages, err := fx.Passages(t.Context(), fx.org, folder.ID, "", db.Page{Limit: 10})
	if err != nil || len(passages) != 2 {
		t.Fatalf("got %+v, %v", passages, err)
	}
	for _, p := range passages {
		if first, last := p.FirstPage, p.LastPage; p.FileID == f.ID &&
			(first == nil || *first != 1 || last == nil || *last != 3) ||
			p.FileID != f.ID && first != nil {
			t.Errorf("got %+v", p)
		}
	}
}

func TestAChunkOfALaterPageNamesIt(t *testing.T) {
	t.Parallel()
	page := strings.Repeat("Nothing of interest is said in this sentence about the harbour.\n", 20)
	text := page + "\n" + page + "\n" + "The brass key is in drawer nine.\n" + page
	fx := newOwnFixture(t, files.Options{Read: func(_ context.Context, in document.Input) (document.Text, error) {
		return document.Text{Text: text, Pages: []int{1, 22, 43}}, nil
	}}, files.Queues())
	folder := fx.folder("docs")
	if f := fx.upload(folder, "a.pdf", "%PDF-1.4"); f.Status != files.Completed {
		t.Fatalf("got %+v", f)
	}
	found, err := fx.Search(t.Context(), fx.org, files.Of(fx.agentWith(folder)),
		files.Query{Text: "brass key drawer", Limit: 1})
	if err != nil || len(found.Hits) != 1 {
		t.Fatalf("got %+v, %v", found, err)
	}
	if got, want := found.Hits[0].Pages(), (files.Paging{Starts: []int{1, 22, 43},
		MediaType: "application/pdf"}).Of(found.Hits[0].FirstLine, found.Hits[0].LastLine); got != want || got.Last != 3 {
		t.Errorf("lines %d-%d are on %v, want %v", found.Hits[0].FirstLine, found.Hits[0].LastLine, got, want)
	}
}
