package local_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/db/local"
)

func TestSocketElsewhere(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, dir string }{
		{"a path longer than a socket may have", strings.Repeat("long/", 30)},
		{"a comma, which parts the hosts of an address", "one,two"},
	} {
		home := filepath.Join(newHome(t), row.dir)
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if err := os.MkdirAll(home, 0o755); err != nil {
				t.Fatal(err)
			}
			copyCluster(t, home)
			s := start(t, local.Options{Home: home})
			if got := ask(t, s.URL(), "SELECT 'reached'"); got != "reached" {
				t.Errorf("got %q, want %q", got, "reached")
			}
			socket, err := os.ReadFile(filepath.Join(home, "socket-directory"))
			if err != nil {
				t.Fatal(err)
			}
			stop(t, s)
			if _, err := os.Stat(string(socket)); !os.IsNotExist(err) {
				t.Errorf("stat of the socket's directory %s after Stop: %v, want that it is gone", socket, err)
			}
		})
	}
}

func TestDataThatCannotBeServedIsLeftAlone(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{
			"data of a version that is not installed is refused by number",
			map[string]string{"PG_VERSION": "13\n", "base": "rows"},
			[]string{"written by Postgres 13", "install Postgres 13", "LOCI_HOME"},
		},
		{
			"a version that is none is refused",
			map[string]string{"PG_VERSION": "many\n"},
			[]string{`"many\n"`, "LOCI_HOME"},
		},
		{
			"files of somebody else are refused",
			map[string]string{"notes.txt": "mine"},
			[]string{"holds files, but no cluster", "LOCI_HOME"},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			home := newHome(t)
			data := filepath.Join(home, "postgres")
			if err := os.Mkdir(data, 0o700); err != nil {
				t.Fatal(err)
			}
			for name, text := range row.files {
				write(t, filepath.Join(data, name), text, 0o600)
			}
			wantSentence(t, refuse(t, local.Options{Home: home}), append(row.want, data)...)
			if diff := cmp.Diff(row.files, files(t, data)); diff != "" {
				t.Errorf("files after a refused start (-want +got):\n%s", diff)
			}
		})
	}
}

func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(text)
	}
	return all
}

func TestClosedDirectoryIsNamed(t *testing.T) {
	t.Parallel()
	closed := filepath.Join(newHome(t), "closed")
	mode := os.FileMode(0o700)
	if os.Geteuid() != 0 {
		mode = 0o500 // the others' rights do not matter if Postgres runs as this user
	}
	if err := os.Mkdir(closed, mode); err != nil {
		t.Fatal(err)
	}
	wantSentence(t, refuse(t, local.Options{Home: filepath.Join(closed, "home")}), closed, "LOCI_HOME")
}

func TestFindRefusesWhatCannotServe(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, bin, want string }{
		{"an old Postgres", install(t, "14.9", "0.8.0"), "its Postgres is version 14"},
		{"an old pgvector", install(t, "17.2", "0.7.4"), "its pgvector is version 0.7.4"},
		{"no pgvector", install(t, "17.2", ""), "its Postgres has no pgvector"},
		{"no Postgres", t.TempDir(), "no initdb is there"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got, err := local.Find(t.Context(), row.bin)
			if err == nil {
				t.Fatalf("Find(%s) = %+v, want an error", row.bin, got)
			}
			wantSentence(
				t,
				err.Error(),
				"LOCI_POSTGRES_BIN is "+row.bin,
				row.want,
				"Postgres 15 or newer with pgvector 0.8 or newer",
			)
		})
	}
}

func TestFindReadsVersions(t *testing.T) {
	t.Parallel()
	bin := install(t, "17.2 (Debian 17.2-1)", "0.10.1")
	got, err := local.Find(t.Context(), bin)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(local.Binaries{Dir: bin, Major: 17, Vector: "0.10.1"}, got); diff != "" {
		t.Errorf("Find(%s) (-want +got):\n%s", bin, diff)
	}
}
