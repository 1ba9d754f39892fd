package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/loci-memory/loci/db/local"
)

func describeMachine(ctx context.Context, b *bench) Machine {
	load, _ := os.ReadFile("/proc/loadavg") // absent on other systems
	m := Machine{At: time.Now().UTC().Format(time.RFC3339), CPU: processor(), Cores: runtime.NumCPU(),
		System: runtime.GOOS + "/" + runtime.GOARCH,
		Load:   first(string(load)), Go: runtime.Version(), Commit: output(ctx, "git", "describe", "--always", "--dirty")}
	if installation, err := local.Find(ctx, b.postgresBin); err == nil {
		m.Postgres = output(ctx, filepath.Join(installation.Dir, "postgres"), "--version")
	}
	return m
}

func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo") // absent on other systems
	_, rest, _ := strings.Cut(string(text), "model name")
	_, rest, _ = strings.Cut(rest, ":")
	name, _, _ := strings.Cut(rest, "\n")
	if name = strings.TrimSpace(name); name == "" {
		return "unknown processor"
	}
	return name
}

func first(s string) string {
	word, _, _ := strings.Cut(s, " ")
	return word
}

// output returns what a program prints; empty if it fails.
func output(ctx context.Context, program string, args ...string) string {
	out, err := exec.CommandContext(ctx, program, args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
