package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// memoryBytes is what the garbage collector keeps the server within as long as it can: large files come in bursts, and what they took is
// to be used again before more is asked for.
const memoryBytes = 256 << 20

// boundMemory sets that bound, unless the operator set another.
func boundMemory() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryBytes)
	}
}

// What a burst of work took is given back to the system when the server has nothing in hand: the runtime would keep it for minutes.
const (
	giveBackEvery = 10 * time.Second
	giveBackBytes = 16 << 20 // less is not worth a collection
)

func (p *process) giveMemoryBack(ctx context.Context) error {
	unused := []metrics.Sample{{Name: "/memory/classes/heap/free:bytes"}}
	for wait(ctx, giveBackEvery) {
		if metrics.Read(unused); p.inFlight.Empty() && unused[0].Value.Uint64() > giveBackBytes {
			debug.FreeOSMemory()
		}
	}
	return nil
}
