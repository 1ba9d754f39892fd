package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/lab"
)

// labReplay runs loci lab replay, and returns what it printed.
func labReplay(t *testing.T, want int, args ...string) string {
	t.Helper()
	var out, errs strings.Builder
	if code := run(t.Context(), append([]string{"lab", "replay"}, args...), &out, &errs); (code != 0) != (want != 0) {
		t.Fatalf("loci lab replay %v: %d %s", args, code, errs.String())
	}
	return out.String()
}

// The lab prints a line for each policy and window, and writes a report that programs and people read.
func TestLabReplaysTranscripts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var session strings.Builder
	for range 40 {
		session.WriteString(`{"role":"user","content":"Where is max_wal_size set?"}` + "\n" +
			`{"role":"assistant","content":"In postgresql.conf: max_wal_size is 1GB. ` +
			strings.Repeat("It is said at length. ", 60) + `"}` + "\n")
	}
	file := filepath.Join(dir, "session.jsonl")
	if err := os.WriteFile(file, []byte(session.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "report")
	printed := labReplay(t, 0, file, "--policy", "letta,pi", "--window", "8k,1M", "--out", out)
	lines := strings.Split(strings.TrimSpace(printed), "\n")
	if len(lines) != 5 || !strings.Contains(lines[1], "session.jsonl") {
		t.Errorf("printed %q", printed)
	}
	raw, err := os.ReadFile(filepath.Join(out, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var results []lab.Result
	if err := json.Unmarshal(raw, &results); err != nil || len(results) != 4 || results[0].Compactions == 0 ||
		results[2].Compactions != 0 || results[0].Window != 8000 {
		t.Errorf("%v: %d results, %+v", err, len(results), results)
	}
	page, err := os.ReadFile(filepath.Join(out, "report.html"))
	if err != nil || strings.Count(string(page), "<polyline") != 4 || strings.Contains(string(page), "http") {
		t.Errorf("%v: %.300s", err, page)
	}
	for _, args := range [][]string{{file, "--policy", "nobody"}, {file, "--window", "none"},
		{filepath.Join(dir, "absent")}} {
		labReplay(t, 1, args...)
	}
}
