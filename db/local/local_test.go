package local_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db/local"
)

// newClusterAnswers lists what a new cluster answers, whatever the environment of the program that created it.
var newClusterAnswers = []struct{ name, statement, want string }{
	{"the encoding is UTF-8", "SHOW server_encoding", "UTF8"},
	{"no network is listened on", "SHOW listen_addresses", ""},
	{"times are UTC", "SHOW timezone", "UTC"},
	{"settings given win", "SHOW shared_buffers", "16MB"},
	{"pages carry checksums", "SHOW data_checksums", "on"},
	{"vectors work", "SELECT ('[1,2]'::vector <#> '[3,4]'::vector)::text", "-11"},
	{"text sorts by code point", "SELECT min(w) FROM (VALUES ('a'), ('B'), ('ä')) t(w)", "B"},
	{"upper case is not Turkish", "SELECT upper('i')", "I"},
	{"no setting is inherited", "SELECT count(*)::text FROM pg_file_settings WHERE setting LIKE '%Kathmandu%'", "0"},
}

// A cluster is private, uses UTF-8 and ends cleanly with its program, even if that program has a hostile environment
// and the home has an odd name and contains an unfinished cluster.
func TestANewCluster(t *testing.T) {
	t.Parallel()
	needTemplate(t)
	for _, row := range newClusterAnswers {
		if got := template.asked[row.statement]; got != row.want {
			t.Errorf("%s: %s = %q, want %q", row.name, row.statement, got, row.want)
		}
	}
	for dir, mode := range template.modes {
		if mode != 0o700 {
			t.Errorf("mode of %s = %o, want 700", dir, mode)
		}
	}
	if left, err := filepath.Glob(filepath.Join(template.home, "initdb-*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v (%v), want nothing", left, err)
	}
	if _, err := os.Stat(filepath.Join(template.home, "postgres", "postmaster.pid")); !os.IsNotExist(err) {
		t.Errorf("the server left its pid file: %v", err)
	}
}

// A missing home is created. If the cluster cannot be created, nothing of it stays in the home.
func TestAClusterThatCannotBeMadeLeavesNothing(t *testing.T) {
	t.Parallel()
	home := filepath.Join(newHome(t), "missing")
	wantSentence(t, refuse(t, local.Options{Home: home, Bin: install(t, "17.2", "0.8.0")}), "make a cluster with initdb")
	if left, err := filepath.Glob(filepath.Join(home, "[ip]*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q (%v)", left, err)
	}
	if _, err := os.Stat(home); err != nil {
		t.Error(err)
	}
}

func TestDataOutlivesAStop(t *testing.T) {
	t.Parallel()
	home := newCluster(t)
	if url, _, ok := local.Running(home); ok {
		t.Errorf("Running before a start = %q, want none", url)
	}
	s := start(t, local.Options{Home: home})
	if url, _, ok := local.Running(home); !ok || url != s.URL() {
		t.Errorf("Running = %q, %t, want %q, true", url, ok, s.URL())
	}
	keep(t, s.URL())
	wantSentence(t, refuse(t, local.Options{Home: home}), "another Loci", "pid "+strconv.Itoa(os.Getpid()), home)
	wantKept(t, s.URL()) // the refused start did not disturb the server
	stop(t, s)
	select {
	case <-s.Done():
	default:
		t.Error("Done is open after Stop")
	}
	if err := s.Err(); err != nil {
		t.Errorf("Err after Stop = %v, want nil", err)
	}
	if url, _, ok := local.Running(home); ok {
		t.Errorf("Running after Stop = %q, want none", url)
	}
	// Meanwhile a newer Postgres was installed.
	again := start(t, local.Options{Home: home, Bin: install(t, "99.1", "0.8.0")})
	wantKept(t, again.URL())
}

func TestKilledServerIsReportedAndRecovers(t *testing.T) {
	t.Parallel()
	home, logged := newCluster(t), &words{}
	s := start(t, local.Options{Home: home, Log: logged.logger()})
	keep(t, s.URL())
	busy, err := pgx.Connect(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = busy.Close(context.Background()) }()
	kill(t, serverPID(t, home))
	<-s.Done()
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "ended by itself (signal: killed)") {
		t.Errorf("Err of a killed server = %v, want that it ended by itself", err)
	}
	for line := range strings.Lines(logged.String()) {
		if strings.Contains(line, "terminating connection") && !strings.Contains(line, "level=DEBUG") {
			t.Errorf("the end of a client's connection is logged as %s", line)
		}
	}
	stop(t, s)
	wantKept(t, start(t, local.Options{Home: home}).URL())
}

func TestServerEndsWithItsKilledParent(t *testing.T) {
	t.Parallel()
	home := newCluster(t)
	h := startHelper(t, home)
	keep(t, h.url)
	pid := serverPID(t, home)
	if err := h.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = h.cmd.Wait()
	eventually(t, "Postgres is gone after its parent was killed", func() bool { return !running(pid) })
	var log words
	wantKept(t, start(t, local.Options{Home: home, Log: log.logger()}).URL())
	if want := "database system was shut down at"; !strings.Contains(log.String(), want) {
		t.Errorf("log of the next start = %q, want %q: the shutdown was not clean", log.String(), want)
	}
}

