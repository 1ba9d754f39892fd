package sandbox

import "golang.org/x/sys/unix"

// archCalls are the calls of programCalls that only this architecture has, or that have another name here.
func archCalls() []uint32 {
	return []uint32{unix.SYS_ACCESS, unix.SYS_ARCH_PRCTL, unix.SYS_DUP2, unix.SYS_GETRLIMIT, unix.SYS_NEWFSTATAT,
		unix.SYS_OPEN, unix.SYS_READLINK, unix.SYS_STAT, unix.SYS_TIME}
}
