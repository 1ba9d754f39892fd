package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/loci-memory/loci/db/local"
)

// instance is a running server with a private Postgres of its own.
type instance struct {
	client
	home  string
	cmd   *exec.Cmd
	ended chan struct{}
}

// patience bounds the wait for a server to start or to stop.
const patience = 2 * time.Minute

// serve starts the program on a home, created if necessary, and waits until the server is ready. It also returns how
// long that took.
func (b *bench) serve(ctx context.Context, home string, settings ...string) (*instance, time.Duration, error) {
	if err := os.MkdirAll(home, 0o755); err != nil {
		return nil, 0, err
	}
	log, err := os.OpenFile(filepath.Join(home, "bench.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, 0, err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, b.loci, "serve")
	if !strings.Contains(strings.Join(settings, " "), "LOCI_EMBEDDING") {
		settings = append(settings, "LOCI_EMBEDDING=off")
	}
	cmd.Env = append(environment(), append(settings, "LOCI_HOME="+home, "LOCI_ADDR=127.0.0.1:0",
		"LOCI_POSTGRES_BIN="+b.postgresBin)...)
	cmd.Stderr = log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = patience
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, 0, err
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, 0, err
	}
	s := &instance{home: home, cmd: cmd, ended: make(chan struct{})}
	address := make(chan string, 1)
	go s.follow(stdout, address)
	if err := s.awaitReady(ctx, address); err != nil {
		return nil, 0, errors.Join(err, s.stop())
	}
	return s, time.Since(start), nil
}

// environment returns this process's environment without settings that would change the measurements.
func environment() (variables []string) {
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "LOCI_") {
			variables = append(variables, variable)
		}
	}
	return variables
}

// follow reads the address from the server's output, and then reads on until the output ends.
func (s *instance) follow(stdout io.Reader, address chan<- string) {
	defer close(s.ended)
	defer close(address)
	lines, sent := bufio.NewScanner(stdout), false
	for lines.Scan() {
		if _, base, ok := strings.Cut(lines.Text(), " serves "); ok && !sent {
			sent = true
			address <- strings.TrimSpace(base)
		}
	}
	_ = s.cmd.Wait() // ProcessState has the result
}

func (s *instance) awaitReady(ctx context.Context, address <-chan string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case base, ok := <-address:
		if !ok {
			return fmt.Errorf("the server ended while starting:\n%s", s.lastWords())
		}
		s.client = newClient(base)
	case <-ctx.Done():
		return fmt.Errorf("wait for the server: %w", ctx.Err())
	}
	return poll(ctx, 2*time.Millisecond, func() (bool, error) {
		return s.call(ctx, http.MethodGet, "/v1/ready", nil, nil) == nil, nil
	})
}

func (s *instance) lastWords() string {
	text, err := os.ReadFile(filepath.Join(s.home, "bench.log"))
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

// stop ends the server as an operator would.
func (s *instance) stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // the server may have ended
	select {
	case <-s.ended:
	case <-time.After(patience):
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
	if !s.cmd.ProcessState.Success() {
		return fmt.Errorf("the server ended with %v:\n%s", s.cmd.ProcessState, s.lastWords())
	}
	return nil
}

// postgres returns the address of the server's database.
func (s *instance) postgres() (string, error) {
	url, _, ok := local.Running(s.home)
	if !ok {
		return "", fmt.Errorf("no Postgres runs on %s", s.home)
	}
	return url, nil
}

// memory is the memory of the server's own process, in bytes: the resident memory, its maximum so far, and the part of
// it that is pages of the program's file. The system shares those pages, and can take them back at any time.
type memory struct{ now, peak, program float64 }

// resident returns the memory of the server's own process. ok is false if the system does not tell.
func (s *instance) resident() (m memory, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return m, false
	}
	field := func(name string) float64 {
		_, line, _ := strings.Cut(string(text), name+":")
		kilobytes, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, _ := strconv.ParseFloat(kilobytes, 64)
		return n * 1024
	}
	return memory{field("VmRSS"), field("VmHWM"), field("RssFile")}, true
}

func (m memory) ofProgram() string {
	return fmt.Sprintf("with %.0f MB of the program's file, which the system shares and takes back at will", m.program/1e6)
}
