//go:build amd64 || arm64

package sandbox

import (
	"runtime"
	"slices"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// refusal is a system call that a program may make only if its arguments meet all conditions; never if there are none.
type refusal = call

// scopesSignals is the version of Landlock from which on a process signals only processes in its own sandbox.
const scopesSignals = 6

// programRefusals are the calls that a program of the operator may not make. They reach processes and sockets outside
// of its sandbox, change files that Landlock does not guard from that, or widen the sandbox.
func programRefusals(self int) []refusal {
	const newSpaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
	own := []condition{{0, allBits, 0}} // this process, without its number
	all := []refusal{
		{unix.SYS_SOCKET, []condition{{0, allBits, unix.AF_UNIX}, {1, 0xf, unix.SOCK_STREAM}}},
		{unix.SYS_SOCKETPAIR, []condition{{0, allBits, unix.AF_UNIX}, {1, 0xf, unix.SOCK_STREAM}}},
		{unix.SYS_CLONE, []condition{{0, newSpaces, 0}}},
		{unix.SYS_PRLIMIT64, own}, {unix.SYS_SCHED_SETAFFINITY, own}, {unix.SYS_SCHED_SETSCHEDULER, own},
		{unix.SYS_SCHED_SETPARAM, own}, {unix.SYS_SCHED_SETATTR, own},
	}
	for _, number := range slices.Concat(programCalls(), []uint32{
		unix.SYS_CONNECT, unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD,
		unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_KCMP,
		unix.SYS_SETSID, unix.SYS_SETPGID, unix.SYS_SETPRIORITY, unix.SYS_IOPRIO_SET,
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE,
		unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_SETNS,
		unix.SYS_UNSHARE, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT,
		unix.SYS_TRUNCATE, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT,
		unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR,
		unix.SYS_MSGGET, unix.SYS_SEMGET, unix.SYS_SHMGET, unix.SYS_MQ_OPEN,
		unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN,
		unix.SYS_USERFAULTFD, unix.SYS_FANOTIFY_INIT, unix.SYS_QUOTACTL, unix.SYS_ACCT, unix.SYS_SYSLOG,
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	}) {
		all = append(all, refusal{number: number})
	}
	if abi, err := ll.LandlockGetABIVersion(); err != nil || abi < scopesSignals {
		all = append(all, refusal{unix.SYS_KILL, own}, refusal{number: unix.SYS_TKILL},
			refusal{unix.SYS_TGKILL, []condition{{0, allBits, uint32(self)}}}) //nolint:gosec // positive
	}
	return all
}

// otherNumbers is where the numbers of system calls for another ABI of the same architecture begin.
const otherNumbers = 0x40000000

// refuseOnly makes the kernel refuse these calls to all threads of this process and to what it starts. It does nothing
// if the kernel has no filters.
func refuseOnly(refusals []refusal) error {
	if !filters() {
		return nil
	}
	allow := unix.SockFilter{Code: filterEnd, K: unix.SECCOMP_RET_ALLOW}
	filter := []unix.SockFilter{
		{Code: filterLoad, K: filterArchitecture},
		{Code: filterEqual, K: architectures[runtime.GOARCH], Jt: 1},
		refuse(unix.EPERM),
		{Code: filterLoad, K: filterNumber},
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: otherNumbers, Jf: 1},
		refuse(unix.ENOSYS),
		{Code: filterEqual, K: unix.SYS_CLONE3, Jf: 1}, // its arguments cannot be read; libraries then use clone
		refuse(unix.ENOSYS),
	}
	for _, r := range refusals {
		body := conditionsOf(r, unix.EPERM)
		if body == nil {
			body = []unix.SockFilter{refuse(unix.EPERM)}
		} else {
			body = append(body, allow)
		}
		filter = append(filter, unix.SockFilter{Code: filterEqual, K: r.number,
			Jf: uint8(len(body))}) //nolint:gosec // below 20
		filter = append(filter, body...)
	}
	return install(append(filter, allow))
}
