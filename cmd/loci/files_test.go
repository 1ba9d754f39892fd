package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/server"
)

// An operator manages folders and files from the command line.
func TestFoldersAndFilesOnTheCommandLine(t *testing.T) {
	t.Parallel()
	p := tenant(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"plan.md": "# Plan\n\nThe heron is blue.\n",
		"broken.pdf": "%PDF-1.4 nothing"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	step := func(wantCode int, want string, args ...string) string {
		t.Helper()
		code, out, errs := command(t, p.asking(args...)...)
		if code != wantCode || !strings.Contains(out+errs, want) || strings.Contains(out+errs, "\x1b[31m") {
			t.Errorf("loci %s: ended with %d, want %d and %q:\n%s%s", strings.Join(args, " "), code, wantCode, want, out, errs)
		}
		return out
	}
	asJSON := func(out string) (one struct {
		ID, Name, Content string
		Uploaded, Failed  []struct{ Name, Error string }
	}) {
		t.Helper()
		if err := json.Unmarshal([]byte(out), &one); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return one
	}
	folder := asJSON(step(0, `"skills": false`, "folders", "create", "notes", "--description=what we plan", "--json")).ID
	step(0, "what we plan", "folders", "list")
	if uploads := asJSON(step(1, "1 of 2 files failed", "upload", "notes", dir, "--json")); len(uploads.Uploaded) != 2 ||
		len(uploads.Failed) != 1 || uploads.Failed[0].Name != "broken.pdf" || uploads.Failed[0].Error == "" {
		t.Errorf("the upload is %+v", uploads)
	}
	step(0, "  utf-8  ", "files", "list", "notes")
	for _, handling := range []string{"suffix", "replace"} { // neither stores failed files again
		out := step(1, "it failed before: ", "upload", "notes", dir, "--duplicates="+handling)
		if !strings.Contains(out, "2 files: 0 uploaded, 1 unchanged, 1 failed\n") {
			t.Errorf("repeated with %s: %s", handling, out)
		}
	}
	red := filepath.Join(t.TempDir(), "a\x1b[31m.md")
	if err := os.WriteFile(red, []byte("red"), 0o600); err != nil {
		t.Fatal(err)
	}
	step(1, "[31m.md: its name has control characters", "upload", "notes", red)
	step(2, "the folder's name has control characters", "upload", "no\x1btes", red)
	step(0, "plan.md", "files", "list", "notes", "--status=completed")
	if failed := step(0, "broken.pdf", "files", "list", "--status=error"); strings.Contains(failed, "plan.md") {
		t.Errorf("among the failed files is one that did not fail:\n%s", failed)
	}
	var list []stored
	if err := json.Unmarshal([]byte(step(0, "", "files", "list", folder, "--json")), &list); err != nil || len(list) != 2 {
		t.Fatalf("as JSON: %v, %v", list, err)
	}
	if text := step(0, "", "files", "text", "notes", "plan.md"); text != "# Plan\n\nThe heron is blue.\n" {
		t.Errorf("the text is %q", text)
	}
	if f := asJSON(step(0, "", "files", "text", "notes", "plan.md", "--json")); !strings.Contains(f.Content, "heron") {
		t.Errorf("as JSON: %+v", f)
	}
	if f := asJSON(step(0, "", "files", "retry", "notes", "broken.pdf", "--json")); f.Name != "broken.pdf" && f.ID == "" {
		t.Errorf("tried again: %+v", f)
	}
	step(1, "has not failed", "files", "retry", folder, "plan.md")
	step(0, "", "files", "reparse", "notes", "plan.md")
	step(0, `"file_count"`, "files", "reparse", "notes", "--json")
	step(1, `the folder "notes" has no file "other.md"`, "files", "text", "notes", "other.md")
	step(1, `there is no folder "other"`, "files", "list", "other")

	agent := call[identified](p, "POST", "/v1/agents/",
		map[string]any{"name": "reader", "source_ids": []string{folder}}).ID
	step(0, agent, "agents", "list", "--name=reader")
	step(0, "The heron is blue", "grep", agent, "h[e]ron")
	step(0, `"func_return"`, "grep", agent, "heron", "--json")
	step(1, "missing closing )", "grep", agent, "(")
	step(1, `"status": "error"`, "grep", agent, "(", "--json")

	step(2, "give --yes", "files", "delete", "notes", "plan.md")
	step(0, "plan.md", "files", "list", "notes")
	asJSON(step(0, "file-", "files", "delete", "notes", "plan.md", "--yes", "--json"))
	step(1, "has no file", "files", "delete", "notes", "plan.md", "--yes")
	step(0, "source-", "folders", "create", folder)
	// The argument is the ID, and does not mean the folder with that name.
	asJSON(step(0, `"name": "notes"`, "folders", "delete", folder, "--yes", "--json"))
	if left := step(0, folder, "folders", "list"); strings.Contains(left, "notes") {
		t.Errorf("folders after the deletion: %s", left)
	}
	step(0, "", "folders", "delete", folder, "--yes")
	if left := step(0, "", "folders", "list", "--json"); strings.TrimSpace(left) != "[]" {
		t.Errorf("folders after the deletions: %s", left)
	}
	step(0, `"skills": true`, "folders", "create", "craft", "--skills", "--json")
}

// Texts in a list cannot move the cursor of the terminal.
func TestListsPrintNoControlCharacters(t *testing.T) {
	t.Parallel()
	out := newLines()
	if err := printTable(streams{out: out}, "NAME | ERROR", [][]string{{"a\x1b[2J\tb\r\nc", ""}}); err != nil {
		t.Fatal(err)
	}
	if want := "NAME        ERROR\na�[2J�b��c  -\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out, want)
	}
}

