package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/loci-memory/loci/files/sandbox"
)

// A child that runs its input's code reaches no file, process or network, and leaves nothing behind.
func TestAChildIsConfined(t *testing.T) {
	t.Parallel()
	if lacks := sandbox.Unconfined(); lacks != "" {
		t.Fatalf("the kernel lets children %s", lacks)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s"), 0o666); err != nil { //nolint:gosec // nobody is to be refused by its mode
		t.Fatal(err)
	}
	inherited, err := unix.Open(secret, unix.O_RDWR, 0) // like one that the server inherited
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(inherited)
	output, err := run(t.Context(), t, 10*time.Minute, "prowl", secret)
	if err != nil || !strings.HasSuffix(output, "done\n") {
		t.Fatalf("got %v: %s", err, output)
	}
	for line := range strings.Lines(strings.TrimSuffix(output, "done\n")) {
		t.Error("a child may " + strings.TrimSpace(line))
	}
}

// prowl tries what a child should not be able to do, and prints what it could do.
func prowl(secret string) {
	sandbox.Limit(memoryBytes, time.Minute)
	given := open()
	if err := sandbox.Enter(); err != nil {
		panic(err)
	}
	for name, try := range tries(secret) {
		if err := try(); !errors.Is(err, fs.ErrPermission) {
			fmt.Printf("%s: %v\n", name, err)
		}
	}
	for fd, info := range given {
		if kind := info.Mode & unix.S_IFMT; fd > 2 && (kind == unix.S_IFREG && info.Size > 0 || kind == unix.S_IFSOCK) {
			fmt.Printf("use descriptor %d\n", fd)
		}
	}
	if _, err := os.Stdin.WriteAt([]byte("x"), 1<<20); err == nil {
		fmt.Println("write to its input")
	}
	if _, _, errno := unix.RawSyscall6(unix.SYS_CLONE3, 0, 0, 0, 0, 0, 0); errno != unix.ENOSYS {
		fmt.Println("clone3:", errno)
	}
	if os.Geteuid() == 0 {
		fmt.Println("be root")
	}
	fmt.Println("done")
}

// open returns the open descriptors of this process.
func open() map[int]unix.Stat_t {
	found := map[int]unix.Stat_t{}
	for fd := range 1024 {
		var info unix.Stat_t
		if unix.Fstat(fd, &info) == nil {
			found[fd] = info
		}
	}
	return found
}

