// Command shared starts the Postgres of the tests, runs the command of its arguments, usually go test, whose packages
// all use that Postgres, and stops it. It exits with the command's code.
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

// run runs a command with a Postgres for its tests, and returns its exit code.
func run(args []string) (code int, err error) {
	// Ctrl-C goes to the command, too, which ends; then Postgres is stopped.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	kind, environment, stop, err := dbtest.Share()
	if err != nil {
		return 1, fmt.Errorf("start Postgres: %w", err)
	}
	defer func() { err = errors.Join(err, stop()) }()
	fmt.Fprintln(os.Stderr, "shared: the tests run on "+kind)
	cmd := exec.CommandContext(context.Background(), args[0], args[1:]...) //nolint:gosec // the caller's command
	cmd.Env = append(os.Environ(), environment...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			if s == syscall.SIGTERM {
				_ = cmd.Process.Signal(s)
			}
		case err := <-ended:
			if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
				return max(failed.ExitCode(), 1), nil // -1: a signal ended it
			}
			return 0, err
		}
	}
}
