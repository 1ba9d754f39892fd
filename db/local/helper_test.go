package local_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db/local"
)

// helperHome is a variable. If it is set, this test binary serves a private Postgres on that home until its input ends.
const helperHome = "LOCAL_TEST_HELPER_HOME"

// patience is the longest wait for another process; reaching it is a failure.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	if home := os.Getenv(helperHome); home != "" {
		if err := help(home); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	if template.dir != "" {
		_ = os.RemoveAll(template.dir)
	}
	os.Exit(code)
}

// template is the one home in which a cluster is really created, because that takes longer than everything else in
// these tests. The home has a name that needs quoting, and contains an unfinished cluster at first. Another program
// creates the cluster, in a hostile environment. TestANewCluster checks the result, and the other tests copy it.
var template struct {
	once  sync.Once
	dir   string
	home  string
	asked map[string]string // SQL statement → answer, from when the cluster was first served
	modes map[string]fs.FileMode
	err   error
}

// hostile is an environment that must not influence a cluster.
var hostile = []string{"LC_ALL=tr_TR.UTF-8", "LANG=tr_TR.UTF-8", "TZ=Asia/Kathmandu", "PGHOST=nowhere.invalid",
	"PGPORT=1", "PGDATA=/nonexistent", "PGUSER=nobody", "PGDATABASE=nothing", "PGSSLMODE=verify-full", "PGPASSWORD=wrong",
	"PGSSLROOTCERT=/nonexistent", "PGTARGETSESSIONATTRS=standby", "HOME=/nonexistent"}

func makeTemplate(t *testing.T) error {
	var err error
	if template.dir, err = os.MkdirTemp("", "local-test-*"); err != nil {
		return err
	}
	template.home = filepath.Join(template.dir, `it's "my" home & 100% ünique`)
	unfinished := filepath.Join(template.home, "initdb-123")
	if err := errors.Join(os.Chmod(template.dir, 0o755), os.MkdirAll(unfinished, 0o755),
		os.WriteFile(filepath.Join(unfinished, "PG_VERSION"), []byte("15\n"), 0o600)); err != nil {
		return err
	}
	h := startHelper(t, template.home, hostile...)
	template.asked, template.modes = map[string]string{}, map[string]fs.FileMode{}
	for _, row := range newClusterAnswers {
		template.asked[row.statement] = ask(t, h.url, row.statement)
	}
	for _, dir := range []string{"postgres", "run"} {
		info, err := os.Stat(filepath.Join(template.home, dir))
		if err != nil {
			return err
		}
		template.modes[dir] = info.Mode().Perm()
	}
	return errors.Join(h.stdin.Close(), h.cmd.Wait())
}

// needTemplate creates the template unless it exists.
func needTemplate(t *testing.T) {
	t.Helper()
	template.once.Do(func() {
		template.err = errors.New("a test that made it failed")
		template.err = makeTemplate(t)
	})
	if template.err != nil {
		t.Fatalf("make a cluster to copy: %v", template.err)
	}
}

// newCluster returns a home with a new cluster that was stopped cleanly.
func newCluster(t *testing.T) string {
	t.Helper()
	home := newHome(t)
	copyCluster(t, home)
	return home
}

// copyCluster copies a cluster that was stopped cleanly into a home.
func copyCluster(t *testing.T, home string) {
	t.Helper()
	needTemplate(t)
	out, err := exec.CommandContext(t.Context(), "cp", "-Rp", filepath.Join(template.home, "postgres"), home).
		CombinedOutput()
	if err != nil {
		t.Fatalf("copy a cluster: %v: %s", err, out)
	}
}

func help(home string) error {
	ctx := context.Background()
	s, err := local.Start(ctx, local.Options{Home: home, Settings: fast})
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(s.URL()); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return s.Stop(ctx)
}

// fast gives up durability that no test here relies on: processes are killed, the machine is not.
var fast = map[string]string{"fsync": "off", "shared_buffers": "16MB"}

// helper is another process that serves a private Postgres.
type helper struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	url   string
}

