package child

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// attributes keep a terminal's signals from the child. The kernel kills it when the thread that started it ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// limitProcess sets the kernel's limits of this process, of memory in addition to what it has, and makes it the first
// to be killed when the machine's memory runs out.
func limitProcess(memoryBytes int64, cpu time.Duration) {
	memory := uint64(memoryBytes) + mapped() //nolint:gosec // positive
	seconds := uint64(max(1, cpu/time.Second))
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0) // without it, the limits below still hold
	for resource, limit := range map[int]syscall.Rlimit{
		syscall.RLIMIT_CPU:   {Cur: seconds, Max: seconds + 5},
		syscall.RLIMIT_DATA:  {Cur: memory, Max: memory},
		syscall.RLIMIT_FSIZE: {Cur: maxFileBytes, Max: maxFileBytes},
		syscall.RLIMIT_CORE:  {},
	} {
		_ = syscall.Setrlimit(resource, &limit) // fails if the limit is lower already
	}
}

// mapped returns the bytes that RLIMIT_DATA counts of this process.
func mapped() uint64 {
	raw, _ := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(raw))
	if len(fields) < 6 {
		return 0
	}
	pages, _ := strconv.ParseUint(fields[5], 10, 64)
	return pages * uint64(os.Getpagesize()) //nolint:gosec // positive
}

// maxFileBytes is more than the cache of a compiled program takes.
const maxFileBytes = 256 << 20
