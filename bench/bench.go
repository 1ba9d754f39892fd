package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// bench is a run of the benchmarks.
type bench struct {
	Scale
	loci        string // the built program
	postgresBin string // directory of the Postgres programs; if empty, the program searches for them
	work        string // directory for everything that is written, except the results
	report      *Report
	corpus      *corpus
}

// tool returns the path of a program among the Postgres programs or in PATH; empty if there is none.
func (b *bench) tool(name string) string {
	if path := filepath.Join(b.postgresBin, name); b.postgresBin != "" {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return path
}

// say prints a message about the progress of the run.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...) }
