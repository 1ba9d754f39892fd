//go:build race

package scale

// raced says that the race detector runs.
const raced = true
