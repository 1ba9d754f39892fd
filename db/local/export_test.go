package local

import (
	"fmt"
	"log/slog"
)

// SharedBuffersOf returns the size in bytes of a private Postgres' buffers on a machine with its files below root.
func SharedBuffersOf(root string) int64 { return sharedBuffers(memory(root)) }

// Explained returns the error of a Postgres that wrote something and then ended.
func Explained(what, written string) error {
	j := &journal{log: slog.New(slog.DiscardHandler)}
	fmt.Fprint(j, written)
	return j.explain(what)
}
