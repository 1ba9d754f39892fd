package dbtest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// With these variables the programs of one go test run find the Postgres that the command shared started. They are read
// with syscall.Getenv: if a test program reads a variable with os.Getenv and its value differs in each run, go test
// cannot cache the program's result.
const (
	sharedURL  = "LOCI_TEST_SHARED_URL"
	sharedKind = "LOCI_TEST_SHARED_KIND"
)

// Environment returns the variables for programs with tests that use a Postgres. kind says where it comes from, as a
// phrase.
func Environment(url, kind string) []string {
	return []string{sharedURL + "=" + url, sharedKind + "=" + kind}
}

// Given returns the Postgres that the environment names, in LOCI_TEST_DATABASE_URL or else in the variables of
// Environment.
func Given() (url, kind string, given bool) {
	if url := os.Getenv("LOCI_TEST_DATABASE_URL"); url != "" {
		return url, "the Postgres of LOCI_TEST_DATABASE_URL", true
	}
	url, given = syscall.Getenv(sharedURL)
	kind, _ = syscall.Getenv(sharedKind)
	return url, kind, given
}

// start finds a Postgres for this program's tests: the one that the environment names, or else one that it starts with
// the command shared for this program alone. The command is a separate program, so that test programs do not contain
// the code that starts containers.
func start() (server, error) {
	if url, kind, given := Given(); given {
		return server{url: url, kind: kind}, nil
	}
	return launch(exec.CommandContext(context.Background(), "go", "run", "github.com/loci-memory/loci/db/dbtest/shared",
		"sh", "-c", `echo "$`+sharedURL+`"; echo "$`+sharedKind+`"; cat`))
}

// launch starts a command that prints the URL and the kind of a Postgres, and keeps the Postgres until its input ends.
// The input ends when the server is stopped, or when this program is killed.
func launch(cmd *exec.Cmd) (server, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return server{}, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return server{}, err
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		return server{}, err
	}
	stop := func() error {
		_ = in.Close() // the command may have ended
		_, _ = io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("%w: %s", err, &errs)
		}
		return nil
	}
	lines := bufio.NewReader(out)
	url, _ := lines.ReadString('\n')
	kind, err := lines.ReadString('\n')
	if err != nil { // stop says why
		return server{}, fmt.Errorf("%s: %w", strings.Join(cmd.Args[:3], " "), stop())
	}
	return server{url: strings.TrimSpace(url), kind: strings.TrimSpace(kind), stop: stop}, nil
}
