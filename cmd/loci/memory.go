package main

import (
	"os"
	"runtime/debug"
)

// memoryBytes is the soft memory limit of the server. Large files come in bursts; the limit makes the garbage collector
// reuse their memory before it asks the system for more.
const memoryBytes = 192 << 20

// limitMemory sets the soft limit unless the operator set GOMEMLIMIT.
func limitMemory() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryBytes)
	}
}

// allowMemory raises the soft limit by what is taken for good, unless the operator set GOMEMLIMIT.
func allowMemory(bytes int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(debug.SetMemoryLimit(-1) + bytes)
	}
}
