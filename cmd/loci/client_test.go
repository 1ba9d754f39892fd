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

// If a program other than Loci answers, the error names the setting, and nothing is written.
func TestAnswersOfOtherProgramsAreRefused(t *testing.T) {
	t.Parallel()
	const id = "agent-123e4567-e89b-42d3-8456-426614174000"
	file := filepath.Join(t.TempDir(), "a.af")
	for body, kind := range map[string]string{"{}": "application/json", `{"status":"ok"}`: "application/json",
		"<!doctype html><p>A page": "text/html", "<p>missing": "text/html", `"ok"`: "application/json", "": "text/plain"} {
		other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			if strings.HasSuffix(body, "missing") {
				w.WriteHeader(http.StatusNotFound)
			}
			_, _ = io.WriteString(w, body)
		}))
		commands := []string{"health", "health --json", "agents list", "stats " + id, "search words --agent=" + id,
			"search words --json --agent=" + id, "folders delete notes --yes"}
		if kind != "application/json" {
			commands = append(commands, "agents export "+id+" "+file)
		}
		if !strings.Contains(body, "status") { // the answers to these have a status
			commands = append(commands, "grep "+id+" words", "grep "+id+" words --json")
		}
		for _, command := range commands {
			out, errs := newLines(), newLines()
			code := run(t.Context(), append(strings.Fields(command), "--addr="+other.URL), out, errs)
			if code != 1 || !strings.Contains(errs.String(), "LOCI_URL") || out.String() != "" ||
				strings.Contains(errs.String(), "<p>") {
				t.Errorf("%s of %q ended with %d: %q %q", command, body, code, out, errs)
			}
		}
		other.Close()
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("what is no agent was written to a file")
	}
}
