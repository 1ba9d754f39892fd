//go:build !linux

package local

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// attributes drop root's privileges and keep a terminal's signals away. The process outlives a crash of its parent: the
// next start takes over.
func (a account) attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: a.credential, Setpgid: true}
}

// runsOn reports whether pid is a server of Postgres whose command line names data.
func runsOn(pid int, data string) bool {
	out, err := exec.CommandContext(context.Background(), "ps", "-ww", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.Contains(string(out), "postgres -D "+data+" ")
}
