package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loci-memory/loci/compaction/llm/llmtest"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/embedtest"
)

// examine runs doctor with flags, without asking a server. It returns the findings by the thing that they are about.
func examine(t *testing.T, flags ...string) (code int, found map[string]db.Finding) {
	t.Helper()
	out, errs := newLines(), newLines()
	code = run(t.Context(), append([]string{"doctor", "--json", "--own-settings"}, flags...), out, errs)
	var list []db.Finding
	if err := json.Unmarshal([]byte(out.String()), &list); err != nil {
		t.Fatalf("%v: got %d, %q and %q", flags, code, out, errs)
	}
	found = map[string]db.Finding{}
	for _, f := range list {
		found[f.Of] = f
	}
	return code, found
}

// If a server's private Postgres is down, the doctor says so, and where to find the reason.
func TestTheDoctorSaysThatAPrivatePostgresIsAway(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, "postgres"), 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := os.Create(filepath.Join(home, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	code, found := examine(t, "--home="+home)
	if f := found["postgres"]; code != 1 || f.State != db.Broken || f.Remedy != "" ||
		!strings.Contains(f.Text, "Its Postgres does not answer: the log of that server says why") {
		t.Errorf("got %d and %+v", code, f)
	}
}

// The doctor examines each need of a server. A finding says that all is well, or what to do.
func theDoctorSaysWhatToDo(t *testing.T, url string) {
	words, model := embedtest.New(t, 8), llmtest.New(t)
	code, found := examine(t, "--database-url="+url, "--embedding-base-url="+words.URL+"/v1", "--embedding-model=e",
		"--llm-base-url="+model.BaseURL(), "--llm-model=m")
	for _, name := range []string{"pgvector", "schema", "clock", "jobs", "indexes", "embeddings", "postgres"} {
		if f := found[name]; f.State != db.Well || f.Text == "" {
			t.Errorf("%s: got %+v", name, f)
		}
	}
	if !strings.Contains(found["embeddings"].Text, "vectors of 8 numbers") {
		t.Errorf("got %+v", found["embeddings"])
	}
	if f := found["role"]; f.State != db.Advice || !strings.Contains(f.Remedy, "owns nothing") {
		t.Errorf("a superuser that serves: got %+v", f)
	}
	if f := found["durability"]; code != 1 || f.State != db.Broken || !strings.Contains(f.Remedy, "fsync") {
		t.Errorf("Postgres of the tests, which does not sync: got %d and %+v", code, f)
	}
	words.Close()
	if code, found = examine(t, "--database-url="+url, "--embedding-base-url="+words.URL+"/v1",
		"--embedding-model=e"); code != 1 || found["embeddings"].State != db.Broken {
		t.Errorf("an endpoint that does not answer: got %d and %+v", code, found["embeddings"])
	}
	_, found = examine(t, "--database-url="+url, "--llm-base-url="+words.URL+"/v1", "--llm-model=m")
	if f := found["model"]; f.State != db.Broken || !strings.Contains(f.Text, "connection refused") {
		t.Errorf("a model that does not answer: got %+v", f)
	}
}

// The doctor finds jobs that have waited for a long time.
func theDoctorFindsWhatWaits(t *testing.T, url string) {
	execute(t, url, `
		INSERT INTO river_job (kind, queue, state, args, max_attempts, scheduled_at)
		VALUES ('a', 'parse', 'available', '{}', 5, now() - interval '1 hour')`)
	_, found := examine(t, "--database-url="+url)
	if f := found["jobs"]; f.State != db.Advice || !strings.Contains(f.Text, "1 wait") ||
		!strings.Contains(f.Remedy, "has waited for 1h") {
		t.Errorf("got %+v", f)
	}
	execute(t, url, `DELETE FROM river_job`)
}

// If a database does not answer, that is a finding, and the doctor goes on.
func TestTheDoctorFindsThatADatabaseIsAway(t *testing.T) {
	t.Parallel()
	code, found := examine(t, "--database-url=postgres://nobody@127.0.0.1:1/none")
	if f := found["postgres"]; code != 1 || f.State != db.Broken || f.Remedy == "" {
		t.Errorf("got %d and %+v", code, f)
	}
	out := newLines()
	if code := run(t.Context(), []string{"doctor", "--own-settings",
		"--database-url=postgres://nobody@127.0.0.1:1/none"}, out, newLines()); code != 1 ||
		!strings.Contains(out.String(), "→ ") {
		t.Errorf("got %d and %q", code, out)
	}
}

// A full disk is broken, and a nearly full disk needs advice. If a command finds the disk full, its error says what to
// do.
func TestAFullDiskIsTold(t *testing.T) {
	t.Parallel()
	for free, want := range map[uint64]db.State{0: db.Broken, 31 << 20: db.Broken, 33 << 20: db.Advice, 3 << 30: db.Well} {
		f := diskFinding("/home", free)
		if f.State != want || (want == db.Well) == strings.Contains(f.Remedy, "status 503") {
			t.Errorf("%d bytes: got %+v", free, f)
		}
	}
	out := newLines()
	if code := exitCode(out, &pgconn.PgError{Code: "53100", Message: "could not extend file"}); code != 1 ||
		!strings.Contains(out.String(), "make room") || strings.Contains(out.String(), "extend file") {
		t.Errorf("got %d and %q", code, out)
	}
}

func TestDoctorSaysWhatTheKernelDoesNotForbid(t *testing.T) {
	t.Parallel()
	if got := sandboxFindings(""); got != nil {
		t.Errorf("where it forbids all: got %v", got)
	}
	got := sandboxFindings("connect to other machines")
	if len(got) != 1 || got[0].State != db.Advice || !strings.Contains(got[0].Text, "connect to other machines") {
		t.Errorf("got %v", got)
	}
}
