package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestMain is also the program itself, if it is run with the argument run.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "run" {
		os.Args = append(os.Args[:1], os.Args[2:]...)
		main()
	}
	os.Exit(m.Run())
}

// program returns the program with arguments, without the Postgres that this run's tests share.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{"run"}, args...)...) //nolint:gosec // this one
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "LOCI_TEST_") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	return cmd
}

// The command gets a Postgres that answers. Afterwards that Postgres is gone, and the exit code is the command's.
func TestACommandHasAPostgres(t *testing.T) {
	t.Parallel()
	cmd := program(t, "sh", "-c", `trap "" INT; echo "$LOCI_TEST_SHARED_URL"; read -r line; exit 7`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 1000)
	n, _ := out.Read(text)
	url := strings.TrimSpace(string(text[:n]))
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatalf("connect to %q: %v: %s", url, err, &errs)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
	// Ctrl-C reaches the command, too, and here the command goes on.
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("it ends with %v: %s; want the command's code 7", err, &errs)
	}
	if !strings.Contains(errs.String(), "shared: the tests run on a ") {
		t.Errorf("it says %q, want what the tests run on", &errs)
	}
	if conn, err := pgx.Connect(t.Context(), url); err == nil {
		_ = conn.Close(t.Context())
		t.Error("Postgres still runs")
	}
}

// A termination signal ends the command, and then Postgres.
func TestASignalEndsTheCommand(t *testing.T) {
	t.Parallel()
	started := filepath.Join(t.TempDir(), "started")
	if err := syscall.Mkfifo(started, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := program(t, "sh", "-c", `echo > "$0"; exec sleep 600`, started)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(started); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("it ends with %v: %s; want the code 1", err, &errs)
	}
}

// If Postgres breaks, the command and all that it started end, and the error says why.
func TestABrokenPostgresEndsTheCommand(t *testing.T) {
	t.Parallel()
	cmd := program(t, "sh", "-c", `echo "$LOCI_TEST_SHARED_URL"; sleep 600 & wait`)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 1000)
	n, _ := out.Read(text)
	conn, err := pgx.Connect(t.Context(), strings.TrimSpace(string(text[:n])))
	if err != nil {
		t.Fatal(err)
	}
	var postmaster int
	if err := conn.QueryRow(t.Context(), `
		SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1)::integer`).Scan(&postmaster); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(postmaster, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(out); err != nil { // until no process has it open any more
		t.Errorf("the rest of the output is %q, %v", rest, err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 1 ||
		!strings.Contains(errs.String(), "the Postgres of the tests is broken, so they were stopped: ") {
		t.Errorf("it ends with %v: %s; want the code 1 and the reason", err, &errs)
	}
}
