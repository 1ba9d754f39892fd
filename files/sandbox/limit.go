package sandbox

import (
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"runtime/metrics"
	"syscall"
	"time"
)

// Limit limits the memory and the CPU time of this process. Beyond a limit the process exits, and Run returns ErrMemory
// or ErrCPU. The process measures its memory itself, 50 times per second; the kernel refuses much larger amounts.
func Limit(memoryBytes int64, cpu time.Duration) {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM) // the parent decides when it ends
	limitProcess(memoryBytes, cpu)
	over := make(chan os.Signal, 1)
	signal.Notify(over, syscall.SIGXCPU)
	go func() {
		<-over
		os.Exit(exitCPU)
	}()
	debug.SetMemoryLimit(memoryBytes / 4 * 3)
	go watch(uint64(memoryBytes)) //nolint:gosec // positive
}

// LimitStrictly is Limit for a pure Go program that may take all its memory at once. The kernel lets the program
// reserve no more addresses than the limit, besides those of Go's runtime. The program holds at most the limit and the
// pages of its code.
func LimitStrictly(memoryBytes int64, cpu time.Duration) {
	Limit(memoryBytes, cpu)
	limitAddresses(max(memoryBytes/8*7, leastAddresses)) // the runtime has reserved some of its heap's addresses already
}

// leastAddresses is enough for three arenas of Go's heap, of 64 MiB each, and the runtime's records of them. Even a
// small heap may need a second arena, because it may begin anywhere in the first. To find a place for it, the runtime
// may reserve two.
const leastAddresses = 208 << 20

// watchEvery is how often a child measures its memory.
const watchEvery = 20 * time.Millisecond

// watch ends the process if it holds more than most bytes of memory.
func watch(most uint64) {
	memory := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	for range time.Tick(watchEvery) {
		metrics.Read(memory)
		if held := memory[0].Value.Uint64() - memory[1].Value.Uint64(); held > most {
			fmt.Fprintf(os.Stderr, "out of memory: %d of %d bytes\n", held, most)
			os.Exit(exitMemory)
		}
	}
}
