package rest_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/server/rest"
)

// A small body needs no file; a large one does. A body of any size is read completely. If it breaks off, it is refused.
func TestASmallBodyNeedsNoFile(t *testing.T) {
	a := rest.New(rest.Config{Title: "Toys", Log: slog.New(slog.DiscardHandler)})
	a.For(rest.AnyKey).Stream(huma.Operation{Method: "POST", Path: "/v1/toys"}, func(c echo.Context) error {
		body, err := a.Spool(c, 1<<20)
		if err != nil {
			return err
		}
		defer body.Close()
		fields, _, err := body.Fields(rest.Lists{Others: []string{"name"}, Rule: "expected toys"})
		if err != nil {
			return err
		}
		return c.String(200, fmt.Sprint(len(fields["name"])))
	})
	h := a.Handler()
	send := func(body io.Reader) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/toys", body)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	sized := func(n int) string { return `{"name":"` + strings.Repeat("x", n-11) + `"}` }
	for _, bom := range []string{"", "\uFEFF"} {
		for _, n := range []int{11, 16<<10 - 1, 16 << 10, 16<<10 + 1, 100 << 10} {
			if got := send(strings.NewReader(bom + sized(n))); got.Code != 200 || got.Body.String() != fmt.Sprint(n-9) {
				t.Errorf("%d bytes: got %d %s", n, got.Code, got.Body)
			}
		}
	}
	for _, n := range []int{11, 50 << 10} {
		broken := io.MultiReader(strings.NewReader(sized(n)), failing{io.ErrUnexpectedEOF})
		if got := send(broken); got.Code != http.StatusBadRequest {
			t.Errorf("%d bytes that break off: got %d %s, want 400", n, got.Code, got.Body)
		}
	}
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	if got := send(strings.NewReader(sized(1000))); got.Code != 200 {
		t.Errorf("a small body without a directory for files: got %d %s", got.Code, got.Body)
	}
	if got := send(strings.NewReader(sized(50 << 10))); got.Code != http.StatusInternalServerError {
		t.Errorf("a large body without a directory for files: got %d %s, want 500", got.Code, got.Body)
	}
}

// failing is a reader that fails.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
