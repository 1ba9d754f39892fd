//go:build !linux

package sandbox

import (
	"errors"
	"syscall"
	"time"
)

// attributes returns how a child is started: out of reach of a terminal's signals. If its parent dies, the child ends
// at its own limits.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func keepInherited() {}

// limitProcess does nothing. The process and its parent enforce the limits.
func limitProcess(int64, time.Duration) {}

func limitAddresses(int64) {}

// Unconfined says what the system allows a child although it should not.
func Unconfined() string {
	return "read and write the server's files, and connect to other machines: only Linux can forbid that"
}

// Enter does nothing.
func Enter() error { return nil }

const nobody = 65534

// Launch does nothing: CanConfine refuses programs of the operator.
func Launch(string) {}

func programAttributes(bool) *syscall.SysProcAttr { return attributes() }

func usedBy(int) (int64, time.Duration) { return 0, 0 }

// CanConfine returns an error: programs of the operator run on Linux only.
func CanConfine() error { return errors.New("only Linux can confine programs") }