func startHelper(t *testing.T, home string, env ...string) *helper {
	t.Helper()
	h := &helper{cmd: exec.CommandContext(t.Context(), os.Args[0])}
	h.cmd.Env = append(append(os.Environ(), helperHome+"="+home), env...)
	var stderr bytes.Buffer
	h.cmd.Stderr = &stderr
	var err error
	if h.stdin, err = h.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &h.url)
	}
	if err != nil {
		_ = h.cmd.Wait()
		t.Fatalf("the helper on %s did not start: %v: %s", home, err, stderr.String())
	}
	return h
}

// newHome returns an empty directory that Postgres' user can reach.
func newHome(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// start starts a server and stops it at the end of the test.
func start(t *testing.T, o local.Options) *local.Server {
	t.Helper()
	if o.Settings == nil {
		o.Settings = fast
	}
	s, err := local.Start(t.Context(), o)
	if err != nil {
		t.Fatalf("Start(%+v): %v", o, err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t *testing.T, s *local.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Errorf("Stop: %v", err)
	}
}

// refuse starts a server that must not start, and returns the error's sentence.
func refuse(t *testing.T, o local.Options) string {
	t.Helper()
	s, err := local.Start(t.Context(), o)
	if err == nil {
		stop(t, s)
		t.Fatalf("Start(%+v) = nil error, want one", o)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("Start(%+v) fails with %q, want one sentence", o, err)
	}
	return err.Error()
}

func wantSentence(t *testing.T, got string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("got sentence %q, want it to say %q", got, w)
		}
	}
}

// ask runs one statement on the database and returns its single value.
func ask(t *testing.T, url, statement string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatalf("connect to %s: %v", url, err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var got string
	if err := conn.QueryRow(t.Context(), statement).Scan(&got); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return got
}

// keep stores the row that wantKept looks for.
func keep(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatalf("connect to %s: %v", url, err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), "CREATE TABLE memory AS SELECT 'kept' AS word"); err != nil {
		t.Fatal(err)
	}
}

func wantKept(t *testing.T, url string) {
	t.Helper()
	if got := ask(t, url, "SELECT word FROM memory"); got != "kept" {
		t.Errorf("the word in memory = %q, want %q", got, "kept")
	}
}

// serverPID returns the process of the server on home.
func serverPID(t *testing.T, home string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(home, "postgres", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatalf("postmaster.pid starts with %q: %v", line, err)
	}
	return pid
}

// eventually polls until the condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("%s: still not so after %s", what, patience)
		case <-tick.C:
		}
	}
}

// running reports whether pid is a process that has not ended; a zombie has ended.
func running(pid int) bool {
	if err := syscall.Kill(pid, 0); err != nil {
		return false
	}
	out, err := exec.CommandContext(context.Background(), "ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(out)), "Z")
}

// asOwner returns the attributes for a process that runs as the owner of path, or nil if this process already does.
func asOwner(t *testing.T, path string) *syscall.SysProcAttr {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if os.Geteuid() != 0 || !ok {
		return nil
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stat.Uid, Gid: stat.Gid}}
}

// install fakes an installed Postgres of a version. If vector is not empty, pgvector of that version is installed, too.
func install(t *testing.T, postgres, vector string) string {
	t.Helper()
	root := newHome(t)
	bin, extension := filepath.Join(root, "bin"), filepath.Join(root, "share", "extension")
	for _, dir := range []string{bin, extension} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(bin, "postgres"), "#!/bin/sh\necho 'postgres (PostgreSQL) "+postgres+"'\n", 0o755)
	write(t, filepath.Join(bin, "initdb"), "#!/bin/sh\nexit 1\n", 0o755)
	if vector != "" {
		write(t, filepath.Join(extension, "vector.control"), "comment = 'x'\ndefault_version = '"+vector+"'\n", 0o644)
	}
	return bin
}

func write(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// words collects log lines of every level.
type words struct {
	mu    sync.Mutex
	lines strings.Builder
}

func (w *words) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines.Write(p)
}

func (w *words) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines.String()
}

func (w *words) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
