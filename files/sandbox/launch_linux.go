package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// Limits of the kernel's resources that a program holds.
const (
	maxProgramOpen    = 1024 // file descriptors
	maxProgramThreads = 512  // in addition to those of its user
)

// Launch is the program of a run: it gives up all rights but those that Program names, starts the program of the
// operator, and exits as it does. If the server is killed, it ends with all that the program started.
func Launch(argument string) {
	runtime.LockOSThread() // older kernels give each thread a sandbox of its own, and signals stay within one
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	var l launch
	err := json.Unmarshal([]byte(argument), &l)
	if err == nil {
		err = l.confine()
	}
	if err == nil && l.Command == nil {
		os.Exit(0) // a trial
	}
	cmd := exec.Cmd{}
	if err == nil {
		cmd = exec.Cmd{Path: l.Command[0], Args: l.Command, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the program:", err)
		os.Exit(exitUnconfined)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its state says how it ended
		close(ended)
	}()
	select {
	case <-stop:
		_ = syscall.Kill(0, syscall.SIGKILL)
	case <-ended:
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		os.Exit(128 + int(status.Signal()))
	}
	os.Exit(cmd.ProcessState.ExitCode())
}

// confine limits this process and what it starts.
func (l launch) confine() error {
	endsWith(l.Parent)
	if l.Inside != l.Scratch {
		if err := l.takeTmp(); err != nil {
			return fmt.Errorf("give it a %s of its own: %w", l.Inside, err)
		}
	}
	limitProcess(l.MemoryBytes, l.CPU)
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	uid := os.Geteuid()
	if uid == 0 {
		uid = nobody
	}
	threads := threadsOf(uid) + maxProgramThreads
	if err := landlock.V10.BestEffort().Restrict(l.files()...); err != nil {
		return fmt.Errorf("give up files and network: %w", err)
	}
	if os.Geteuid() == 0 {
		if err := becomeNobody(); err != nil {
			return fmt.Errorf("give up root: %w", err)
		}
		endsWith(l.Parent)
	}
	limit(unix.RLIMIT_NPROC, threads, threads)
	limit(unix.RLIMIT_NOFILE, maxProgramOpen, maxProgramOpen)
	limit(unix.RLIMIT_FSIZE, maxFileBytes, maxFileBytes)
	limit(unix.RLIMIT_MEMLOCK, 0, 0)
	limit(unix.RLIMIT_MSGQUEUE, 0, 0)
	return refuseOnly(programRefusals(os.Getpid()))
}

// takeTmp makes the scratch folder the /tmp of this process and of what it starts.
func (l launch) takeTmp() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount(l.Scratch, l.Inside, "", unix.MS_BIND|unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	return os.Chdir(l.Inside)
}

// endsWith has the kernel tell this process once the server ends.
func endsWith(server int) {
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGTERM), 0, 0, 0) // else it ends at its own limits
	if os.Getppid() != server {
		_ = syscall.Kill(0, syscall.SIGKILL) // the server ended meanwhile
	}
}

// files returns what a program may do with files.
func (l launch) files() []landlock.Rule {
	scratch := landlock.RWDirs(l.Inside)
	if abi, err := ll.LandlockGetABIVersion(); err == nil && abi >= 2 {
		scratch = scratch.WithRefer()
	}
	rules := []landlock.Rule{
		landlock.RODirs("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64",
			"/var/cache/fontconfig", "/var/lib/libreoffice", "/var/spool/libreoffice").IgnoreIfMissing(),
		landlock.PathAccess(ll.AccessFSReadDir, "/etc").IgnoreIfMissing(),
		landlock.PathAccess(ll.AccessFSReadFile, publicFiles("/etc")...).IgnoreIfMissing(),
		landlock.RWFiles("/dev/null", "/dev/zero", "/dev/full").IgnoreIfMissing(),
		landlock.ROFiles("/dev/random", "/dev/urandom").IgnoreIfMissing(),
		scratch,
	}
	if l.Command != nil {
		rules = append(rules, landlock.ROFiles(l.Command[0]))
	}
	return rules
}

// publicFiles returns the files in a folder that every user may read. The user of the server may read further ones,
// such as its settings.
func publicFiles(dir string) (paths []string) {
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be listed is not public
		}
		info, err := entry.Info()
		if err != nil {
			return nil //nolint:nilerr // as above
		}
		if entry.IsDir() && info.Mode().Perm()&0o001 == 0 {
			return filepath.SkipDir
		}
		if info.Mode().IsRegular() && info.Mode().Perm()&0o004 != 0 {
			paths = append(paths, path)
		}
		return nil
	})
	return paths
}

// clockTicks is how many units of processor time in /proc make a second (USER_HZ).
const clockTicks = 100

// usedBy returns the memory and the processor time of the processes in a group.
func usedBy(group int) (memory int64, cpu time.Duration) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // fails only for a bad pattern
	for _, name := range stats {
		raw, err := os.ReadFile(name)
		if err != nil {
			continue // it ended
		}
		fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:])) // the name before may have brackets
		if len(fields) < 22 || fields[2] != strconv.Itoa(group) {
			continue
		}
		number := func(i int) int64 { n, _ := strconv.ParseInt(fields[i], 10, 64); return n }
		memory += number(21) * int64(os.Getpagesize())
		cpu += time.Duration(number(11)+number(12)+number(13)+number(14)) * (time.Second / clockTicks)
	}
	return memory, cpu
}

// programAttributes returns how a launcher is started: as a child, and with mounts of its own if it takes a /tmp.
func programAttributes(ownTmp bool) *syscall.SysProcAttr {
	a := attributes()
	a.Pdeathsig = syscall.SIGTERM
	if !ownTmp {
		return a
	}
	a.Cloneflags = syscall.CLONE_NEWNS
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		a.Cloneflags |= syscall.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN} // over its own mounts alone; takeTmp drops it
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	}
	return a
}

// CanConfine returns an error if the kernel cannot confine programs of the operator.
func CanConfine() error {
	if lacks := Unconfined(); lacks != "" {
		return errors.New("a program could " + lacks)
	}
	return nil
}