func TestStartTakesOverFromAnOrphan(t *testing.T) {
	t.Parallel()
	home := newCluster(t)
	s := start(t, local.Options{Home: home})
	keep(t, s.URL())
	stop(t, s)
	orphan := serve(t, home)
	var log words
	wantKept(t, start(t, local.Options{Home: home, Log: log.logger()}).URL())
	if running(orphan) {
		t.Errorf("the orphan (pid %d) still runs beside the new server", orphan)
	}
	if want := "database system was shut down at"; !strings.Contains(log.String(), want) {
		t.Errorf("log of the take-over = %q, want %q: the orphan was not stopped cleanly", log.String(), want)
	}
}

// serve runs Postgres on home without a parent that owns it, and returns its process.
func serve(t *testing.T, home string) int {
	t.Helper()
	bin, err := local.Find(t.Context(), os.Getenv("LOCI_POSTGRES_BIN"))
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(home, "postgres")
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin.Dir, "postgres"), "-D", data, "-c", "listen_addresses=",
		"-c", "unix_socket_directories="+filepath.Join(home, "run"))
	cmd.SysProcAttr, cmd.Dir = asOwner(t, data), home
	begin(t, cmd)
	eventually(t, "the orphan is ready", func() bool {
		text, _ := os.ReadFile(filepath.Join(data, "postmaster.pid"))
		return strings.Contains(string(text), "ready")
	})
	return cmd.Process.Pid
}

// begin runs cmd until the test ends.
func begin(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
}

func kill(t *testing.T, pid int) {
	t.Helper()
	p, err := os.FindProcess(pid)
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestStalePIDFileIsNoObstacle(t *testing.T) {
	t.Parallel()
	home := newCluster(t)
	s := start(t, local.Options{Home: home})
	keep(t, s.URL())
	pidFile, lockFile := filepath.Join(
		home,
		"postgres",
		"postmaster.pid",
	), filepath.Join(
		home,
		"run",
		".s.PGSQL.5432.lock",
	)
	disarmed, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	stop(t, s)
	_, rest, _ := strings.Cut(string(disarmed), "\n")
	other := exec.CommandContext(t.Context(), "sleep", "600")
	other.SysProcAttr = asOwner(t, filepath.Join(home, "postgres"))
	begin(t, other)
	for _, row := range []struct{ name, text string }{
		{"a process that is gone", string(disarmed)},
		{"another program of the same user", strconv.Itoa(other.Process.Pid) + "\n" + rest},
		{"the first process of the machine", "1\n" + rest},
		{"an empty file", ""},
		{"a file cut short", "12"},
		{"no number", "not a pid\n" + rest},
	} {
		t.Run(row.name, func(t *testing.T) {
			plant(t, pidFile, row.text)
			plant(t, lockFile, row.text)
			s, err := local.Start(t.Context(), local.Options{Home: home, Settings: fast})
			if err != nil {
				t.Fatalf("Start with postmaster.pid = %q: %v", row.text, err)
			}
			wantKept(t, s.URL())
			stop(t, s)
		})
	}
	if !running(other.Process.Pid) {
		t.Error("the other program was ended")
	}
}

// plant writes a file as the owner of its directory.
func plant(t *testing.T, path, text string) {
	t.Helper()
	write(t, path, text, 0o600)
	if account := asOwner(t, filepath.Dir(path)); account != nil {
		if err := os.Chown(path, int(account.Credential.Uid), int(account.Credential.Gid)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStopThatRunsOutOfTimeLosesNothing(t *testing.T) {
	t.Parallel()
	home := newCluster(t)
	s, err := local.Start(t.Context(), local.Options{Home: home, Settings: fast})
	if err != nil {
		t.Fatal(err)
	}
	keep(t, s.URL())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Stop(ctx); err == nil || !strings.Contains(err.Error(), "recovers on its next start") {
		t.Errorf("Stop without time = %v, want an error that says so", err)
	}
	wantKept(t, start(t, local.Options{Home: home}).URL())
}

// The error says why Postgres ended, even if its last lines are only consequences of a full disk.
func TestTheEndOfPostgresIsExplained(t *testing.T) {
	t.Parallel()
	const request = "FATAL:  checkpoint request failed\nHINT:  Consult recent messages in the server log for details.\n"
	for _, row := range []struct{ name, written, want string }{
		{"a full disk", "LOG:  x\nERROR:  could not write to file \"pg_wal/xlogtemp.7\": No space left on device\n" + request,
			"it ended, because the disk is full: make room there, and try again (could not write to file " +
				"\"pg_wal/xlogtemp.7\": No space left on device)"},
		{"a disk that was full once", "ERROR:  x: No space left on device\n" + strings.Repeat("LOG:  x\n", 30) + request,
			"it ended: checkpoint request failed"},
		{"another reason", "ERROR:  could not write\n" + request, "it ended: checkpoint request failed"},
		{"no reason", "LOG:  shut down\n", "it ended"},
	} {
		got := local.Explained("it ended", row.written)
		if got.Error() != row.want || errors.Is(got, syscall.ENOSPC) != strings.Contains(row.want, "disk is full") {
			t.Errorf("%s: got %q, want %q", row.name, got, row.want)
		}
	}
}
