package local

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// attributes drop root's privileges, keep a terminal's signals away, and have the kernel ask for a fast shutdown when the thread
// that started the process ends. The kernel forgets that wish when the user changes; the runtime states it afterwards.
func (a account) attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: a.credential, Setpgid: true, Pdeathsig: syscall.SIGINT}
}

// runsOn tells whether pid is a server of Postgres on data, which is then its working directory.
func runsOn(pid int, data string) bool {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	name, _ := os.ReadFile(filepath.Join(proc, "comm"))
	dir, err := os.Readlink(filepath.Join(proc, "cwd"))
	return err == nil && dir == data && strings.TrimSpace(string(name)) == "postgres"
}
