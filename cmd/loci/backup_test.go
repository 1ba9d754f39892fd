package main

import (
	"bytes"
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/loci-memory/loci/db/dbtest"
)

// A backup can be restored only in a database without a schema. Existing files are not replaced, and a refused backup
// changes no database.
func TestBackupsAreRestored(t *testing.T) {
	t.Parallel()
	source, target, dir := dbtest.OwnerURL(t), dbtest.EmptyURL(t), t.TempDir()
	file, truncated := filepath.Join(dir, "b"), filepath.Join(dir, "cut")
	command := func(wantCode int, want string, args ...string) {
		t.Helper()
		out := newLines()
		if code := run(t.Context(), args, out, out); code != wantCode || !strings.Contains(out.String(), want) {
			t.Errorf("%q ended with %d: %s; want %d and %q", args, code, out, wantCode, want)
		}
	}
	command(0, "org-", "orgs", "create", "Acme", "--database-url="+source)
	command(0, "The backup has", "backup", file, "--database-url="+source)
	command(1, "is there already", "backup", file, "--database-url="+source)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(truncated, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	command(0, "The file is whole", "verify", file)
	command(1, "no whole backup", "verify", truncated)
	command(1, "no whole backup", "restore", truncated, "--database-url="+target)
	command(0, "with the checksums of the file", "restore", file, "--database-url="+target)
	command(0, "Acme", "orgs", "list", "--database-url="+target)
	command(1, "not empty", "restore", file, "--database-url="+target)
	home, other := filepath.Join(dir, "home"), filepath.Join(dir, "other")
	if err := os.WriteFile(other, ofAnotherSchema(t, whole), 0o600); err != nil {
		t.Fatal(err)
	}
	command(1, "no whole backup", "restore", truncated, "--home="+home)
	command(1, "this program makes the schema", "restore", other, "--home="+home)
	if _, err := os.Stat(home); err == nil {
		t.Error("a refused file left a private Postgres")
	}
	nowhere := "--database-url=postgres://127.0.0.1:1/none"
	command(1, "no such file or directory", "backup", filepath.Join(dir, "none", "b"), nowhere)
	command(1, "not a directory", "backup", filepath.Join(file, "b"), nowhere)
	const agent = "agent-123e4567-e89b-42d3-8456-426614174000"
	command(1, "no such file or directory", "agents", "export", agent, filepath.Join(dir, "none", "a"),
		"--addr=127.0.0.1:1")
	command(2, "the argument <file> is empty", "backup", "", "--database-url="+source)
	command(2, "the argument <file> is empty", "restore", "", "--database-url="+target)
	command(2, "the argument <file> is empty", "verify", "")
	command(2, "the argument <file> is empty", "agents", "import", "")
	command(2, "the argument <file> is empty", "agents", "export", "agent-123e4567-e89b-42d3-8456-426614174000", "")
	command(1, "is there already", "agents", "export", "agent-123e4567-e89b-42d3-8456-426614174000", file)
	left, err := filepath.Glob(filepath.Join(dir, "*partial*"))
	if err != nil || len(left) > 0 {
		t.Errorf("files are left: %q, %v", left, err)
	}
	command(2, "--dsn (LETTA_PG_URI) is no URL of Postgres", "import", "letta", "--dsn=nothing", "--database-url="+target)
	command(1, "not a Letta server's", "import", "letta", "--dsn="+source, "--database-url="+target)
	command(1, "reach the database of --dsn", "import", "letta", "--dsn=postgres://nobody:secret@127.0.0.1:1/none",
		"--database-url="+target)
}

// ofAnotherSchema returns a backup as an older version of Loci would have written it.
func ofAnotherSchema(t *testing.T, file []byte) []byte {
	t.Helper()
	reader, err := zstd.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	archive, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`"Version": (\d+)`).FindSubmatch(archive)
	older := bytes.ReplaceAll(archive, version[0], []byte(`"Version": `+strings.Repeat("1", len(version[1]))))
	writer, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	packed := writer.EncodeAll(older, nil)
	sum := sha256.Sum256(packed)
	return slices.Concat(packed, file[len(file)-40:len(file)-32], sum[:])
}
