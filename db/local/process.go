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

// How long to wait for processes to end.
const (
	// orphanPatience is for the last processes of a crashed server, which end once they notice the crash.
	orphanPatience = 10 * time.Second
	// fastPatience is for a fast shutdown, which writes everything to disk.
	fastPatience = 60 * time.Second
	// immediatePatience is for an immediate shutdown. Postgres kills its own children after 5 seconds.
	immediatePatience = 10 * time.Second
)

// child is a process that ends when this process ends. The kernel ties the child to the thread that started it, so one
// goroutine holds that thread until the child ends.
type child struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// spawn starts cmd. When the child has ended, done is closed and cmd.ProcessState is set.
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
			_ = cmd.Wait() // ProcessState tells how it ended
		}
	}()
	return c, <-started
}

// poll calls done every 2 ms until it returns true or ctx ends.
func poll(ctx context.Context, done func() bool) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

func (c *child) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// signal sends sig. It ignores the error, which would say that the child has ended.
func (c *child) signal(sig syscall.Signal) { _ = c.cmd.Process.Signal(sig) }

// end sends sig and waits until the child has ended. If the child does not end in time, it is killed.
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

// run runs cmd to its end and returns its output. If ctx ends first, it ends the program.
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
