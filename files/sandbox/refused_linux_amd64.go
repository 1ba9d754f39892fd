package sandbox

import "golang.org/x/sys/unix"

// programCalls are further calls that a program may not make, on this architecture.
func programCalls() []uint32 {
	return []uint32{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT,
		unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT}
}
