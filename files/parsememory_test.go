package files_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/files/document"
)

// The documents of one organization that are being read use no more memory than its share, though more workers are
// free. Another organization's document is read meanwhile.
func TestParsingHasSharesOfMemory(t *testing.T) {
	t.Parallel()
	reads, goOn := make(chan int64), make(chan bool)
	fx := newOwnFixture(t, files.Options{Read: func(_ context.Context, in document.Input) (document.Text, error) {
		reads <- in.SizeBytes
		<-goOn
		return document.Text{Text: "The ferry.\n"}, nil
	}}, map[string]river.QueueConfig{files.QueueDocuments: {MaxWorkers: 4}})
	other := dbtest.NewOrg(t, fx.pool)
	upload := func(org db.Org, size int) {
		t.Helper()
		f, err := fx.CreateFolder(t.Context(), org, files.NewFolder{Name: fmt.Sprint(size)})
		if err != nil {
			t.Fatal(err)
		}
		pdf := "%PDF-1.7\n" + strings.Repeat(" ", size-len("%PDF-1.7\n"))
		_, _, err = fx.Upload(t.Context(), org, f.ID, files.Upload{Name: "a.pdf", Body: strings.NewReader(pdf)})
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2 { // each counts as the largest possible text
		upload(fx.org, 100+i)
		<-reads
	}
	upload(fx.org, 102)
	for !fx.WaitsForMemory() {
		select {
		case size := <-reads:
			t.Fatalf("the document of %d bytes is read, too", size)
		case <-time.After(time.Millisecond):
		}
	}
	upload(other, 200)
	if size := <-reads; size != 200 {
		t.Errorf("the document of %d bytes is read, want the other organization's of 200", size)
	}
	goOn <- true // either organization's document ends, and its memory is free again
	goOn <- true
	goOn <- true
	if size := <-reads; size != 102 {
		t.Errorf("the document of %d bytes is read, want that of 102 which waited", size)
	}
	goOn <- true
}
