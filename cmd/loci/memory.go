package main

import (
	"os"
	"runtime/debug"
)

// memoryBytes is the server's soft memory limit. Large files come in bursts; the limit makes the garbage collector
// reuse memory before it asks the system for more.
const memoryBytes = 192 << 20

// limitMemory sets the soft limit, unless the operator set GOMEMLIMIT.
func limitMemory() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryBytes)
	}
}

// allowMemory raises the soft limit by memory that is never released, unless the operator set GOMEMLIMIT.
func allowMemory(bytes int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(debug.SetMemoryLimit(-1) + bytes)
	}
}
