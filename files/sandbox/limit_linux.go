package sandbox

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// attributes returns how a child is started: out of reach of a terminal's signals. The kernel kills it when the thread
// that started it ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// keepInherited marks the open files that this process inherited so that children do not get them. Files that the
// process opens itself are never passed on. A kernel without this call has no Landlock either, which Unconfined
// reports.
func keepInherited() {
	_ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
}

// Limits of the kernel's resources that a child holds.
const (
	maxOpen    = 64   // file descriptors
	maxThreads = 1024 // in addition to those of its user, because the kernel counts all of the user's threads
)

// limitProcess sets the kernel's limits of this process, and makes it the first to be killed when the machine runs out
// of memory. Its memory limit is half as much again, because the kernel also counts memory that is not used yet. If the
// process has mapped a lot already, the limit is that plus what it may have.
func limitProcess(memoryBytes int64, cpu time.Duration) {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0) // if this fails, the limits below still hold
	seconds := uint64(max(1, cpu/time.Second))
	limit(syscall.RLIMIT_CPU, seconds, seconds+5)
	memory := max(uint64(memoryBytes)/2*3, uint64(memoryBytes)+mapped()) //nolint:gosec // positive
	limit(syscall.RLIMIT_DATA, memory, memory)
	limit(syscall.RLIMIT_CORE, 0, 0)
}

// limitAddresses lets this process reserve more bytes of addresses, and no further ones. RLIMIT_DATA is not enough: the
// kernel does not count memory in place of reserved addresses, and Go's heap grows that way.
func limitAddresses(more int64) {
	all := statm(0) + uint64(more) //nolint:gosec // positive
	limit(syscall.RLIMIT_AS, all, all)
}

// limit lowers a limit. It fails if the limit is lower already.
func limit(resource int, soft, hard uint64) {
	_ = syscall.Setrlimit(resource, &syscall.Rlimit{Cur: soft, Max: hard})
}

// mapped returns how many bytes of this process RLIMIT_DATA counts.
func mapped() uint64 { return statm(5) }

// statm returns a field of this process' memory statistics, in bytes.
func statm(field int) uint64 {
	raw, _ := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(raw))
	if len(fields) <= field {
		return 0
	}
	pages, _ := strconv.ParseUint(fields[field], 10, 64)
	return pages * uint64(os.Getpagesize()) //nolint:gosec // positive
}

// threadsOf counts the threads of a user.
func threadsOf(uid int) (count uint64) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // fails only for a bad pattern
	for _, name := range stats {
		var info unix.Stat_t
		if unix.Stat(filepath.Dir(name), &info) != nil || int(info.Uid) != uid {
			continue
		}
		raw, _ := os.ReadFile(name)
		_, after, _ := strings.Cut(string(raw), ") ") // behind the program's name
		if fields := strings.Fields(after); len(fields) > 17 {
			threads, _ := strconv.ParseUint(fields[17], 10, 64)
			count += threads
		}
	}
	return count
}
