package local

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// attributes returns how Postgres is started: without root's privileges, and out of reach of a terminal's signals. The
// kernel sends it a fast shutdown when the thread that started it ends. The kernel drops that request when the user
// changes, so Go's runtime sets it after changing the user.
func (a account) attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: a.credential, Setpgid: true, Pdeathsig: syscall.SIGINT}
}

// runsOn reports whether pid is a Postgres server with data as its working directory.
func runsOn(pid int, data string) bool {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	name, _ := os.ReadFile(filepath.Join(proc, "comm"))
	dir, err := os.Readlink(filepath.Join(proc, "cwd"))
	return err == nil && dir == data && strings.TrimSpace(string(name)) == "postgres"
}
