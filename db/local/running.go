package local

import (
	"path/filepath"
)

// Running returns the URL of the private Postgres that another process serves on home, and false if none does.
func Running(home string) (url string, ok bool) {
	dir, err := filepath.EvalSymlinks(home)
	if err != nil {
		return "", false
	}
	data := filepath.Join(dir, "postgres")
	f := readPIDFile(data)
	if !f.ready || !runsOn(f.pid, data) || len(f.lines) < 5 || f.lines[4] == "" {
		return "", false
	}
	return socket{dir: f.lines[4]}.url("loci"), true // the fifth line is the socket's directory
}
