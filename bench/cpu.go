package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// cpu is the processor time that a server used, in seconds: in its own process, and in its Postgres. It excludes other
// processes, so it says where time went even on a busy machine.
type cpu struct{ loci, postgres float64 }

func (c cpu) since(before cpu) cpu { return cpu{c.loci - before.loci, c.postgres - before.postgres} }

func (c cpu) String() string {
	return fmt.Sprintf("CPU: loci %.1f s, Postgres %.1f s", c.loci, c.postgres)
}

// ticks is the number of /proc's time units per second, on every Linux.
const ticks = 100

// processStat is what /proc says about a process.
type processStat struct {
	parent   int
	own, all float64 // seconds; all includes children that have ended
}

// used returns the processor time that the server's processes have used so far; zero on systems without /proc.
func (s *instance) used() (c cpu) {
	processes := map[int]processStat{}
	paths, _ := filepath.Glob("/proc/[0-9]*/stat") // none on other systems
	for _, path := range paths {
		if text, err := os.ReadFile(path); err == nil { // the process may have ended
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			processes[pid] = parseStat(text)
		}
	}
	c.loci = processes[s.cmd.Process.Pid].own
	for pid, p := range processes {
		for ancestor := p.parent; ancestor > 1 && pid != s.cmd.Process.Pid; ancestor = processes[ancestor].parent {
			if ancestor == s.cmd.Process.Pid {
				c.postgres += p.all
				break
			}
		}
	}
	return c
}

// parseStat parses a stat file of /proc. Its second field, the program's name, may contain spaces and parentheses.
func parseStat(text []byte) (p processStat) {
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 15 {
		return p
	}
	number := func(i int) float64 { n, _ := strconv.ParseFloat(fields[i], 64); return n / ticks }
	p.parent, _ = strconv.Atoi(fields[1])
	p.own = number(11) + number(12)
	p.all = p.own + number(13) + number(14)
	return p
}
