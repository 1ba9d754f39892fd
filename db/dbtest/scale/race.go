//go:build race

package scale

// raced is true if the race detector is built in.
const raced = true
