//go:build !linux

package local

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// attributes drop root's privileges and keep a terminal's signals away. No signal tells the process of its parent's death: the
// next start takes over.
func (a account) attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: a.credential, Setpgid: true}
}

// runsOn tells whether pid is a server of Postgres on data, which its command line then names.
func runsOn(pid int, data string) bool {
	out, err := exec.CommandContext(context.Background(), "ps", "-ww", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.Contains(string(out), "postgres -D "+data+" ")
}
