package main

import (
	"math"
	"os"
	"runtime/debug"
)

// memoryBytes is the server's soft memory limit. Large files come in bursts; the limit makes the garbage collector
// reuse memory before it asks the system for more.
const memoryBytes = 192 << 20

// limitMemory sets the soft limit, unless the operator set GOMEMLIMIT, or the process has a limit already, as in tests.
func limitMemory() {
	if os.Getenv("GOMEMLIMIT") == "" && debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(memoryBytes)
	}
}

// allowMemory raises the soft limit by memory that is never released, unless the operator set GOMEMLIMIT.
func allowMemory(bytes int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(debug.SetMemoryLimit(-1) + bytes)
	}
}
