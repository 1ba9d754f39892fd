package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/loci-memory/loci/server/console"
)

// The page of a document says how many pages the document has, and what its text omits.
func TestThePageOfAFileSaysWhatWasRead(t *testing.T) {
	t.Parallel()
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/files/file-1") {
			_, _ = w.Write([]byte(`{"id":"file-1","processing_status":"completed","total_lines":1200,"total_pages":3,` +
				`"omitted":[{"kind":"hidden sheet","count":2,"where":"sheets Costs, <b>"}]}`))
			return
		}
		hostileAPI(w, r)
	})
	page := visited(t, console.New(api, 0), http.MethodGet, "/console/folders/source-1/files/file-1")
	for _, want := range []string{"<dd>1,200 on 3 pages</dd>",
		"<dt>Not in its text</dt>",
		`hidden sheet: 2 <span class="sub">sheets Costs, &lt;b&gt;</span>`} {
		if !strings.Contains(page, want) {
			t.Errorf("got %s, want %s", page, want)
		}
	}
}
