//go:build cgo && linux && (amd64 || arm64)

package sandbox

import "golang.org/x/sys/unix"

// libraryCalls are the system calls that the C library needs for the threads of a Go program that is linked with it, as
// with the race detector.
func libraryCalls() []call {
	calls := []call{
		{unix.SYS_MPROTECT, []condition{{2, unix.PROT_EXEC, 0}}},
		{unix.SYS_PRLIMIT64, []condition{{0, allBits, 0}, {2, allBits, 0}}}, // a process may read its own limits
	}
	for _, number := range []uint32{unix.SYS_MREMAP, unix.SYS_RSEQ, unix.SYS_SET_ROBUST_LIST} {
		calls = append(calls, call{number: number})
	}
	return calls
}