func tries(secret string) map[string]func() error {
	call := func(number uintptr, args ...uintptr) func() error {
		return func() error {
			all := [6]uintptr{}
			copy(all[:], args)
			if _, _, errno := unix.Syscall6(number, all[0], all[1], all[2], all[3], all[4], all[5]); errno != 0 {
				return errno
			}
			return nil
		}
	}
	mapping := func(length uintptr, prot, flags uintptr) func() error {
		return call(unix.SYS_MMAP, 0, length, prot, flags, ^uintptr(0), 0)
	}
	const page, rw, nowhere = 4096, unix.PROT_READ | unix.PROT_WRITE, "127.0.0.1:1"
	var dialer net.Dialer
	var attr [128]byte
	ctx, parent := context.Background(), uintptr(os.Getppid()) //nolint:gosec // positive
	return map[string]func() error{
		"read a file":            func() error { _, err := os.ReadFile(secret); return err },
		"write a file":           func() error { return os.WriteFile(secret+"2", nil, 0o600) },
		"write to /tmp":          func() error { return os.WriteFile("/tmp/planted", nil, 0o600) },
		"see a file":             func() error { _, err := os.Stat("/etc/passwd"); return err },
		"see a file (2)":         func() error { return unix.Access("/etc/passwd", unix.F_OK) },
		"see a file (3)":         func() error { return unix.Statx(unix.AT_FDCWD, "/etc", 0, 0, &unix.Statx_t{}) },
		"see a file (4)":         func() error { _, err := unix.Open("/etc/passwd", unix.O_PATH, 0); return err },
		"see a file (5)":         func() error { _, err := os.Readlink("/proc/self/exe"); return err },
		"see a file (6)":         func() error { return unix.Statfs("/", &unix.Statfs_t{}) },
		"see a file (7)":         func() error { _, err := unix.Getxattr("/etc", "user.x", attr[:]); return err },
		"list a folder":          func() error { _, err := os.ReadDir("/"); return err },
		"change folders":         func() error { return unix.Chdir("/etc") },
		"change a file's mode":   func() error { return unix.Chmod(secret, 0o600) },
		"run a program":          func() error { return exec.CommandContext(ctx, "/bin/true").Run() },
		"become a program":       func() error { return syscall.Exec("/bin/true", nil, nil) }, //nolint:gosec // refused
		"start a process":        call(unix.SYS_CLONE, uintptr(unix.SIGCHLD)),
		"start a process (2)":    call(unix.SYS_CLONE, unix.CLONE_VM|unix.CLONE_VFORK|uintptr(unix.SIGCHLD)),
		"begin a session":        func() error { _, err := unix.Setsid(); return err },
		"leave its group":        func() error { return unix.Setpgid(0, 0) },
		"signal its parent":      func() error { return unix.Kill(int(parent), 0) }, //nolint:gosec // as above
		"signal its parent (2)":  call(unix.SYS_TGKILL, parent, parent, 0),
		"own a signal":           call(unix.SYS_FCNTL, 0, unix.F_SETOWN, parent),
		"limit its parent":       func() error { return unix.Prlimit(int(parent), unix.RLIMIT_NOFILE, nil, &unix.Rlimit{}) },
		"slow its parent":        func() error { return unix.Setpriority(unix.PRIO_PROCESS, int(parent), 19) },
		"move its parent":        func() error { return unix.SchedSetaffinity(int(parent), &unix.CPUSet{1}) },
		"trace":                  call(unix.SYS_PTRACE, unix.PTRACE_TRACEME),
		"read other memory":      call(unix.SYS_PROCESS_VM_READV, parent),
		"open a process":         call(unix.SYS_PIDFD_OPEN, parent),
		"share memory":           func() error { _, err := unix.SysvShmGet(1, page, unix.IPC_CREAT|0o666); return err },
		"share memory (2)":       func() error { _, err := unix.MemfdCreate("x", 0); return err },
		"share memory (3)":       mapping(page, rw, unix.MAP_ANON|unix.MAP_SHARED),
		"share memory (4)":       mapping(page, rw, unix.MAP_ANON|unix.MAP_SHARED_VALIDATE),
		"queue messages":         call(unix.SYS_MSGGET, 1, unix.IPC_CREAT|0o666),
		"queue messages (2)":     call(unix.SYS_MQ_OPEN),
		"share semaphores":       call(unix.SYS_SEMGET, 1, 1, unix.IPC_CREAT|0o666),
		"store keys":             call(unix.SYS_KEYCTL),
		"store keys (2)":         call(unix.SYS_ADD_KEY),
		"map beyond its limit":   mapping(page, rw, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_GROWSDOWN),
		"map huge pages":         mapping(2<<20, rw, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_HUGETLB),
		"map code":               mapping(page, rw|unix.PROT_EXEC, unix.MAP_ANON|unix.MAP_PRIVATE),
		"make code of memory":    call(unix.SYS_MPROTECT, 0, page, unix.PROT_READ|unix.PROT_EXEC),
		"lock memory":            call(unix.SYS_MLOCKALL, unix.MCL_FUTURE),
		"connect":                func() error { _, err := dialer.DialContext(ctx, "tcp", nowhere); return err },
		"listen":                 func() error { _, err := (&net.ListenConfig{}).Listen(ctx, "tcp", nowhere); return err },
		"send":                   func() error { _, err := dialer.DialContext(ctx, "udp", nowhere); return err },
		"connect to neighbours":  call(unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_STREAM),
		"make a ring":            call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&attr))), //nolint:gosec // refused
		"load a program":         call(unix.SYS_BPF),
		"count events":           call(unix.SYS_PERF_EVENT_OPEN),
		"handle faults":          call(unix.SYS_USERFAULTFD),
		"leave its namespace":    func() error { return unix.Unshare(unix.CLONE_NEWUSER) },
		"watch files":            func() error { _, err := unix.InotifyInit1(0); return err },
		"open another's file":    call(unix.SYS_OPEN_BY_HANDLE_AT),
		"fill its input":         func() error { return unix.Ftruncate(0, 1<<20) },
		"raise its limits":       func() error { return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{}) },
		"be root":                func() error { return syscall.Setuid(0) },
		"name itself":            func() error { return unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0) },
		"call as another system": call(0x40000000 + unix.SYS_GETPID),
	}
}

// The kernel limits a child's memory, however it asks for it, to one and a half times the limit. It also limits its
// descriptors.
func TestTheKernelBoundsAChild(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		act  string
		most int
	}{
		{"MiB in one piece", memoryBytes >> 20 * 3 / 2},
		{"MiB in pieces", memoryBytes >> 20 * 3 / 2},
		{"descriptors", 64},
	} {
		t.Run(tt.act, func(t *testing.T) {
			t.Parallel()
			output, err := run(t.Context(), t, 10*time.Minute, "hoard", tt.act)
			var got int // after the number, output may have the crash of a runtime without memory
			if n, _ := fmt.Sscan(output, &got); n == 0 || got == 0 || got > tt.most {
				t.Errorf("got %.300q, %v, want at most %d", output, err, tt.most)
			}
		})
	}
}

// hoard takes as much of something as the kernel gives, and prints how much that is.
func hoard(act string) {
	sandbox.Limit(memoryBytes, time.Minute)
	if err := sandbox.Enter(); err != nil {
		panic(err)
	}
	grab := func(mib int) bool {
		memory, err := unix.Mmap(-1, 0, mib<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err == nil {
			memory[0] = 1
		}
		return err == nil
	}
	got := 0
	switch act {
	case "MiB in one piece":
		for got = 4096; got > 0 && !grab(got); got-- { //nolint:revive // the largest that is given
		}
	case "MiB in pieces":
		for grab(1) {
			got++
		}
	case "descriptors":
		for _, err := unix.Eventfd(0, 0); err == nil; _, err = unix.Eventfd(0, 0) {
			got++
		}
	}
	_, _ = os.Stdout.WriteString(strconv.Itoa(got) + "\n")
}
