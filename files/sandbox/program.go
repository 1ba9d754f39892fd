package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// Why a program of the operator ended without an answer, besides the reasons of a child.
var (
	ErrScratch  = errors.New("it wrote more than its scratch folder may hold")
	ErrConfined = errors.New("its sandbox was not made")
)

// Host runs programs of the operator.
type Host struct {
	Launcher []string // a program that calls Launch with its last argument; the Host appends that argument
	TempDir  string   // has the scratch folders; empty: the system's temporary directory

	// OwnTmp says that a program has a /tmp of its own, which is its scratch folder. LibreOffice does not start without
	// it, because it makes a socket there, whatever its environment says.
	OwnTmp bool
}

// NewHost returns a Host that starts programs by a launcher. It deletes the scratch folders of servers that were
// killed, and tries whether the system gives programs a /tmp of their own. An error if the kernel cannot confine
// programs.
func NewHost(ctx context.Context, tempDir string, launcher ...string) (*Host, error) {
	if err := CanConfine(); err != nil {
		return nil, err
	}
	h := &Host{Launcher: launcher, TempDir: tempDir, OwnTmp: true}
	sweepScratches(tempDir)
	scratch, err := h.Scratch()
	if err != nil {
		return nil, err
	}
	defer scratch.Close()
	trial := Program{Scratch: scratch, MemoryBytes: 1 << 30, CPU: time.Minute, Patience: time.Minute}
	stderr, err := h.Run(ctx, trial)
	if err != nil { // a kernel or a container that forbids mounts
		h.OwnTmp, scratch.Inside = false, scratch.Dir
		stderr, err = h.Run(ctx, trial)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, stderr)
	}
	return h, nil
}

// Scratch makes a folder for one run. The caller closes it.
func (h *Host) Scratch() (*Scratch, error) {
	s, err := newScratch(h.TempDir)
	if err == nil && h.OwnTmp {
		s.Inside = "/tmp"
	}
	return s, err
}

// Program is one run of a program of the operator. It reads the files below /usr and those of /etc that all users may
// read, and writes only to its scratch folder. It may listen at Unix sockets there; it reaches no network, and no
// process but those that it starts. All of them together have the memory and the processor time of the run.
type Program struct {
	Command []string // the program's absolute path, and its arguments
	Scratch *Scratch // its folder; also its home and its directory for temporary files
	Stdin   io.Reader
	Stdout  io.Writer

	MemoryBytes int64
	CPU         time.Duration // whole seconds
	Patience    time.Duration // wall-clock time
}

// Run runs a program to its end, and ends all that it started. It returns the beginning and the end of what it wrote
// to stderr. The error is ctx's, one of the errors of this package, or an *exec.ExitError.
func (h *Host) Run(ctx context.Context, p Program) (stderr string, err error) {
	argument, err := json.Marshal(launch{p.Command, p.Scratch.Dir, p.Scratch.Inside, os.Getpid(),
		p.MemoryBytes, p.CPU})
	if err != nil {
		return "", err
	}
	bounded, cancel := context.WithTimeout(ctx, p.Patience)
	defer cancel()
	said := &said{}
	cmd := exec.CommandContext(bounded, h.Launcher[0], append(slices.Clip(h.Launcher[1:]), string(argument))...)
	stdin, closeStdin := readOnly(p.Stdin)
	defer closeStdin()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, p.Stdout, said
	cmd.Dir, cmd.Env, cmd.SysProcAttr = p.Scratch.Dir, programEnv(p.Scratch.Inside),
		programAttributes(p.Scratch.Inside != p.Scratch.Dir)
	end := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = func() error {
		if end() != nil {
			return os.ErrProcessDone
		}
		return nil
	}
	cmd.WaitDelay = time.Second
	keepInherited()
	runtime.LockOSThread() // because the launcher ends with the thread that started it
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("%w: %w", ErrStart, err)
	}
	watched := make(chan error, 1)
	ended := make(chan struct{})
	go func() { watched <- p.watch(cmd.Process.Pid, ended) }()
	err = cmd.Wait()
	_ = end() // what the program left behind
	close(ended)
	over := <-watched
	switch {
	case err != nil && ctx.Err() != nil:
		return said.String(), ctx.Err()
	case err != nil && over != nil:
		return said.String(), over
	case cmd.ProcessState.ExitCode() == exitUnconfined:
		return said.String(), ErrConfined
	case cmd.ProcessState.ExitCode() == 128+int(syscall.SIGXCPU):
		return said.String(), ErrCPU
	}
	return said.String(), verdict(cmd.ProcessState, bounded.Err() != nil, said.String(), err)
}

// programEnv returns the environment of a program: nothing of the server's.
func programEnv(scratch string) []string {
	return []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + scratch, "TMPDIR=" + scratch, "LANG=C.UTF-8",
		"XDG_RUNTIME_DIR=" + scratch, "OMP_THREAD_LIMIT=1"}
}

// watchProgramEvery is how often the memory and the processor time of a program are measured.
const watchProgramEvery = 100 * time.Millisecond

// watch kills the group of a program's processes once it is beyond a limit, and returns which one that is.
func (p Program) watch(group int, ended <-chan struct{}) (over error) {
	ticks := time.NewTicker(watchProgramEvery)
	defer ticks.Stop()
	for n := 0; ; n++ {
		select {
		case <-ended:
			return over
		case <-ticks.C:
		}
		memory, cpu := usedBy(group)
		switch {
		case over != nil:
		case memory > p.MemoryBytes:
			over = ErrMemory
		case cpu > p.CPU:
			over = ErrCPU
		case n%10 == 0 && p.Scratch.isFull():
			over = ErrScratch
		}
		if over != nil {
			_ = syscall.Kill(-group, syscall.SIGKILL) // it may have ended
		}
	}
}
