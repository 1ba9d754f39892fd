package sandbox

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// nobody is the user and group of children if the server runs as root.
const nobody = 65534

// Unconfined says what the kernel allows a child although it should not. It is empty if there is nothing.
func Unconfined() string {
	if abi, err := ll.LandlockGetABIVersion(); err != nil || abi < 1 {
		return "read the server's files: the kernel has no Landlock"
	}
	if !filters() {
		return "start processes and connect to other machines: the kernel has no filters of system calls (seccomp)"
	}
	return ""
}

// Enter takes everything from this process except its memory and its open files: all other files, sockets, other
// processes, means to gain privileges, and root. It does as much as the kernel can; Unconfined says what is missing.
func Enter() error {
	if err := confine(); err != nil {
		return err
	}
	return allowOnly(ownCalls())
}

// confine takes from this process all files, the network, the means to gain privileges, and root.
func confine() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	uid := os.Geteuid()
	if uid == 0 {
		uid = nobody
	}
	threads := threadsOf(uid) + maxThreads
	if err := landlock.V10.BestEffort().Restrict(); err != nil {
		return fmt.Errorf("give up files and network: %w", err)
	}
	if os.Geteuid() == 0 {
		if err := becomeNobody(); err != nil {
			return fmt.Errorf("give up root: %w", err)
		}
	}
	limit(unix.RLIMIT_NPROC, threads, threads)
	limit(unix.RLIMIT_NOFILE, maxOpen, maxOpen)
	limit(unix.RLIMIT_FSIZE, 0, 0)
	limit(unix.RLIMIT_MEMLOCK, 0, 0)
	limit(unix.RLIMIT_MSGQUEUE, 0, 0)
	return nil
}

// becomeNobody changes the user and the group. After that, the kernel no longer ends this process with its parent.
func becomeNobody() error {
	runtime.LockOSThread() // until the process ends, because the changes below affect only this thread
	for _, change := range []func() error{
		func() error { return syscall.Setgroups(nil) },
		func() error { return syscall.Setresgid(nobody, nobody, nobody) },
		func() error { return syscall.Setresuid(nobody, nobody, nobody) },
		func() error { return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0) },
	} {
		if err := change(); err != nil {
			return err
		}
	}
	return nil
}
