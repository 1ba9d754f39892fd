package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// memoryBytes is the soft memory limit of the server. Large files come in bursts; the limit makes the garbage collector
// reuse their memory before it asks the system for more.
const memoryBytes = 256 << 20

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

const (
	freeEvery = 10 * time.Second
	freeBytes = 16 << 20 // less is not returned
)

// freeMemory returns unused memory to the system while no job is in flight, until ctx ends. The runtime alone would
// keep it for minutes.
func (p *process) freeMemory(ctx context.Context) {
	unused := []metrics.Sample{{Name: "/memory/classes/heap/free:bytes"}}
	for wait(ctx, freeEvery) {
		if metrics.Read(unused); p.inFlight.Empty() && unused[0].Value.Uint64() > freeBytes {
			debug.FreeOSMemory()
		}
	}
}
