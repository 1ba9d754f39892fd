// Package sandbox reads hostile input in child processes. A child is this program, run again for one input. It has its
// three streams, and limited memory and time; the kernel enforces the limits. Once it has called Enter, it can open no
// file, start no process, and reach neither another process nor the network. Programs of the operator run in a sandbox
// that is wider: see Program.
//
// Each file uses only the files named before it:
//   - the system calls that children and programs may make: seccomp_linux.go calls_cgo.go calls_nocgo.go
//     refused_linux_amd64.go refused_linux_arm64.go refused_linux.go nofilters_linux.go
//   - what the kernel keeps from a child: limit_linux.go confine_linux.go sandbox_other.go
//   - children and their limits: sandbox.go limit.go
//   - programs of the operator: launch.go launch_linux.go scratch.go program.go
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

// Why a child ended without an answer, if not by its own *exec.ExitError.
var (
	ErrMemory   = errors.New("it needed more memory than a child may have")
	ErrCPU      = errors.New("it took more processor time than a child may have")
	ErrPatience = errors.New("it was not done in its time")
	ErrKilled   = errors.New("its process was killed")
	ErrStart    = errors.New("its process was not started")
)

// Exit codes of a child that exceeded its limits. Go's runtime exits with 2.
const (
	exitMemory = 70
	exitCPU    = 71
)

// Child is one run of a child.
type Child struct {
	Command  []string // a program that calls Limit and Enter
	Stdin    io.Reader
	Stdout   io.Writer
	Patience time.Duration // wall-clock time
}

// Run runs the child to its end. It returns the beginning and the end of what the child wrote to stderr. The error is
// ctx's, one of the errors above, or an *exec.ExitError.
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
	runtime.LockOSThread() // because the child dies with the thread that started it
	err = cmd.Run()
	runtime.UnlockOSThread()
	if err != nil && ctx.Err() != nil {
		return stderrEnds.String(), ctx.Err()
	}
	return stderrEnds.String(), verdict(cmd.ProcessState, bounded.Err() != nil, stderrEnds.String(), err)
}

// readOnly returns a file that is also open for writing as a file that can only be read, from its beginning. Any other
// reader, or a file on a system without /proc, is returned unchanged.
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

// verdict returns why a child gave no answer. The child ended with err; late says that its time was over.
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
	case endedBy(state, syscall.SIGKILL): // as the system does when it runs out of memory
		return ErrKilled
	}
	return err
}

// noMemory matches what programs print when the system refuses them memory. Go's garbage collector does not check
// whether it got memory for its own lists, and then reads from address 0.
var noMemory = regexp.MustCompile(`out of memory|cannot allocate memory|failed to allocate|` +
	`pthread_create failed|failed to create new OS thread|Out of memory|std::bad_alloc|` +
	`SIGSEGV: segmentation violation\s+PC=\S+ m=\d+ sigcode=1 addr=0x0\s+goroutine 0 `)

func endedBy(state *os.ProcessState, signal syscall.Signal) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == signal
}

// said keeps the beginning and the end of a program's output, because programs name the cause first or last.
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
