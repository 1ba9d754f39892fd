//go:build !linux

package local

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// attributes returns how Postgres is started: without root's privileges, and out of reach of a terminal's signals. If
// its parent crashes, Postgres keeps running, and the next start takes over.
func (a account) attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: a.credential, Setpgid: true}
}

// runsOn reports whether pid is a Postgres server with data in its command line.
func runsOn(pid int, data string) bool {
	out, err := exec.CommandContext(context.Background(), "ps", "-ww", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.Contains(string(out), "postgres -D "+data+" ")
}
