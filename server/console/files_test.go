package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/loci-memory/loci/server/console"
)

// The page of a document says how many pages the document has.
func TestThePageOfAFileSaysHowManyPagesItHas(t *testing.T) {
	t.Parallel()
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/files/file-1") {
			_, _ = w.Write([]byte(`{"id":"file-1","processing_status":"completed","total_lines":1200,"total_pages":3}`))
			return
		}
		hostileAPI(w, r)
	})
	page := visited(t, console.New(api, 0), http.MethodGet, "/console/folders/source-1/files/file-1")
	if !strings.Contains(page, "<dd>1,200 on 3 pages</dd>") {
		t.Errorf("got %s", page)
	}
}
