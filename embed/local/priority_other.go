//go:build !linux

package local

// giveWay does nothing: only on Linux has a thread a priority of its own.
func giveWay() {}
