//go:build !linux

package sandbox

import (
	"errors"
	"syscall"
	"time"
)

// attributes keep a terminal's signals from the child. A child whose parent dies ends at its own bounds.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func keepInherited() {}

// limitProcess does nothing: the process and its parent keep the bounds.
func limitProcess(int64, time.Duration) {}

func limitAddresses(int64) {}

// Unconfined returns what the system lets a child do that it should not.
func Unconfined() string {
	return "read and write the server's files, and connect to other machines: only Linux can forbid that"
}

// Enter does nothing.
func Enter() error { return nil }

// Become makes this process another program.
func Become(program string, args ...string) error {
	return errors.Join(syscall.Exec(program, append([]string{program}, args...), []string{}))
}
