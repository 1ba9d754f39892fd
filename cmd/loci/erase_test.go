package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// erasing starts a server with an erasure that has ended when it is first looked at. It returns the server's URL and
// the number of erasures that were begun.
func erasing(t *testing.T, status, atWork string) (url string, begun *int) {
	t.Helper()
	begun = new(int)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := `{"id":"erasure-1","status":"running","report":{"at_work":{"jobs":1,"runs":2}}}`
		if r.Method == http.MethodGet {
			body = `{"id":"erasure-1","status":"` + status + `","report":{"at_work":` + atWork + `}}`
		} else {
			*begun++
		}
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return server.URL, begun
}

// An erasure must be confirmed like other deletions, and the command shows its last report.
func TestErasuresAreConfirmedAndToldAsTheyEnded(t *testing.T) {
	t.Parallel()
	texts := filepath.Join(t.TempDir(), "texts")
	if err := os.WriteFile(texts, []byte("Ann Lee\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	completed, begun := erasing(t, "completed", "{}")
	code, _, errs := command(t, "erase", texts, "--addr="+completed)
	if code != 2 || *begun != 0 || !strings.Contains(errs, "give --yes") {
		t.Errorf("without --yes: got %d, %d erasures, %q", code, *begun, errs)
	}
	code, out, errs := command(t, "erase", texts, "--yes", "--addr="+completed)
	if code != 0 || *begun != 1 || !strings.HasPrefix(out, "erasure-1: completed\n") ||
		strings.Contains(out, "began before") {
		t.Errorf("got %d, %d erasures, %q and %q", code, *begun, out, errs)
	}
	stuck, _ := erasing(t, "incomplete", `{"jobs":1,"runs":2}`)
	code, out, _ = command(t, "erase", "--message=message-1", "--yes", "--addr="+stuck)
	if code != 1 || !strings.Contains(out, "     1 job began before and still works: it may write it again\n") ||
		!strings.Contains(out, "     2 runs began before and still work: they may write it again\n") {
		t.Errorf("an incomplete one: got %d, %q", code, out)
	}
}
