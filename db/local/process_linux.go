package local

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// attributes drop root's privileges, keep a terminal's signals away, and make the kernel send a fast shutdown when the
// thread that started the process ends. The kernel drops that request when the user changes; the runtime sets it after.
func (a account) attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: a.credential, Setpgid: true, Pdeathsig: syscall.SIGINT}
}

// runsOn reports whether pid is a server of Postgres whose working directory is data.
func runsOn(pid int, data string) bool {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	name, _ := os.ReadFile(filepath.Join(proc, "comm"))
	dir, err := os.Readlink(filepath.Join(proc, "cwd"))
	return err == nil && dir == data && strings.TrimSpace(string(name)) == "postgres"
}
