//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// call is a system call that a process may make if its arguments meet all conditions.
type call struct {
	number     uint32
	conditions []condition
}

// condition says that the lower 32 bits of an argument, after the mask, have a value.
type condition struct {
	argument    int
	mask, value uint32
}

// ownCalls are the calls that a Go program needs to compute, to read its open files and to end. None of them names a
// file, another process or an address, shares memory, or makes memory executable.
func ownCalls() []call {
	withoutCode := append(private(), condition{2, unix.PROT_EXEC, 0})
	return append(append(commonCalls(), libraryCalls()...), call{unix.SYS_MMAP, withoutCode})
}

const allBits = 0xffffffff

// private asks for memory that is not shared. The kernel counts all of it that can be written.
func private() []condition {
	return []condition{{3, 0xf | unix.MAP_GROWSDOWN | unix.MAP_HUGETLB, unix.MAP_PRIVATE}}
}

func commonCalls() []call {
	const thread = unix.CLONE_THREAD | unix.CLONE_VM | unix.CLONE_SIGHAND
	calls := []call{
		{unix.SYS_CLONE, []condition{{0, thread, thread}}},
		{unix.SYS_TGKILL, []condition{{0, allBits, uint32(os.Getpid())}}}, //nolint:gosec // positive
		{unix.SYS_FCNTL, []condition{{1, ^uint32(7), 0}}},                 // neither owners nor leases
	}
	for _, number := range []uint32{
		unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOSE, unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL,
		unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2, unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_FSTAT, unix.SYS_FUTEX,
		unix.SYS_GETPID, unix.SYS_GETRANDOM, unix.SYS_GETTID, unix.SYS_GETTIMEOFDAY, unix.SYS_LSEEK, unix.SYS_MADVISE,
		unix.SYS_MUNMAP, unix.SYS_NANOSLEEP, unix.SYS_PREAD64, unix.SYS_READ, unix.SYS_RESTART_SYSCALL,
		unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SCHED_GETAFFINITY,
		unix.SYS_SCHED_YIELD, unix.SYS_SIGALTSTACK, unix.SYS_WRITE,
	} {
		calls = append(calls, call{number: number})
	}
	return calls
}

// architectures are the kernel's names of the architectures with a filter.
var architectures = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// filters reports whether the kernel filters system calls.
func filters() bool {
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0,
		uintptr(unsafe.Pointer(&action))) //nolint:gosec // the kernel reads it during the call
	return errno == 0
}

// allowOnly makes the kernel refuse all other system calls to all threads of this process. It does nothing if the
// kernel has no filters.
func allowOnly(calls []call) error {
	if !filters() {
		return nil
	}
	return install(program(calls))
}

// install makes the kernel apply a filter to all threads of this process and to what it starts.
func install(filter []unix.SockFilter) error {
	fprog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]} //nolint:gosec // below 4,096
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&fprog))) //nolint:gosec // the kernel reads it during the call
	if errno != 0 {
		return fmt.Errorf("give up system calls: %w", errno)
	}
	return nil
}

// Instructions of a filter, and offsets in what it reads (seccomp_data).
const (
	filterLoad  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	filterEqual = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	filterAnd   = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	filterEnd   = unix.BPF_RET | unix.BPF_K

	filterNumber, filterArchitecture, filterArguments = 0, 4, 16
)

func refuse(errno unix.Errno) unix.SockFilter {
	return unix.SockFilter{Code: filterEnd, K: unix.SECCOMP_RET_ERRNO | uint32(errno)} //nolint:gosec // below 4,096
}

// conditionsOf returns instructions that refuse a call unless it meets its conditions. Jumps count instructions from
// the following one.
func conditionsOf(c call, errno unix.Errno) (body []unix.SockFilter) {
	for _, must := range c.conditions {
		body = append(body,
			unix.SockFilter{Code: filterLoad, K: filterArguments + 8*uint32(must.argument)}, //nolint:gosec // 0 to 5
			unix.SockFilter{Code: filterAnd, K: must.mask}, unix.SockFilter{Code: filterEqual, K: must.value, Jt: 1},
			refuse(errno))
	}
	return body
}

// program returns the filter that allows calls.
func program(calls []call) []unix.SockFilter {
	allow := unix.SockFilter{Code: filterEnd, K: unix.SECCOMP_RET_ALLOW}
	filter := []unix.SockFilter{
		{Code: filterLoad, K: filterArchitecture},
		{Code: filterEqual, K: architectures[runtime.GOARCH], Jt: 1}, // otherwise the numbers mean other calls
		refuse(unix.EACCES),
		{Code: filterLoad, K: filterNumber},
		{Code: filterEqual, K: unix.SYS_CLONE3, Jf: 1}, // its arguments cannot be read, so it is refused; libraries use clone
		refuse(unix.ENOSYS),
	}
	for _, c := range calls {
		body := conditionsOf(c, unix.EACCES)
		skip := uint8(len(body) + 1) //nolint:gosec // below 20
		filter = append(filter, unix.SockFilter{Code: filterEqual, K: c.number, Jf: skip})
		filter = slices.Concat(filter, body, []unix.SockFilter{allow})
	}
	return append(filter, refuse(unix.EACCES))
}
