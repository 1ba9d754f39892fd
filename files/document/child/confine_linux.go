package child

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// nobody is the user and the group of children of a server that runs as root.
const nobody = 65534

// Unconfined returns what the kernel lets a child do that it should not, empty if nothing.
func Unconfined() string {
	if abi, err := ll.LandlockGetABIVersion(); err != nil || abi < 1 {
		return "read and write the server's files: the kernel has no Landlock"
	}
	if err := unix.Prctl(unix.PR_GET_SECCOMP, 0, 0, 0, 0); err != nil {
		return "connect to other machines: the kernel has no seccomp"
	}
	return ""
}

// confine takes from this process all files but its cache, its temporary directory and, if it runs one, poppler's
// program with its libraries; all sockets; the means to gain privileges; and root. It does what the kernel can.
func (q request) confine() error {
	var own []string
	for _, dir := range []string{q.CacheDir, q.TempDir} {
		if dir != "" && os.MkdirAll(dir, 0o700) == nil && give(dir) == nil {
			own = append(own, dir)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	rules := []landlock.Rule{landlock.RWDirs(own...).IgnoreIfMissing(), landlock.RWFiles("/dev/null").IgnoreIfMissing()}
	if q.PDFToText != "" {
		rules = append(rules, landlock.RODirs(filepath.Dir(q.PDFToText), "/usr", "/lib", "/lib64", "/etc/fonts",
			"/var/cache/fontconfig").IgnoreIfMissing(), landlock.ROFiles("/etc/ld.so.cache").IgnoreIfMissing())
	}
	if err := landlock.V10.BestEffort().Restrict(rules...); err != nil {
		return fmt.Errorf("give up files and network: %w", err)
	}
	if err := refuseSockets(); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		if err := becomeNobody(); err != nil {
			return fmt.Errorf("give up root: %w", err)
		}
	}
	return nil
}

// give makes nobody the owner of a directory and of all that is in it, if this process is root. It follows no links out
// of the directory, which a child that was taken over may have left there.
func give(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return root.Lchown(path, nobody, nobody)
	})
}

// becomeNobody changes the user and the group. The kernel forgets then that this process dies with its parent.
func becomeNobody() error {
	runtime.LockOSThread() // until the process ends: what follows is the thread's
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
