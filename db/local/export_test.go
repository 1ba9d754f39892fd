package local

import (
	"fmt"
	"log/slog"
)

// SharedBuffersOf returns the bytes of a private Postgres' buffers on the machine whose files are below root.
func SharedBuffersOf(root string) int64 { return sharedBuffers(memory(root)) }

// Explained returns the error of a Postgres that ended after it had written something.
func Explained(what, written string) error {
	j := &journal{log: slog.New(slog.DiscardHandler)}
	fmt.Fprint(j, written)
	return j.explain(what)
}
