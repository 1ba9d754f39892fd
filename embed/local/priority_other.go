//go:build !linux

package local

// giveWay does nothing: only on Linux does each thread have a priority.
func giveWay() {}