// A server's settings are shown with values and origins, but without secrets.
func TestSettingsAreShownWithoutSecrets(t *testing.T) {
	t.Parallel()
	var line *cobra.Command
	root := newProgram(func(parsed *cobra.Command, _ runner) error {
		line = parsed
		return nil
	})
	err := runLine(t.Context(), root, []string{"serve", "--max-runs=7", "--anthropic-api-key=hunter10"})
	if err != nil {
		t.Fatal(err)
	}
	environment := map[string]string{"LOCI_MAX_RUNS": "5", "LOCI_ADDR": "0.0.0.0:80",
		"LOCI_DATABASE_URL":      "postgres://u:hunter2@h/x",
		"LOCI_EMBEDDING_API_KEY": "hunter3", "LOCI_LLM_BASE_URL": "http://u:hunter4@127.0.0.1:1/v1",
		"LOCI_EMBEDDING_BASE_URL": "http://h/v1?key=hunter5&hunter6&v=", "LOCI_LOG_FORMAT": "x://u:hunter7/%zz@h",
		"LOCI_LLM_MODEL": "https://a.org, https://hunter8:hunter9@b.org/c"}
	shown := map[string]server.Setting{}
	for _, one := range settingsOf(line, func(name string) (string, bool) {
		value, set := environment[name]
		return value, set
	}) {
		shown[one.Variable] = one
		if strings.Contains(one.Value, "hunter") {
			t.Errorf("%s is shown", one.Variable)
		}
	}
	for name, want := range map[string][2]string{"LOCI_DATABASE_URL": {"[secret]", "environment"},
		"LOCI_EMBEDDING_API_KEY": {"[secret]", "environment"}, "LOCI_ADDR": {"0.0.0.0:80", "environment"},
		"LOCI_MAX_RUNS": {"7", "flag"}, "LOCI_ANTHROPIC_API_KEY": {"[secret]", "flag"},
		"LOCI_LOG_LEVEL": {"info", "default"}, "LOCI_API_KEY": {"", "default"},
		"LOCI_LLM_BASE_URL":       {"http://[secret]@127.0.0.1:1/v1", "environment"},
		"LOCI_EMBEDDING_BASE_URL": {"http://h/v1?key=[secret]&[secret]&v=[secret]", "environment"},
		"LOCI_LOG_FORMAT":         {"x://[secret]", "environment"},
		"LOCI_LLM_MODEL":          {"https://a.org, https://[secret]@b.org/c", "environment"}} {
		if got := [2]string{shown[name].Value, shown[name].Origin}; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// If a variable looks like a setting and is none, it is named.
func TestMisspeltSettingsAreNamed(t *testing.T) {
	t.Parallel()
	got := unknownSettings(newProgram(nil), []string{"LOCI_MAX_UPLOAD=5", "LOCI_MAX_UPLOAD_BYTES=5", "LOCI_URL=x",
		"HOME=/", "LOCI_EMBEDDING_API_KEY=k", "LOCI_KEY_REQUESTS_PER_MINUTE=1", "LOCI_LOG_LEVLE=",
		"LOCI_SERVICE_HOST=10.0.0.1", "LOCI_PORT_8283_TCP=x", "LOCI_TEST_SCALE=long"})
	if want := []string{"LOCI_LOG_LEVLE", "LOCI_MAX_UPLOAD"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The list of files says what each leaves out, in which encoding it was read, and how far the work on it is.
func TestTheListOfFilesSaysWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	p := tenant(t)
	path := filepath.Join(t.TempDir(), "power.log")
	log := []byte("one line of the log\n\x00\x00\x00\nanother line of the log\n")
	if err := os.WriteFile(path, log, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := command(t, p.asking("upload", "logs", path)...); code != 0 {
		t.Fatal(out, errs)
	}
	const omitted = "3 NUL bytes (line 2)"
	if code, out, _ := command(t, p.asking("files", "list", "logs")...); code != 0 || !strings.Contains(out, omitted) ||
		!strings.Contains(out, "  utf-8  ") {
		t.Errorf("ended with %d, want %q: %s", code, omitted, out)
	}
	var all []struct{ Omitted []files.Omission }
	code, out, _ := command(t, p.asking("files", "list", "logs", "--json")...)
	want := files.Omission{Kind: "NUL byte", Count: 3, Where: "line 2"}
	if json.Unmarshal([]byte(out), &all) != nil || code != 0 || len(all) != 1 || len(all[0].Omitted) != 1 ||
		all[0].Omitted[0] != want {
		t.Errorf("got %+v, want %+v: %s", all, want, out)
	}
	three, eight, sure, guessed, name := 3, 8, 1.0, 0.6, "windows-1250"
	for want, f := range map[string]files.File{
		"3 of 8 pages / ": {Status: files.Parsing, PagesRead: &three, TotalPages: &eight},
		"5 of 9 vectors / windows-1250": {Status: files.Embedding, TotalChunks: 9, ChunksEmbedded: 5, Encoding: &name,
			Confidence: &sure},
		" / guessed: windows-1250 (60 % sure)": {Status: files.Completed, TotalPages: &eight, Encoding: &name,
			Confidence: &guessed},
	} {
		if got := progressOf(f) + " / " + encodingOf(f); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
