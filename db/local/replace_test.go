package local_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db/local"
)

// newTree copies the installed Postgres in the layout of packages, so that a test may replace its files.
func newTree(t *testing.T) (bin string) {
	t.Helper()
	found, err := local.Find(t.Context(), os.Getenv("LOCI_POSTGRES_BIN"))
	if err != nil {
		t.Fatal(err)
	}
	root, installed := newHome(t), filepath.Dir(found.Dir)
	dirs := []string{installed}
	if shared := strings.Replace(installed, "/lib/", "/share/", 1); shared != installed {
		if _, err := os.Stat(shared); err == nil {
			dirs = append(dirs, shared)
		}
	}
	for _, dir := range dirs {
		to := filepath.Join(root, dir)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // Postgres' user enters
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), "cp", "-RpL", dir, to).CombinedOutput(); err != nil {
			t.Fatalf("copy Postgres: %v: %s", err, out)
		}
	}
	return filepath.Join(root, found.Dir)
}

// replaceFile replaces a file by a copy of itself, as packages do.
func replaceFile(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path+".new", text, 0o755) //nolint:gosec // a program
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// If its package was upgraded, Postgres is stopped and started again on its data. After an upgrade to another major
// version it keeps running.
func TestAPostgresWhoseFilesWereReplaced(t *testing.T) {
	t.Parallel()
	bin, home := newTree(t), newCluster(t)
	s := start(t, local.Options{Home: home, Bin: bin})
	started := `SELECT pg_postmaster_start_time()::text`
	first := ask(t, s.URL(), started)
	const mark = `WITH kept AS (SELECT lo_from_bytea(4242, 'kept')) SELECT count(*)::text FROM kept`
	ask(t, s.URL(), mark)
	if s.Changed(t.Context()) {
		t.Error("nothing was replaced, and the files count as changed")
	}
	for _, name := range []string{"postgres", "../lib/plpgsql.so", "../lib/vector.so"} {
		path := filepath.Join(bin, name)
		if _, err := os.Stat(path); err != nil {
			continue // the libraries are elsewhere, or have another extension
		}
		replaceFile(t, path)
		if !s.Changed(t.Context()) {
			t.Fatalf("%s was replaced, and nothing counts as changed", name)
		}
		if err := s.Replace(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s.Changed(t.Context()) || s.Err() != nil {
			t.Errorf("after %s: the files still count as changed, or %v", name, s.Err())
		}
	}
	if again := ask(t, s.URL(), started); again == first {
		t.Error("Postgres was not started again")
	}
	if got := ask(t, s.URL(), `SELECT convert_from(lo_get(4242), 'UTF8')`); got != "kept" {
		t.Errorf("the data is %q", got)
	}

	removed := filepath.Join(bin, "initdb")
	if err := os.Remove(removed); err != nil {
		t.Fatal(err)
	}
	replaceFile(t, filepath.Join(bin, "postgres"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // otherwise it would wait until the package is whole
	if err := s.Replace(ctx); err == nil || !strings.Contains(err.Error(), "loci backup") {
		t.Errorf("without a Postgres on disk: got %v", err)
	}
	if got := ask(t, s.URL(), `SELECT convert_from(lo_get(4242), 'UTF8')`); got != "kept" {
		t.Errorf("the Postgres that cannot be replaced has ended: %q", got)
	}
}
