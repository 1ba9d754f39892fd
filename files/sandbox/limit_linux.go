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

// attributes keep a terminal's signals from the child. The kernel kills it when the thread that started it ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// keepInherited keeps from children what this process was given open by those who started it. What it opens itself no
// child gets. A kernel without the call has no Landlock either, which Unconfined says.
func keepInherited() {
	_ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
}

// Bounds of what a child holds of the kernel.
const (
	maxOpen    = 64   // descriptors
	maxThreads = 1024 // beyond those that its user has already, of which the kernel counts all
)

// limitProcess sets the kernel's limits of this process, and makes it the first to be killed when the machine's memory
// runs out. Of memory it gets half as much again, since the kernel counts what is not used yet, and in a process that
// has mapped a lot already as much as it may have.
func limitProcess(memoryBytes int64, cpu time.Duration) {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0) // without it, the limits below still hold
	seconds := uint64(max(1, cpu/time.Second))
	limit(syscall.RLIMIT_CPU, seconds, seconds+5)
	memory := max(uint64(memoryBytes)/2*3, uint64(memoryBytes)+mapped()) //nolint:gosec // positive
	limit(syscall.RLIMIT_DATA, memory, memory)
	limit(syscall.RLIMIT_CORE, 0, 0)
}

// limitAddresses lets this process reserve some more bytes of addresses. Against RLIMIT_DATA the kernel does not count
// memory that takes the place of reserved addresses, which is how Go's heap grows.
func limitAddresses(more int64) {
	all := statm(0) + uint64(more) //nolint:gosec // positive
	limit(syscall.RLIMIT_AS, all, all)
}

// limit lowers a limit. It fails if the limit is lower already.
func limit(resource int, soft, hard uint64) {
	_ = syscall.Setrlimit(resource, &syscall.Rlimit{Cur: soft, Max: hard})
}

// mapped returns the bytes that RLIMIT_DATA counts of this process.
func mapped() uint64 { return statm(5) }

// statm returns the bytes of a field of what the kernel says of this process' memory.
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
