// Command shared starts a Postgres for tests, runs the command in its arguments, and stops Postgres. The command is
// usually go test; all its packages use that Postgres. shared exits with the command's code.
//
// Each file uses only the files named before it: postgres.go watch.go shared.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/loci-memory/loci/db/dbtest"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "shared: give it a command to run, as in: go run ./db/dbtest/shared go test ./...")
		os.Exit(2)
	}
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "shared:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// run runs a command with a Postgres for its tests, and returns the command's exit code. If Postgres breaks, run ends
// the command and all that the command started; the error says why.
func run(args []string) (code int, err error) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	server, err := start()
	if err != nil {
		return 1, fmt.Errorf("start Postgres: %w", err)
	}
	defer func() { err = errors.Join(err, server.end()) }()
	fmt.Fprintln(os.Stderr, "shared: the tests run on "+server.kind)
	cmd := exec.CommandContext(context.Background(), args[0], args[1:]...) //nolint:gosec // the caller's command
	cmd.Env = append(os.Environ(), dbtest.Environment(server.url, server.kind)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// The command and all that it starts are one process group, so that they can be ended together.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	broken := make(chan error, 1)
	go func() { broken <- server.watch(ctx) }()
	for {
		select {
		case s := <-signals: // the command may go on; Postgres is stopped after it
			_ = syscall.Kill(-cmd.Process.Pid, s.(syscall.Signal))
		case err := <-broken:
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			<-ended //nolint:errcheck // the signal ended it
			return 1, fmt.Errorf("the Postgres of the tests is broken, so they were stopped: %w", err)
		case err := <-ended:
			if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
				return max(failed.ExitCode(), 1), nil // -1 if a signal ended it
			}
			return 0, err
		}
	}
}
