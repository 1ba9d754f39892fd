//go:build cgo && linux && (amd64 || arm64)

package sandbox

import "golang.org/x/sys/unix"

// libraryCalls are what the system's library needs for the threads of a Go program that is linked with it, as one with
// the race detector is.
func libraryCalls() []call {
	calls := []call{
		{unix.SYS_MPROTECT, []condition{{2, unix.PROT_EXEC, 0}}},
		{unix.SYS_PRLIMIT64, []condition{{0, allBits, 0}, {2, allBits, 0}}}, // reads its own
	}
	for _, number := range []uint32{unix.SYS_MREMAP, unix.SYS_RSEQ, unix.SYS_SET_ROBUST_LIST} {
		calls = append(calls, call{number: number})
	}
	return calls
}
