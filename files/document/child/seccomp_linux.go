package child

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// architectures are the kernel's names of those on which sockets are refused.
var architectures = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// x32 is the bit of system calls of a second kind on amd64.
const x32 = 0x40000000

// refuseSockets makes the kernel refuse every socket to this process, whatever its protocol: Landlock bounds TCP, but
// neither MPTCP nor UDP. io_uring, which makes sockets too, is refused with them.
func refuseSockets() error {
	arch, known := architectures[runtime.GOARCH]
	if !known {
		return nil
	}
	const (
		load    = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		atLeast = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		end     = unix.BPF_RET | unix.BPF_K
	)
	filter := []unix.SockFilter{
		{Code: load, K: 4}, // the architecture
		{Code: equal, K: arch, Jf: 5},
		{Code: load, K: 0}, // the call
		{Code: atLeast, K: x32, Jt: 3},
		{Code: equal, K: unix.SYS_SOCKET, Jt: 2},
		{Code: equal, K: unix.SYS_IO_URING_SETUP, Jt: 1},
		{Code: end, K: unix.SECCOMP_RET_ALLOW},
		{Code: end, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]} //nolint:gosec // eight
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&program))) //nolint:gosec // the kernel reads it during the call
	if errno != 0 {
		return fmt.Errorf("refuse sockets: %w", errno)
	}
	return nil
}
