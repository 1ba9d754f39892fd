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

// The variables by which the programs of one run of go test find the Postgres that the command shared started for them.
// They are read with syscall.Getenv, because go test caches no result of a program that reads a value of os.Getenv that
// differs in each run.
const (
	sharedURL  = "LOCI_TEST_SHARED_URL"
	sharedKind = "LOCI_TEST_SHARED_KIND"
)

// Environment returns the variables of programs whose tests use a Postgres; kind is where it comes from, as a phrase.
func Environment(url, kind string) []string {
	return []string{sharedURL + "=" + url, sharedKind + "=" + kind}
}

// Given returns the Postgres that the environment names: the one of LOCI_TEST_DATABASE_URL, else that of Environment.
func Given() (url, kind string, given bool) {
	if url := os.Getenv("LOCI_TEST_DATABASE_URL"); url != "" {
		return url, "the Postgres of LOCI_TEST_DATABASE_URL", true
	}
	url, given = syscall.Getenv(sharedURL)
	kind, _ = syscall.Getenv(sharedKind)
	return url, kind, given
}

// start finds a Postgres for the tests of this program: the one that the environment names, else one that the command
// shared starts for them alone. That command is a program of its own, so that not every test program contains what
// starts containers.
func start() (server, error) {
	if url, kind, given := Given(); given {
		return server{url: url, kind: kind}, nil
	}
	return launch(exec.CommandContext(context.Background(), "go", "run", "github.com/loci-memory/loci/db/dbtest/shared",
		"sh", "-c", `echo "$`+sharedURL+`"; echo "$`+sharedKind+`"; cat`))
}

// launch starts a command that writes the URL and the kind of a Postgres, and keeps it until its input ends: when the
// server is stopped, and when this program is killed.
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
