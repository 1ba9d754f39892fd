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

// erasing is a server whose erasure ends with a report at the first look at it.
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

// An erasure is asked for as other deletions are, and its report is the last one.
func TestErasuresAreConfirmedAndToldAsTheyEnded(t *testing.T) {
	t.Parallel()
	texts := filepath.Join(t.TempDir(), "texts")
	if err := os.WriteFile(texts, []byte("Ann Lee\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	well, begun := erasing(t, "completed", "{}")
	code, _, errs := command(t, "erase", texts, "--addr="+well)
	if code != 2 || *begun != 0 || !strings.Contains(errs, "give --yes") {
		t.Errorf("without --yes: got %d, %d erasures, %q", code, *begun, errs)
	}
	code, out, errs := command(t, "erase", texts, "--yes", "--addr="+well)
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
