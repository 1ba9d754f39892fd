package local

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// How long to wait for what ends by itself, or what was told to.
const (
	// orphanPatience is for the last processes of a crashed server, which end once they notice.
	orphanPatience = 10 * time.Second
	// fastPatience is for a fast shutdown, which writes out everything.
	fastPatience = 60 * time.Second
	// immediatePatience is for an immediate shutdown; Postgres kills its own children after 5 seconds.
	immediatePatience = 10 * time.Second
)

// child is a process that ends when this one does. The kernel ties that to the thread that started it, so one goroutine keeps
// that thread from start to end.
type child struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// spawn starts cmd; the child's end closes done, after which cmd.ProcessState tells how.
func spawn(cmd *exec.Cmd) (*child, error) {
	cmd.WaitDelay = orphanPatience
	c := &child{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(c.done)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // ProcessState has it
		}
	}()
	return c, <-started
}

func (c *child) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// signal sends sig; a child that has ended needs none.
func (c *child) signal(sig syscall.Signal) { _ = c.cmd.Process.Signal(sig) }

// end sends sig, then kills what does not obey, and waits until the child has ended.
func (c *child) end(sig syscall.Signal) {
	c.signal(sig)
	patience := time.NewTimer(immediatePatience)
	defer patience.Stop()
	select {
	case <-c.done:
	case <-patience.C:
		c.signal(syscall.SIGKILL)
		<-c.done
	}
}

// run runs cmd to its end and returns what it wrote. If ctx ends first, the program is ended.
func run(ctx context.Context, cmd *exec.Cmd) ([]byte, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	c, err := spawn(cmd)
	if err != nil {
		return nil, err
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		c.end(syscall.SIGINT)
		return out.Bytes(), ctx.Err()
	}
	if !cmd.ProcessState.Success() {
		return out.Bytes(), fmt.Errorf("%v", cmd.ProcessState)
	}
	return out.Bytes(), nil
}
