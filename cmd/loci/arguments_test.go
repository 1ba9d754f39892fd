package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A wrong argument or setting is explained, with advice, before anything is done. The server of these commands does not
// exist, and no command may get as far as asking it.
func TestWrongArgumentsAreExplained(t *testing.T) {
	for _, variable := range []string{"LOCI_URL", "LOCI_ADDR", "LOCI_API_KEY", "LOCI_AGENT"} {
		t.Setenv(variable, "")
		os.Unsetenv(variable)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	loop := filepath.Join(dir, "loop")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Symlink(loop, loop)); err != nil {
		t.Fatal(err)
	}
	const agent = "agent-123e4567-e89b-42d3-8456-426614174000"
	nowhere := "--addr=127.0.0.1:1"
	for _, row := range []struct {
		code int
		want string
		args []string
	}{
		{2, "the argument <file> is empty: give it a value, or leave it out", []string{"files", "reparse", "f", "", nowhere}},
		{2, "the argument <folder> is empty: give it a value, or leave it out", []string{"files", "list", "", nowhere}},
		{2, "the argument <folder> is empty: give it a value", []string{"folders", "delete", "", nowhere}},
		{2, "--parallel is 0; send at least 1", []string{"upload", "f", file, "--parallel=0", nowhere}},
		{2, "the argument <files> is empty", []string{"upload", "f", file, "", nowhere}},
		{2, "the argument <transcripts> is empty", []string{"lab", "replay", ""}},
		{2, "the argument <texts> is empty", []string{"erase", "", "--yes", nowhere}},
		{2, "there is nothing to erase", []string{"erase", "--yes", nowhere}},
		{2, `<agent>: it is empty: give the name or the ID of an agent`, []string{"grep", "", "x", nowhere}},
		{2, `--agent: it is empty: give the name or the ID of an agent`, []string{"search", "--agent=", "x", nowhere}},
		{2, `--agent: it is empty: give the name or the ID of an agent`, []string{"mcp", "--agent=", nowhere}},
		{2, `--agent: it is empty: give the name`, []string{"import", "sessions", file, "--agent=", nowhere}},
		{2, "--home runs a server of its own, --addr names another", []string{"mcp", "--home=" + dir, nowhere}},
		{2, "--home runs a server of its own, --addr names another", []string{"mcp", nowhere, "--home", dir}},
		{2, "give the name or the ID of an agent or a memory tree", []string{"memory", "compress", "", nowhere}},
		{2, `--state must be one of "waiting","running"`, []string{"jobs", "--state=hatching"}},
		{2, `must be one of "bash","zsh","fish" but got "tcsh"`, []string{"completion", "tcsh"}},
		{2, "LOCI_URL (--addr) is ''; it must be an address such as", []string{"health", "--addr="}},
		{2, "LOCI_URL (--addr) is 'http://[::1'; it must be", []string{"jobs", "--addr=http://[::1"}},
		{2, "LOCI_URL (--addr) is 'ftp://x'; it must be", []string{"upload", "f", file, "--addr=ftp://x"}},
		{2, "LOCI_URL (--addr) is '::::'; it must be", []string{"mcp", "--addr=::::"}},
		{2, "LOCI_API_KEY (--api-key) has a character that no key has", []string{"jobs", "--api-key=loci_A\r", nowhere}},
		{1, "is a directory: name a file", []string{"agents", "import", dir, nowhere}},
		{1, "is a directory: name a file", []string{"verify", dir}},
		{1, "no server answers at http://127.0.0.1:1 (LOCI_URL, --addr): start it", []string{"stats", agent, nowhere}},
		{1, "no server answers at http://127.0.0.1:1 (LOCI_URL, --addr)", []string{"agents", "export", agent, nowhere}},
		{1, "no server answers at http://127.0.0.1:1 (LOCI_URL, --addr)", []string{"mcp", "--agent=a", nowhere}},
		{2, "LOCI_HOME is '" + loop + "', which cannot be read: ", []string{"keys", "create", "--home=" + loop}},
	} {
		out := newLines()
		if code := run(t.Context(), row.args, out, out); code != row.code || !strings.Contains(out.String(), row.want) {
			t.Errorf("loci %q: got %d %s, want %d %s", row.args, code, out, row.code, row.want)
		}
	}
	if found, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(found) != 2 {
		t.Errorf("something was written: %v, %v", found, err)
	}
}
