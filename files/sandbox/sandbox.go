// Package sandbox runs what reads hostile input in child processes: the same program, run again for one input. A child
// has its three streams, and memory and time within bounds that the kernel keeps. Once it calls Enter it opens no file,
// starts no process, and reaches neither another process nor the network.
//
// Each file uses those that are named before it:
//   - the system calls that a child may make: calls_linux_amd64.go calls_linux_arm64.go seccomp_linux.go calls_cgo.go
//     calls_nocgo.go nofilters_linux.go
//   - what the kernel keeps from a child: limit_linux.go confine_linux.go sandbox_other.go
//   - children and their bounds: sandbox.go limit.go
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"syscall"
	"time"
)

// Why a child ended without an answer, beside its own *exec.ExitError.
var (
	ErrMemory   = errors.New("it needed more memory than a child may have")
	ErrCPU      = errors.New("it took more processor time than a child may have")
	ErrPatience = errors.New("it was not done in its time")
	ErrKilled   = errors.New("its process was killed")
	ErrStart    = errors.New("its process was not started")
)

// Exit codes of a child beyond its bounds. Go's runtime exits with 2.
const (
	exitMemory = 70
	exitCPU    = 71
)

// Child is one run of a child.
type Child struct {
	Command  []string // a program that calls Limit and Enter
	Stdin    io.Reader
	Stdout   io.Writer
	Patience time.Duration // of wall clock
}

// Run runs the child to its end, and returns the beginning and the end of what it wrote to stderr. Its error is one of
// ctx, one of those above, or an *exec.ExitError.
func (c Child) Run(ctx context.Context) (stderr string, err error) {
	bounded, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	stderrEnds := &said{}
	cmd := exec.CommandContext(bounded, c.Command[0], c.Command[1:]...)
	stdin, close := readOnly(c.Stdin)
	defer close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, c.Stdout, stderrEnds
	cmd.Env, cmd.Dir = []string{}, "/" // without the server's secrets
	cmd.SysProcAttr = attributes()
	cmd.Cancel = func() error { // kills the child and all that it started
		if syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) != nil {
			return os.ErrProcessDone
		}
		return nil
	}
	cmd.WaitDelay = time.Second
	keepInherited()
	runtime.LockOSThread() // the child dies with the thread that started it
	err = cmd.Run()
	runtime.UnlockOSThread()
	if err != nil && ctx.Err() != nil {
		return stderrEnds.String(), ctx.Err()
	}
	return stderrEnds.String(), verdict(cmd.ProcessState, bounded.Err() != nil, stderrEnds.String(), err)
}

// readOnly returns a file that is open for writing, too, as one that can only be read, from its beginning; another
// reader, and a file of a system without /proc, as it is.
func readOnly(r io.Reader) (read io.Reader, close func()) {
	file, ok := r.(*os.File)
	if !ok {
		return r, func() {}
	}
	again, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	if err != nil {
		return r, func() {}
	}
	return again, func() { _ = again.Close() } // the child has its own
}

// verdict returns why a child that ended in err, late or not, gave no answer.
func verdict(state *os.ProcessState, late bool, stderr string, err error) error {
	switch {
	case err == nil:
		return nil
	case state == nil:
		return fmt.Errorf("%w: %w", ErrStart, err)
	case late:
		return ErrPatience
	case state.ExitCode() == exitMemory, noMemory.MatchString(stderr):
		return ErrMemory
	case state.ExitCode() == exitCPU, endedBy(state, syscall.SIGXCPU):
		return ErrCPU
	case endedBy(state, syscall.SIGKILL): // as the system does when memory runs out
		return ErrKilled
	}
	return err
}

// noMemory matches what programs say when the system refuses them memory. Go's garbage collector does not look whether
// it got memory for its own lists, and then reads from address 0.
var noMemory = regexp.MustCompile(`out of memory|cannot allocate memory|failed to allocate|` +
	`pthread_create failed|failed to create new OS thread|Out of memory|std::bad_alloc|` +
	`SIGSEGV: segmentation violation\s+PC=\S+ m=\d+ sigcode=1 addr=0x0\s+goroutine 0 `)

func endedBy(state *os.ProcessState, signal syscall.Signal) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == signal
}

// said holds the beginning and the end of what was written to it: programs name the cause first or last.
type said struct{ beginning, end []byte }

const (
	beginningBytes = 1 << 10
	endBytes       = 16 << 10
)

func (s *said) Write(p []byte) (int, error) {
	first := min(len(p), beginningBytes-len(s.beginning))
	s.beginning = append(s.beginning, p[:first]...)
	rest := p[first:]
	s.end = append(s.end, rest[max(0, len(rest)-endBytes):]...)
	s.end = s.end[max(0, len(s.end)-endBytes):]
	return len(p), nil
}

func (s *said) String() string { return string(s.beginning) + string(s.end) }
